// What the entries of a proxy_config mean for one another: wildcards that are too broad, rules that access_control
// forbids, and, as warnings, entries that do less than their author may think.
import type { Issue, Loc } from '../base/schema.ts';
import { cidrContains, parseAddress } from './address.ts';
import { type Destination, parseDestination } from './destination-list.ts';
import { createHostIndex, type HostIndex } from './host-index.ts';
import { type HostPattern, parseHostPattern } from './host-pattern.ts';
import { noProxyEntries, type ProxyConfig } from './proxy-config-schema.ts';
import { isPublicSuffix } from './public-suffix.ts';

export type Conflicts = { readonly issues: readonly Issue[]; readonly warnings: readonly Issue[] };

/** `allowWildcards`: public suffixes (`github.io` or `*.github.io`) that the operator lets a wildcard span. */
export function findConflicts(config: ProxyConfig, allowWildcards: readonly string[]): Conflicts {
  const all = [...hostsOf(config, 'rules'), ...hostsOf(config, 'callbacks')];
  if (all.length > MAX_HOST_PATTERNS) return { issues: [tooManyHosts(all.length)], warnings: [] };
  const enabled = all.filter((host) => host.enabled);
  const access = accessConflicts(config, enabled);
  return {
    issues: [...all.flatMap((host) => broadWildcard(host, allowWildcards)), ...access.issues],
    warnings: [...access.warnings, ...noProxyOverlaps(config, enabled), ...shadowed(enabled)],
  };
}

// Compiling 10,000 patterns takes a tenth of a second, in which nobody else is served.
const MAX_HOST_PATTERNS = 10_000;

type HostEntry = {
  readonly pattern: HostPattern;
  readonly loc: Loc;
  readonly list: 'rules' | 'callbacks';
  readonly index: number;
  readonly enabled: boolean;
  readonly readsPath: boolean;
};

function hostsOf(config: ProxyConfig, list: 'rules' | 'callbacks'): HostEntry[] {
  return config[list].flatMap((entry, index) =>
    entry.match_hosts.flatMap((text, i) => {
      const pattern = parseHostPattern(text);
      const readsPath = 'match_paths' in entry && entry.match_paths.length > 0;
      if (typeof pattern === 'string') return [];
      return {
        pattern,
        loc: [list, index, 'match_hosts', i],
        list,
        index,
        enabled: entry.enabled,
        readsPath,
      };
    }),
  );
}

function tooManyHosts(count: number): Issue {
  const msg = `All match_hosts together should have at most ${MAX_HOST_PATTERNS} entries; they have ${count}`;
  return { loc: ['rules'], msg, type: 'too_long' };
}

function broadWildcard({ pattern, loc }: HostEntry, allowWildcards: readonly string[]): Issue[] {
  if (!pattern.isWildcard || !isPublicSuffix(pattern.host)) return [];
  if (allowWildcards.some((allowed) => allowed.toLowerCase().replace(/^\*\./, '') === pattern.host))
    return [];
  const msg = `Names under ${pattern.host} belong to many owners; write a wildcard below one of them, as in *.example.${pattern.host}, or have the operator list it in allow_wildcards`;
  return [{ loc, msg, type: 'value_error' }];
}

function accessConflicts(config: ProxyConfig, hosts: readonly HostEntry[]): Conflicts {
  const { allow_list: allow, deny_list: deny } = config.access_control ?? {};
  const issues: Issue[] = [];
  const warnings: Issue[] = [];
  const relation = relate(hosts, parseAll(allow ?? deny ?? []));
  for (const host of allow === undefined && deny === undefined ? [] : hosts) {
    const { covering, beneath } = relation(host);
    const { loc, pattern } = host;
    const whole = covering.find(
      ({ port }) => allow !== undefined || port === undefined || port === pattern.port,
    );
    const part = whole ?? covering[0] ?? beneath;
    if (allow === undefined && whole !== undefined)
      issues.push({
        loc,
        msg: `The deny_list denies this host, by ${whole.text}; take one of the two out`,
        type: 'value_error',
      });
    else if (allow !== undefined && part === undefined)
      issues.push({ loc, msg: 'The allow_list does not hold this host; add it there', type: 'value_error' });
    else if (part !== undefined && whole === undefined)
      warnings.push({
        loc,
        msg: `access_control denies a part of this, see ${part.text}`,
        type: 'partly_denied',
      });
  }
  return { issues, warnings };
}

