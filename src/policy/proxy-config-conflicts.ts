// What the entries of a proxy_config mean for one another: wildcards that are too broad, rules that access_control
// forbids, and, as warnings, entries that do less than their author may think.
import type { Issue, Loc } from '../base/schema.ts';
import { cidrContains, parseAddress } from './address.ts';
import { type Destination, parseDestination } from './destination-list.ts';
import { type HostPattern, parseHostPattern } from './host-pattern.ts';
import { matchingEffort } from './path-pattern.ts';
import { createOverlapIndex, type OverlapIndex } from './pattern-overlap.ts';
import { noProxyEntries, type ProxyConfig } from './proxy-config-schema.ts';
import { isPublicSuffix } from './public-suffix.ts';

export type Conflicts = { readonly issues: readonly Issue[]; readonly warnings: readonly Issue[] };

/** `allowWildcards`: public suffixes (`github.io` or `*.github.io`) that the operator lets a wildcard span. */
export function findConflicts(config: ProxyConfig, allowWildcards: readonly string[]): Conflicts {
  const tooMany = excesses(config);
  if (tooMany.length > 0) return { issues: tooMany, warnings: [] };
  const all = [...hostsOf(config, 'rules'), ...hostsOf(config, 'callbacks')];
  const enabled = all.filter((host) => host.enabled);
  const access = accessConflicts(config, enabled);
  return {
    issues: [...all.flatMap((host) => broadWildcard(host, allowWildcards)), ...access.issues],
    warnings: [...access.warnings, ...noProxyOverlaps(config, enabled), ...shadowed(enabled)],
  };
}

// Comparing and compiling 10,000 patterns takes a tenth of a second, in which nobody else is served. Stars cost with
// each request: at these limits the longest path that is made for it costs two milliseconds (bench/policy-decide.ts).
const MAX_OF_A_KIND = 10_000;
// Each is rendered, and made into forms by which a response is masked.
const MAX_HEADERS = 1_000;
const MAX_STARS_INSIDE = 1000;
const MAX_SEARCHES = 10;

function excesses({ rules, callbacks, no_proxy: noProxy }: ProxyConfig): Issue[] {
  const efforts = rules.flatMap((rule) => rule.match_paths.map(matchingEffort));
  const counts: readonly (readonly [kind: string, count: number, max: number])[] = [
    ['match_hosts', countOf([...rules, ...callbacks], 'match_hosts'), MAX_OF_A_KIND],
    ['match_paths', efforts.length, MAX_OF_A_KIND],
    [
      'match_paths with a star before their end, as in /a/*/b,',
      efforts.filter((effort) => effort !== 'compare').length,
      MAX_STARS_INSIDE,
    ],
    [
      'match_paths with text between two stars in one segment, as in /a*b*,',
      efforts.filter((effort) => effort === 'search').length,
      MAX_SEARCHES,
    ],
    ['no_proxy', countOf([...rules, { no_proxy: noProxy }], 'no_proxy'), MAX_OF_A_KIND],
    ['headers', countOf(rules, 'headers') + countOf(callbacks, 'request_headers'), MAX_HEADERS],
  ];
  return counts.flatMap(([kind, count, max]) => {
    const msg = `All ${kind} together should have at most ${max} entries; they have ${count}`;
    return count > max ? { loc: ['rules'], msg, type: 'too_long' } : [];
  });
}

function countOf<K extends string>(
  entries: readonly { readonly [key in K]: readonly unknown[] }[],
  key: K,
): number {
  return entries.reduce((sum, entry) => sum + entry[key].length, 0);
}

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

function broadWildcard({ pattern, loc }: HostEntry, allowWildcards: readonly string[]): Issue[] {
  if (!pattern.isWildcard || !isPublicSuffix(pattern.host)) return [];
  if (allowWildcards.some((allowed) => allowed.toLowerCase().replace(/^\*\./, '') === pattern.host))
    return [];
  const msg = `Names under ${pattern.host} belong to many owners; write a wildcard below one of them, as in *.example.${pattern.host}, or have the operator list it in allow_wildcards`;
  return [{ loc, msg, type: 'value_error' }];
}

function accessConflicts({ access_control: access }: ProxyConfig, hosts: readonly HostEntry[]): Conflicts {
  if (access === undefined) return { issues: [], warnings: [] };
  const judged =
    access.allow_list === undefined
      ? denied(access.deny_list ?? [], hosts)
      : allowed(access.allow_list, hosts);
  return {
    issues: judged.filter(({ type }) => type === 'value_error'),
    warnings: judged.filter(({ type }) => type !== 'value_error'),
  };
}

