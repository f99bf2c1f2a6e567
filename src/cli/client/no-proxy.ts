// NO_PROXY: the hosts that clients reach without the proxy. Clients interpret an entry differently, so each entry counts
// in its widest meaning: `example.com` also covers every name below it.
import { cidrContains, parseAddress } from '../../policy/authority/address.ts';
import { type Destination, parseDestination } from '../../policy/match/destination-list.ts';
import { type HostPattern, parseHostPattern } from '../../policy/match/host-pattern.ts';
import { type ProxyConfig, noProxyEntries } from '../../policy/document/proxy-config-schema.ts';

/** `inherited`: the caller's own lists, which stay complete. Of ours, entries that would bypass a rule's host are left out. */
export function toNoProxy(config: ProxyConfig | undefined, inherited: readonly (string | undefined)[]) {
  const covered = config ? coveredHosts(config) : [];
  const callers = inherited.flatMap((list) => (list ?? '').split(/[\s,]+/)).filter((entry) => entry !== '');
  const ours = [...LOOPBACK, ...(config ? policyEntries(config) : [])].filter(
    (entry) => !covered.some((pattern) => hides(entry, pattern)),
  );
  // Entries of the caller that make a host of a rule or callback bypass the proxy: no header is injected there.
  const conflicts = [...new Set(callers)].flatMap((entry) =>
    covered.filter((pattern) => hides(entry, pattern)).map(({ text }) => ({ entry, pattern: text })),
  );
  return { entries: [...new Set([...callers, ...ours])], conflicts };
}

// Servers that the agent runs next to itself need no proxy.
const LOOPBACK: readonly string[] = ['localhost', '127.0.0.1', '::1'];

function coveredHosts({ rules, callbacks }: ProxyConfig): HostPattern[] {
  return [...rules, ...callbacks]
    .filter(({ enabled }) => enabled)
    .flatMap(({ match_hosts }) => match_hosts)
    .map((text) => parseHostPattern(text))
    .filter((pattern) => typeof pattern !== 'string');
}

/** Omitting an entry is always safe: the proxy tunnels such hosts. */
function policyEntries(config: ProxyConfig): string[] {
  // A client that bypasses the proxy bypasses access_control too.
  if (config.access_control !== undefined) return [];
  return noProxyEntries(config).flatMap(({ text }) => {
    const parsed = parseDestination(text);
    return typeof parsed === 'string' ? [] : (clientSpelling(parsed) ?? []);
  });
}

/** The form that most clients understand; undefined for an entry with a port, which many do not support. */
function clientSpelling(entry: Destination): string | undefined {
  if (entry.port !== undefined) return undefined;
  if (entry.kind === 'range') return entry.text.replace(/^\[|\]$/g, '');
  return entry.pattern.isWildcard ? `.${entry.pattern.host}` : entry.pattern.host;
}

function hides(entryText: string, pattern: HostPattern): boolean {
  if (entryText === '*') return true;
  const entry = parseDestination(entryText);
  if (typeof entry === 'string') return false;
  if (entry.port !== undefined && pattern.port !== undefined && entry.port !== pattern.port) return false;
  if (entry.kind === 'range') {
    const address = parseAddress(pattern.host);
    return address !== undefined && cidrContains(entry.range, address);
  }
  const { host } = entry.pattern;
  return isWithin(pattern.host, host) || (pattern.isWildcard && isWithin(host, pattern.host));
}

function isWithin(name: string, zone: string): boolean {
  return name === zone || name.endsWith(`.${zone}`);
}
