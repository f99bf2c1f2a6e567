// Fills in the opaque values that an update omits, from the document that it replaces. The author of the update cannot
// read those values, so the update must not be able to send one elsewhere: a value is reused only for the stored
// destination or a subset of it, compared as text (never for what merely looks narrower), and only where responses are
// masked at least as much as before. No secret is opened here.
import type { Issue, Loc } from '../../base/schema.ts';
import type { Secret } from '../../base/secret.ts';
import { foldHeaderName } from './header-rules.ts';
import { parseHostPattern } from '../match/host-pattern.ts';
import type {
  CallbackEntry,
  HeaderEntry,
  OpaqueEntry,
  ProxyConfig,
  RuleEntry,
  Scrub,
} from './proxy-config-schema.ts';

/** `update` is as updateSchema parses it: an empty Secret means that the stored value is to be reused. */
export function keepStoredValues(
  update: ProxyConfig,
  stored: ProxyConfig,
): { readonly value: ProxyConfig; readonly issues: readonly Issue[] } {
  const issues: Issue[] = [];
  const findRule = createFinder(() => stored.rules.map(toRuleSource));
  const findCallback = createFinder(() => stored.callbacks.map(toCallbackSource));
  const rules = update.rules.map((rule, i) => {
    if (!rule.headers.some(isOmitted)) return rule;
    const source = toRuleSource(rule);
    const headers = fill(rule.headers, source, findRule(source), ['rules', i, 'headers'], issues);
    return { ...rule, headers };
  });
  const callbacks = update.callbacks.map((callback, i) => {
    if (!callback.request_headers.some(isOmitted)) return callback;
    const source = toCallbackSource(callback);
    const loc = ['callbacks', i, 'request_headers'];
    const headers = fill(callback.request_headers, source, findCallback(source), loc, issues);
    return { ...callback, request_headers: headers };
  });
  return { value: { ...update, rules, callbacks }, issues };
}

/** What an entry sends, and where to: a callback's headers go to its URL, for its hosts. */
type Source = {
  readonly name: string | undefined;
  readonly hosts: ReadonlySet<string>;
  /** Empty: every path. */
  readonly paths: ReadonlySet<string>;
  readonly url: string;
  readonly scrub: Scrub;
  readonly headers: readonly HeaderEntry[];
};

function toRuleSource({ name, match_hosts: hosts, match_paths: paths, headers, scrub }: RuleEntry): Source {
  return { name, hosts: canonicalHosts(hosts), paths: new Set(paths), url: '', headers, scrub };
}

function toCallbackSource(callback: CallbackEntry): Source {
  const { name, match_hosts: hosts, url, request_headers: headers, scrub } = callback;
  return { name, hosts: canonicalHosts(hosts), paths: new Set(), url: new URL(url).href, headers, scrub };
}

function canonicalHosts(texts: readonly string[]): ReadonlySet<string> {
  return new Set(
    texts.map((text) => {
      const pattern = parseHostPattern(text);
      return typeof pattern === 'string' ? text : pattern.text;
    }),
  );
}

type Finding = Source | 'none' | 'several';

/**
 * Finds the stored entry that an entry of the update continues: the one with its name, or without a name with its hosts.
 * Where several have that, the one whose whole destination is the same.
 */
function createFinder(stored: () => readonly Source[]): (source: Source) => Finding {
  let index: Map<string, Source | 'several'> | undefined;
  return (source) => {
    index ??= indexOf(stored());
    const found = index.get(identityOf(source)) ?? 'none';
    return found === 'several' ? (index.get(exactIdentityOf(source)) ?? 'several') : found;
  };
}

function indexOf(sources: readonly Source[]): Map<string, Source | 'several'> {
  const index = new Map<string, Source | 'several'>();
  for (const source of sources)
    for (const key of [identityOf(source), exactIdentityOf(source)])
      index.set(key, index.has(key) ? 'several' : source);
  return index;
}

function identityOf({ name, hosts }: Source): string {
  return JSON.stringify(name ?? [...hosts].toSorted());
}

function exactIdentityOf(source: Source): string {
  const { hosts, paths, url } = source;
  return `${identityOf(source)} ${JSON.stringify([[...hosts].toSorted(), [...paths].toSorted(), url])}`;
}

function isOmitted(header: HeaderEntry): header is OpaqueEntry {
  return header.type === 'opaque' && header.value.length === 0;
}

function fill<H extends HeaderEntry>(
  headers: readonly H[],
  source: Source,
  found: Finding,
  loc: Loc,
  issues: Issue[],
): readonly (H | OpaqueEntry)[] {
  return headers.map((header, i) => {
    if (!isOmitted(header)) return header;
    const reused = reuse(header.name, source, found);
    if (!('msg' in reused)) return { name: header.name, type: 'opaque', value: reused };
    issues.push({ loc: [...loc, i, 'value'], ...reused });
    return header;
  });
}

type ReuseIssue = Pick<Issue, 'msg' | 'type'>;

function reuse(name: string, source: Source, found: Finding): Secret | ReuseIssue {
  if (found === 'several') return AMBIGUOUS;
  if (found === 'none') return NOTHING_STORED;
  const folded = foldHeaderName(name);
  const header = found.headers.find((one) => foldHeaderName(one.name) === folded);
  if (header?.type !== 'opaque') return NOTHING_STORED;
  if (!isWithin(source, found)) return ELSEWHERE;
  // A host that echoes the value in a body would hand it to the client.
  return found.scrub === 'body' && source.scrub === 'head' ? UNMASKED : header.value;
}

function isWithin({ hosts, paths, url }: Source, stored: Source): boolean {
  if (url !== stored.url || !hosts.isSubsetOf(stored.hosts)) return false;
  return stored.paths.size === 0 || (paths.size > 0 && paths.isSubsetOf(stored.paths));
}

const NOTHING_STORED: ReuseIssue = {
  msg: 'Field required: there is no stored value to reuse',
  type: 'missing',
};
const AMBIGUOUS: ReuseIssue = {
  msg: 'Field required: several stored entries match this one, so no stored value is reused; give the entries different names',
  type: 'missing',
};
const UNMASKED: ReuseIssue = {
  msg: 'The value would no longer be masked in bodies, so it must be given again; a stored value is reused only with `scrub: body`',
  type: 'value_error',
};
const ELSEWHERE: ReuseIssue = {
  msg: 'The destination changed, so the value must be given again; a stored value is reused only for its stored hosts, paths and url',
  type: 'value_error',
};
