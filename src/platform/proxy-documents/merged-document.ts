// The rules that decide for a sandbox: its own document first, then that of its profile. What the two mean for one another is
// reported where it is: at an entry of the sandbox, or at the profile. Pure.
import { InvalidInput } from '../../base/domain-error.ts';
import { type Issue, prefixed } from '../../base/schema.ts';
import { toProxyConfigDocument } from '../../policy/document/proxy-config-document.ts';
import { parseProxyConfig } from '../../policy/document/proxy-config.ts';
import { DOCUMENT_LOC, type ProxyDocument } from './parsed-document.ts';

export type MergedDocument = {
  readonly document: ProxyDocument;
  /** How many of its entries are those of the sandbox; those of the profile follow. */
  readonly own: { readonly rules: number; readonly callbacks: number };
};

export type DocumentParts = {
  readonly own: ProxyDocument | undefined;
  readonly profile: ProxyDocument | undefined;
};

/** Throws InvalidInput when the two contradict one another. */
export function mergeDocuments({ own = EMPTY, profile }: DocumentParts): MergedDocument {
  const counts = { rules: own.rules.length, callbacks: own.callbacks.length };
  if (profile === undefined) return { document: own, own: counts };
  const access_control = mergeAccess(own.access_control, profile.access_control);
  if (access_control === 'contradiction') throw new InvalidInput([TWO_LISTS]);
  const document = {
    rules: [...own.rules, ...profile.rules],
    callbacks: [...own.callbacks, ...profile.callbacks],
    no_proxy: [...new Set([...own.no_proxy, ...profile.no_proxy])],
    access_control,
  };
  const merged = { document, own: counts };
  // The values were checked by themselves, and mean nothing for one another.
  const parsed = parseProxyConfig(toProxyConfigDocument(document, () => ({ value: 'x' })));
  if (!parsed.ok) throw new InvalidInput(placeIssues(parsed.issues, merged));
  return merged;
}

/** Issues of the merged document, as issues of a request for the sandbox. */
export function placeIssues(issues: readonly Issue[], { own }: MergedDocument): readonly Issue[] {
  return issues.flatMap((issue) => {
    const [list, index, ...rest] = issue.loc;
    const isEntry = (list === 'rules' || list === 'callbacks') && typeof index === 'number';
    if (!isEntry || index < own[list]) return prefixed([issue], DOCUMENT_LOC);
    const where = [`${list}[${index - own[list]}]`, ...rest].join('.');
    return { ...issue, loc: PROFILE_LOC, msg: `${where} of the proxy profile: ${issue.msg}` };
  });
}

type Access = ProxyDocument['access_control'];

/** Two lists of denials deny what either denies. Of other lists one would have to lose, and the author must say which. */
function mergeAccess(own: Access, profile: Access): Access | 'contradiction' {
  if (own === undefined || profile === undefined) return own ?? profile;
  if (own.deny_list === undefined || profile.deny_list === undefined) return 'contradiction';
  return { deny_list: [...new Set([...own.deny_list, ...profile.deny_list])] };
}

const EMPTY: ProxyDocument = { rules: [], callbacks: [], no_proxy: [], access_control: undefined };

const PROFILE_LOC = ['body', 'proxy_profile_id'];

const TWO_LISTS: Issue = {
  loc: [...DOCUMENT_LOC, 'access_control'],
  msg: 'The proxy profile has an access_control too, and only two lists of denials (deny_list) can be combined: leave one of them out',
  type: 'value_error',
};
