// NO_PROXY: the hosts that clients reach without the proxy. Clients interpret an entry differently, so each entry counts
// in its widest meaning: `example.com` also covers every name below it.
import { type Address, type Cidr, cidrContains, parseAddress } from '../../base/address.ts';
import { type Destination, parseDestination } from '../../policy/match/destination-list.ts';
import { type HostPattern, parseHostPattern } from '../../policy/match/host-pattern.ts';
import { type ProxyConfig, noProxyEntries } from '../../policy/document/proxy-config-schema.ts';

/** `inherited`: the caller's own lists, which stay complete. Of ours, entries that would bypass a rule's host are left out. */
export function toNoProxy(config: ProxyConfig | undefined, inherited: readonly (string | undefined)[]) {
  const covered = config ? coveredHosts(config) : [];
  const callers = entriesOf(inherited);
  const ours = [...LOOPBACK, ...(config ? policyEntries(config) : [])].filter(
    (entry) => !covered.some((pattern) => hides(entry, pattern)),
  );
  // Entries of the caller that make a host of a rule or callback bypass the proxy: no header is injected there.
  const conflicts = [...new Set(callers)].flatMap((entry) =>
    covered.filter((pattern) => hides(entry, pattern)).map(({ text }) => ({ entry, pattern: text })),
  );
  return { entries: [...new Set([...callers, ...ours])], conflicts };
}

/** The entries of NO_PROXY variables with which clients reach this host past the proxy. */
export function entriesHiding(host: string, inherited: readonly (string | undefined)[]): readonly string[] {
  const pattern = parseHostPattern(host);
  if (typeof pattern === 'string') return [];
  return entriesOf(inherited).filter((entry) => hides(entry, pattern));
}

function entriesOf(lists: readonly (string | undefined)[]): readonly string[] {
  return lists.flatMap((list) => (list ?? '').split(/[\s,]+/)).filter((entry) => entry !== '');
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
  const address = parseAddress(pattern.host);
  if (address !== undefined && hidesAddress(entryText, address, pattern.port)) return true;
  if (hidesSuffix(entryText, pattern)) return true;
  const entry = parseDestination(entryText);
  if (typeof entry === 'string') return false;
  if (entry.port !== undefined && pattern.port !== undefined && entry.port !== pattern.port) return false;
  if (entry.kind === 'range') return address !== undefined && cidrContains(entry.range, address);
  const { host } = entry.pattern;
  return isWithin(pattern.host, host) || (pattern.isWildcard && isWithin(host, pattern.host));
}

/** `*example.com`: for undici and proxy-from-env (axios) whatever ends so, with or without a dot before it. */
function hidesSuffix(entryText: string, { host, isWildcard }: HostPattern): boolean {
  const [, written] = /^\*([^*.:]+(?:\.[^*.:]+)*)\.?(?::[0-9]+)?$/.exec(entryText) ?? [];
  const suffix = written?.toLowerCase();
  return suffix !== undefined && (host.endsWith(suffix) || (isWildcard && isWithin(suffix, host)));
}

/** Spellings that some client accepts: a range with host bits or a netmask, part of an address, an address with stars. */
function hidesAddress(entryText: string, address: Address, port: number | undefined): boolean {
  const [, bracketed, bare = '', rest = ''] = /^(?:\[([^\]]*)\]|([^/]*))(.*)$/.exec(entryText) ?? [];
  // In brackets the port is behind them; an IPv4 entry contains no other colon.
  const [, head = '', writtenPort] = /^([^:]*):([0-9]+)$/.exec(bare) ?? ['', bare];
  const [, width = '', ownPort = writtenPort] = /^(?:\/([^:]*))?(?::([0-9]+))?$/.exec(rest) ?? [];
  if (ownPort !== undefined && port !== undefined && Number(ownPort) !== port) return false;
  const text = bracketed ?? head;
  if (width !== '') {
    const range = wideRange(text, width);
    return range !== undefined && cidrContains(range, address);
  }
  return isPartOf(text.toLowerCase(), address);
}

/** `10.1.2.3/8` and `10.0.0.0/255.0.0.0`: what is behind the prefix counts for nothing. */
function wideRange(text: string, width: string): Cidr | undefined {
  const base = parseAddress(text);
  if (base === undefined) return undefined;
  const { family, bytes } = base;
  const prefix = /^[0-9]{1,3}$/.test(width) ? Number(width) : prefixOfMask(width, family);
  return prefix === undefined || prefix > bytes.length * 8 ? undefined : { family, bytes, prefix };
}

function prefixOfMask(text: string, family: 4 | 6): number | undefined {
  const mask = parseAddress(text);
  if (mask?.family !== family) return undefined;
  const bits = [...mask.bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  return /^1*/.exec(bits)?.[0].length;
}

/** `10.`, `10.0`, `.0.1`, `10.*`, `fd00:*`: whole groups, or an address with stars. */
function isPartOf(text: string, { family, text: whole }: Address): boolean {
  const separator = family === 4 ? '.' : ':';
  if (!(family === 4 ? /^[0-9.*]+$/ : /^[0-9a-f:.*]+$/).test(text)) return false;
  if (!(family === 4 ? /[0-9]/ : /:/).test(text)) return false;
  const pieces = text.replaceAll('.', '\\.').split(/\*+/);
  // A regular expression with many stars could take very long; no client needs more.
  if (pieces.length > 1) return pieces.length > 5 || new RegExp(`^${pieces.join('.*')}$`).test(whole);
  const part = family === 4 ? text.replace(/^\.+|\.+$/g, '') : text.replace(/^:(?!:)|(?<!:):$/g, '');
  return `${separator}${whole}${separator}`.includes(`${separator}${part}${separator}`);
}

function isWithin(name: string, zone: string): boolean {
  return name === zone || name.endsWith(`.${zone}`);
}
