// Fills the opaque values that an update leaves out, from the document that it replaces. Who writes the update cannot
// read those values, so it must not be able to send one elsewhere: a value is kept for the stored destination or a
// part of it, compared as text, and never for what merely looks narrower; nor where less is masked than was. It opens no
// secret.
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

/** `update` is as the schema for updates reads it: an empty Secret stands for a value to keep. */
export function keepStoredValues(
  update: ProxyConfig,
  stored: ProxyConfig,
): { readonly value: ProxyConfig; readonly issues: readonly Issue[] } {
  const issues: Issue[] = [];
  const findRule = createFinder(() => stored.rules.map(toRuleSource));
  const findCallback = createFinder(() => stored.callbacks.map(toCallbackSource));
  const rules = update.rules.map((rule, i) => {
    if (!rule.headers.some(isLeftOut)) return rule;
    const source = toRuleSource(rule);
    const headers = fill(rule.headers, source, findRule(source), ['rules', i, 'headers'], issues);
    return { ...rule, headers };
  });
  const callbacks = update.callbacks.map((callback, i) => {
    if (!callback.request_headers.some(isLeftOut)) return callback;
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

function toCallbackSource({
  name,
  match_hosts: hosts,
  url,
  request_headers: headers,
  scrub,
}: CallbackEntry): Source {
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

/** Which stored entry one of the update continues. Where several have its name or hosts, its whole destination tells. */
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

function isLeftOut(header: HeaderEntry): header is OpaqueEntry {
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
    if (!isLeftOut(header)) return header;
    const kept = keptValue(header.name, source, found);
    if (!('msg' in kept)) return { name: header.name, type: 'opaque', value: kept };
    issues.push({ loc: [...loc, i, 'value'], ...kept });
    return header;
  });
}

type ReuseIssue = Pick<Issue, 'msg' | 'type'>;

function keptValue(name: string, source: Source, found: Finding): Secret | ReuseIssue {
  if (found === 'several') return AMBIGUOUS;
  if (found === 'none') return NOTHING_STORED;
  const folded = foldHeaderName(name);
  const header = found.headers.find((one) => foldHeaderName(one.name) === folded);
  if (header?.type !== 'opaque') return NOTHING_STORED;
  if (!isWithin(source, found)) return ELSEWHERE;
  // What the host echoes in a body would reach whoever asks for it.
  return found.scrub === 'body' && source.scrub === 'head' ? UNSEARCHED : header.value;
}

function isWithin({ hosts, paths, url }: Source, stored: Source): boolean {
  if (url !== stored.url || !hosts.isSubsetOf(stored.hosts)) return false;
  return stored.paths.size === 0 || (paths.size > 0 && paths.isSubsetOf(stored.paths));
}

const NOTHING_STORED: ReuseIssue = {
  msg: 'Field required: there is no stored value to keep',
  type: 'missing',
};
const AMBIGUOUS: ReuseIssue = {
  msg: 'Field required: several stored entries are like this one, so none of their values is kept; names would tell them apart',
  type: 'missing',
};
const UNSEARCHED: ReuseIssue = {
  msg: 'Bodies would no longer be searched for the value, so it should be given again; it is kept under `scrub: body` only',
  type: 'value_error',
};
const ELSEWHERE: ReuseIssue = {
  msg: 'The destination changed, so the value should be given again; it is kept for stored hosts, paths and url only',
  type: 'value_error',
};
