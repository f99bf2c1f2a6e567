// host:port in one canonical spelling. Everything that checks, dials, verifies or caches a destination uses this value,
// so that no two of them can read one text in two ways.
import { parseAddress } from '../../base/address.ts';

export type HostKind = 'name' | 'ipv4' | 'ipv6';
export type Host = { readonly host: string; readonly kind: HostKind };

/** `host` is canonical and without brackets; `text` is `host:port`, with brackets around IPv6. */
export type Authority = Host & { readonly port: number; readonly text: string };

export type AuthorityErrorCode =
  | 'empty'
  | 'userinfo'
  | 'trailing_junk'
  | 'character_invalid'
  | 'label_invalid'
  | 'too_long'
  | 'ipv4_invalid'
  | 'ipv6_invalid'
  | 'ipv6_unbracketed'
  | 'port_missing'
  | 'port_invalid';

/**
 * Parses authority-form (RFC 9110 §7.1, RFC 3986 §3.2 without userinfo); a string is the error code.
 * Without `defaultPort` the port is required, as in CONNECT (RFC 9110 §9.3.6).
 */
export function parseAuthority(text: string, defaultPort?: number): Authority | AuthorityErrorCode {
  const split = splitPort(text);
  if (typeof split === 'string') return split;
  const host = parseHost(split.host);
  if (typeof host === 'string') return host;
  const port = split.port === undefined ? (defaultPort ?? 'port_missing') : parsePort(split.port);
  if (typeof port === 'string') return port;
  return { host: host.host, kind: host.kind, port, text: formatAuthority(host, port) };
}

/** Parses the host of an authority: a name, a dotted quad, or IPv6 in brackets. */
export function parseHost(text: string): Host | AuthorityErrorCode {
  if (text.startsWith('[')) return parseBracketed(text);
  const name = text.toLowerCase();
  const host = name.endsWith('.') ? name.slice(0, -1) : name;
  // WHATWG URL: a name whose last label is a number is an IPv4 address or invalid. This rejects `127.1` and `0x7f.1`,
  // and `127.0.0.1.`, which a resolver would look up as a name.
  if (ENDS_IN_NUMBER.test(host.slice(host.lastIndexOf('.') + 1)))
    return parseAddress(name) === undefined ? 'ipv4_invalid' : { host: name, kind: 'ipv4' };
  if (host === '') return text === '' ? 'empty' : 'label_invalid';
  if (host.length > MAX_NAME_LENGTH) return 'too_long';
  return host.split('.').every((label) => LABEL.test(label)) ? { host, kind: 'name' } : 'label_invalid';
}

/** Formats an authority, or without a port only its host, with brackets around IPv6. */
export function formatAuthority({ host, kind }: Host, port: number | undefined): string {
  const written = kind === 'ipv6' ? `[${host}]` : host;
  return port === undefined ? written : `${written}:${port}`;
}

/** Strict port: 1 to 65535, digits only, no leading zero. */
export function parsePort(text: string): number | 'port_invalid' {
  const port = /^[1-9][0-9]{0,4}$/.test(text) ? Number(text) : 0;
  return port >= 1 && port <= 65_535 ? port : 'port_invalid';
}

// RFC 1035 §2.3.4, in characters, without the root's dot.
const MAX_NAME_LENGTH = 253;
// RFC 5890 §2.3.1 LDH labels (an A-label is one), and the underscore that real names contain.
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const ENDS_IN_NUMBER = /^(?:[0-9]+|0x[0-9a-f]*)$/;

function splitPort(text: string): { host: string; port: string | undefined } | AuthorityErrorCode {
  if (text === '') return 'empty';
  if (text.length > MAX_NAME_LENGTH + ':65535'.length + 2) return 'too_long';
  if (text.includes('@')) return 'userinfo';
  if (/[/?#\\]/.test(text)) return 'trailing_junk';
  if (!/^[A-Za-z0-9._:[\]-]+$/.test(text)) return 'character_invalid';
  const colon = text.startsWith('[') ? text.indexOf(']') + 1 : text.indexOf(':');
  if (text.startsWith('[') && colon === 0) return 'ipv6_invalid';
  if (colon < 0 || colon === text.length) return { host: text, port: undefined };
  if (text[colon] !== ':') return 'trailing_junk';
  const port = text.slice(colon + 1);
  if (port.includes(':')) return isBareV6(text) ? 'ipv6_unbracketed' : 'port_invalid';
  return { host: text.slice(0, colon), port };
}

function isBareV6(text: string): boolean {
  return parseAddress(text) !== undefined || parseAddress(text.slice(0, text.lastIndexOf(':'))) !== undefined;
}

function parseBracketed(text: string): Host | AuthorityErrorCode {
  const address = text.endsWith(']') ? parseAddress(text.slice(1, -1)) : undefined;
  return address?.family === 6 ? { host: address.text, kind: 'ipv6' } : 'ipv6_invalid';
}