function noProxyOverlaps(config: ProxyConfig, hosts: readonly HostEntry[]): Issue[] {
  const entries = noProxyEntries(config);
  const locs = new Map(entries.map(({ text, loc }) => [text, loc]));
  const relation = relate(hosts, parseAll(entries.map(({ text }) => text)));
  return hosts.flatMap((host) => {
    const { covering, beneath } = relation(host);
    const entry = covering[0] ?? beneath;
    if (entry === undefined) return [];
    const msg = `no_proxy wins: ${entry.text} is never intercepted, although ${nameOf(host)} matches it`;
    return { loc: locs.get(entry.text) ?? host.loc, msg, type: 'no_proxy_overlap' };
  });
}

/** Hosts whose every request an earlier entry takes: a rule takes it from callbacks, the first from those behind it. */
function shadowed(hosts: readonly HostEntry[]): Issue[] {
  const index = indexHosts(hosts);
  return hosts.flatMap((host) => {
    const taker = index.covering(host.pattern).find(({ value }) => takes(value, host))?.value;
    if (taker === undefined) return [];
    return {
      loc: host.loc,
      msg: `Without effect: ${nameOf(taker)} comes first for this host`,
      type: 'shadowed',
    };
  });
}

function takes(taker: HostEntry, host: HostEntry): boolean {
  if (taker.pattern.port !== undefined && taker.pattern.port !== host.pattern.port) return false;
  if (taker.list !== host.list) return taker.list === 'rules';
  return taker.index < host.index && !taker.readsPath;
}

type Relation = { readonly covering: readonly Destination[]; readonly beneath: Destination | undefined };

/** For each host: the destinations that hold all of it, and one that holds a part; the ports of both can meet. */
function relate(
  hosts: readonly HostEntry[],
  destinations: readonly Destination[],
): (host: HostEntry) => Relation {
  const names = createHostIndex(
    destinations.flatMap((value) => (value.kind === 'names' ? { pattern: value.pattern, value } : [])),
  );
  const ranges = destinations.filter((destination) => destination.kind === 'range');
  const within = indexHosts(hosts);
  const beneath = new Map<HostEntry, Destination>();
  for (const destination of destinations)
    for (const { value } of destination.kind === 'names' ? within.covering(destination.pattern) : [])
      if (!beneath.has(value) && portsMeet(value.pattern, destination)) beneath.set(value, destination);
  return (host) => {
    const address = host.pattern.kind === 'name' ? undefined : parseAddress(host.pattern.host);
    const holding: readonly Destination[] =
      address === undefined
        ? names.covering(host.pattern).map(({ value }) => value)
        : ranges.filter(({ range }) => cidrContains(range, address));
    return {
      covering: holding.filter((destination) => portsMeet(host.pattern, destination)),
      beneath: beneath.get(host),
    };
  };
}

function portsMeet(
  a: { readonly port: number | undefined },
  b: { readonly port: number | undefined },
): boolean {
  return a.port === undefined || b.port === undefined || a.port === b.port;
}

function indexHosts(hosts: readonly HostEntry[]): HostIndex<HostEntry> {
  return createHostIndex(hosts.map((value) => ({ pattern: value.pattern, value })));
}

function parseAll(texts: readonly string[]): Destination[] {
  return texts.map(parseDestination).filter((destination) => typeof destination !== 'string');
}

function nameOf({ list, index }: HostEntry): string {
  return `${list}[${index}]`;
}
