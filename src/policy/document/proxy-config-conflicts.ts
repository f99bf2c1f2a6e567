// What the entries of a proxy_config mean for one another: wildcards that are too broad, rules that access_control
// forbids, and, as warnings, entries that do less than their author may expect.
import type { Issue, Loc } from '../../base/schema.ts';
import { type Destination, indexDestinations, parseDestination } from '../match/destination-list.ts';
import { parseHostPattern } from '../match/host-pattern.ts';
import { matchingEffort } from '../match/path-pattern.ts';
import { noProxyEntries, type ProxyConfig } from './proxy-config-schema.ts';
import { isPublicSuffix } from '../authority/public-suffix.ts';
import { createSpanIndex, spanOfPattern } from '../match/span-index.ts';

export type Conflicts = { readonly issues: readonly Issue[]; readonly warnings: readonly Issue[] };

/** `allowWildcards`: public suffixes (`github.io` or `*.github.io`) that the operator allows a wildcard to cover. */
export function findConflicts(config: ProxyConfig, allowWildcards: readonly string[]): Conflicts {
  const tooMany = excessiveStars(config);
  if (tooMany.length > 0) return { issues: tooMany, warnings: [] };
  const all = [...hostsOf(config, 'rules'), ...hostsOf(config, 'callbacks')];
  const enabled = all.filter((host) => host.enabled);
  const access = accessConflicts(config, enabled);
  return {
    issues: [...all.flatMap((host) => broadWildcard(host, allowWildcards)), ...access.issues],
    warnings: [...access.warnings, ...noProxyOverlaps(config, enabled), ...shadowed(enabled)],
  };
}

// Stars cost time with each request: at these limits the longest path that an attacker can craft for them costs two
// milliseconds (bench/policy-decide.ts).
const MAX_STARS_INSIDE = 1000;
const MAX_SEARCHES = 10;

function excessiveStars({ rules }: ProxyConfig): Issue[] {
  const efforts = rules.flatMap((rule) => rule.match_paths.map(matchingEffort));
  const searches = efforts.filter((effort) => effort === 'search').length;
  const starsInside = searches + efforts.filter((effort) => effort === 'look').length;
  const excess = (kind: string, count: number, max: number): Issue[] => {
    const msg = `All match_paths with ${kind}, together must have at most ${max} entries; they have ${count}`;
    return count > max ? [{ loc: ['rules'], msg, type: 'too_long' }] : [];
  };
  return [
    ...excess('a star before their end, as in /a/*/b', starsInside, MAX_STARS_INSIDE),
    ...excess('text between two stars in one segment, as in /a*b*', searches, MAX_SEARCHES),
  ];
}

type HostEntry = ReturnType<typeof hostsOf>[number];

function hostsOf(config: ProxyConfig, list: 'rules' | 'callbacks') {
  return config[list].flatMap((entry, index) =>
    entry.match_hosts.flatMap((text, i) => {
      const pattern = parseHostPattern(text);
      const readsPath = 'match_paths' in entry && entry.match_paths.length > 0;
      if (typeof pattern === 'string') return [];
      return {
        pattern,
        span: spanOfPattern(pattern),
        port: pattern.port,
        loc: [list, index, 'match_hosts', i] satisfies Loc,
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
  const msg = `Names under ${pattern.host} belong to many owners; use a narrower wildcard, as in *.example.${pattern.host}, or have the operator list this one in allow_wildcards`;
  return [{ loc, msg, type: 'value_error' }];
}

function accessConflicts({ access_control: access }: ProxyConfig, hosts: readonly HostEntry[]): Conflicts {
  if (access === undefined) return { issues: [], warnings: [] };
  const found =
    access.allow_list === undefined
      ? denials(access.deny_list ?? [], hosts)
      : absences(access.allow_list, hosts);
  return {
    issues: found.filter(({ type }) => type === 'value_error'),
    warnings: found.filter(({ type }) => type !== 'value_error'),
  };
}

function denials(denyList: readonly string[], hosts: readonly HostEntry[]): Issue[] {
  const index = indexDestinations(parseAll(denyList));
  return hosts.flatMap(({ loc, span, port }): Issue[] => {
    const whole = index.containing([span], port)[0]?.entry.text;
    if (whole !== undefined) {
      const msg = `The entry ${whole} of the deny_list denies this host; remove one of the two`;
      return [{ loc, msg, type: 'value_error' }];
    }
    const part = index.overlapping(span, port)?.entry.text;
    const msg = `The entry ${part} of the deny_list denies a part of this`;
    return part === undefined ? [] : [{ loc, msg, type: 'partly_denied' }];
  });
}

function absences(allowList: readonly string[], hosts: readonly HostEntry[]): Issue[] {
  const index = indexDestinations(parseAll(allowList));
  return hosts.flatMap(({ loc, pattern, span, port }): Issue[] => {
    if (index.containing([span], port).length > 0) return [];
    const part = index.overlapping(span, port)?.entry.text;
    if (part === undefined)
      return [{ loc, msg: 'The allow_list does not contain this host; add it there', type: 'value_error' }];
    // A host that is allowed on one port is probably intended; a wildcard of which one name is allowed may not be.
    const msg = `The allow_list allows only a part of this, with the entry ${part}`;
    return pattern.isWildcard ? [{ loc, msg, type: 'partly_denied' }] : [];
  });
}

function noProxyOverlaps(config: ProxyConfig, hosts: readonly HostEntry[]): Issue[] {
  const entries = noProxyEntries(config);
  const locs = new Map(entries.map(({ text, loc }) => [text, loc]));
  const index = indexDestinations(parseAll(entries.map(({ text }) => text)));
  return hosts.flatMap((host) => {
    const entry = index.overlapping(host.span, host.port)?.entry;
    if (entry === undefined) return [];
    const msg = `no_proxy wins: ${entry.text} is never intercepted, although ${nameOf(host)} matches it`;
    return { loc: locs.get(entry.text) ?? host.loc, msg, type: 'no_proxy_overlap' };
  });
}

/** Hosts that never take effect: a rule wins over every callback, and the first entry of a list over those after it. */
function shadowed(hosts: readonly HostEntry[]): Issue[] {
  const rules = hosts.filter(({ list }) => list === 'rules');
  const everyRule = createSpanIndex(rules);
  const winners = {
    rules: createSpanIndex(rules.filter(({ readsPath }) => !readsPath)),
    callbacks: createSpanIndex(hosts.filter(({ list }) => list === 'callbacks')),
  };
  return hosts.flatMap((host) => {
    const { span, port, list, index, loc } = host;
    const fromRules = list === 'callbacks' ? everyRule.containing([span], port)[0] : undefined;
    const winner = fromRules ?? winners[list].containing([span], port)[0];
    if (winner === undefined || (winner.list === list && winner.index >= index)) return [];
    return { loc, msg: `No effect: ${nameOf(winner)} comes first for this host`, type: 'shadowed' };
  });
}

function parseAll(texts: readonly string[]): Destination[] {
  return texts.map(parseDestination).filter((destination) => typeof destination !== 'string');
}

function nameOf({ list, index }: HostEntry): string {
  return `${list}[${index}]`;
}