function denied(denyList: readonly string[], hosts: readonly HostEntry[]): Issue[] {
  const overlap = compareWith(parseAll(denyList));
  return hosts.flatMap(({ loc, pattern }) => {
    const whole = overlap.holding(pattern);
    if (whole !== undefined)
      return {
        loc,
        msg: `The deny_list denies this host, by ${whole.text}; keep one of the two`,
        type: 'value_error',
      };
    const part = overlap.meeting(pattern);
    return part === undefined
      ? []
      : { loc, msg: `The deny_list denies a part of this, by ${part.text}`, type: 'partly_denied' };
  });
}

function allowed(allowList: readonly string[], hosts: readonly HostEntry[]): Issue[] {
  const overlap = compareWith(parseAll(allowList));
  return hosts.flatMap(({ loc, pattern }) => {
    if (overlap.holding(pattern) !== undefined) return [];
    const part = overlap.meeting(pattern);
    if (part === undefined)
      return { loc, msg: 'The allow_list does not hold this host; add it there', type: 'value_error' };
    // A host that is allowed on one port is what its author meant; a wildcard of which one name is allowed may not be.
    if (!pattern.isWildcard) return [];
    return { loc, msg: `The allow_list holds only a part of this, by ${part.text}`, type: 'partly_denied' };
  });
}

function noProxyOverlaps(config: ProxyConfig, hosts: readonly HostEntry[]): Issue[] {
  const entries = noProxyEntries(config);
  const locs = new Map(entries.map(({ text, loc }) => [text, loc]));
  const overlap = compareWith(parseAll(entries.map(({ text }) => text)));
  return hosts.flatMap((host) => {
    const entry = overlap.meeting(host.pattern);
    if (entry === undefined) return [];
    const msg = `no_proxy wins: ${entry.text} is never intercepted, although ${nameOf(host)} matches it`;
    return { loc: locs.get(entry.text) ?? host.loc, msg, type: 'no_proxy_overlap' };
  });
}

/** Hosts whose every request an entry before them takes: a rule takes them from callbacks, the first from those behind it. */
function shadowed(hosts: readonly HostEntry[]): Issue[] {
  const rules = createOverlapIndex<HostEntry>();
  const takers = { rules: createOverlapIndex<HostEntry>(), callbacks: createOverlapIndex<HostEntry>() };
  return hosts.flatMap((host) => {
    const fromRules = host.list === 'callbacks' ? rules.holding(host.pattern) : undefined;
    const taker = fromRules ?? takers[host.list].holding(host.pattern);
    if (host.list === 'rules') rules.add(host.pattern, host);
    if (!host.readsPath) takers[host.list].add(host.pattern, host);
    if (taker === undefined || (taker.index === host.index && taker.list === host.list)) return [];
    return {
      loc: host.loc,
      msg: `Without effect: ${nameOf(taker)} comes first for this host`,
      type: 'shadowed',
    };
  });
}

type Comparison = Pick<OverlapIndex<Destination>, 'holding' | 'meeting'>;

/** Compares hosts with a list: names as patterns, an address with the ranges. */
function compareWith(destinations: readonly Destination[]): Comparison {
  const names = createOverlapIndex<Destination>();
  for (const destination of destinations)
    if (destination.kind === 'names') names.add(destination.pattern, destination);
  const ranges = destinations.filter((destination) => destination.kind === 'range');
  const inRanges = ({ host, port }: HostPattern, holdsAllPorts: boolean): Destination | undefined => {
    const address = parseAddress(host);
    if (address === undefined) return undefined;
    return ranges.find((entry) => {
      const portsFit =
        entry.port === undefined || entry.port === port || (!holdsAllPorts && port === undefined);
      return portsFit && cidrContains(entry.range, address);
    });
  };
  return {
    holding: (pattern) => (pattern.kind === 'name' ? names.holding(pattern) : inRanges(pattern, true)),
    meeting: (pattern) => (pattern.kind === 'name' ? names.meeting(pattern) : inRanges(pattern, false)),
  };
}

function parseAll(texts: readonly string[]): Destination[] {
  return texts.map(parseDestination).filter((destination) => typeof destination !== 'string');
}

function nameOf({ list, index }: HostEntry): string {
  return `${list}[${index}]`;
}
