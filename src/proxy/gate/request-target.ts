// Finds the authority of a request: in a tunnel that of the CONNECT, on the proxy port that of the request target. Host and
// an absolute-form target must agree with it, so that the host that was checked is the host that is dialled. Pure.
import { Field, isExactly } from '../../http1/field-name.ts';
import { type RequestHead, fieldValue, findField } from '../../http1/head-parser.ts';
import { type Authority, parseAuthority } from '../../policy/authority/authority.ts';
import type { Scheme } from '../context.ts';
import { type Refusal, isRefusal, refuse } from '../refusal.ts';

export type RequestTarget = {
  readonly authority: Authority;
  /** Origin-form as it will be sent, or `*`. */
  readonly path: string;
  /** The target that is sent, if it differs from the received one (absolute-form). */
  readonly rewritten: Buffer | undefined;
  /** The Host field to add to an HTTP/1.0 request that has none. */
  readonly addedHost: string | undefined;
};

const SLASH = 0x2f;
const ASTERISK = 0x2a;

export function defaultPort(scheme: Scheme): number {
  return scheme === 'https' ? 443 : 80;
}

/** The target of a request inside a tunnel to `tunnel` (RFC 9112 §3.2, RFC 9110 §7.4). */
export function targetInTunnel(
  head: RequestHead,
  tunnel: Authority,
  scheme: Scheme,
): RequestTarget | Refusal {
  const first = head.bytes[head.targetStart];
  const raw = head.bytes.toString('latin1', head.targetStart, head.targetEnd);
  if (first === SLASH) return targetWithHost(head, tunnel, scheme, raw, undefined);
  if (first === ASTERISK) return asteriskTarget(head, tunnel, scheme, raw);
  const absolute = parseAbsolute(raw, head.method);
  if (!absolute) return refuse('target_invalid', 'neither origin-form nor absolute-form');
  if (absolute.scheme !== scheme) return refuse('target_invalid', 'scheme of another connection');
  const named = parseAuthority(absolute.authority, defaultPort(scheme));
  if (typeof named === 'string') return refuse('authority_invalid', named);
  if (named.text !== tunnel.text) return refuse('authority_mismatch', 'absolute-form');
  const { path } = absolute;
  return targetWithHost(head, tunnel, scheme, path, Buffer.from(path, 'latin1'));
}

/** The target of a request on the proxy port: absolute-form with http:// only (RFC 9112 §3.2.2). */
export function targetOnProxyPort(head: RequestHead): RequestTarget | Refusal {
  const raw = head.bytes.toString('latin1', head.targetStart, head.targetEnd);
  if (raw.startsWith('/') || raw === '*') return refuse('not_a_proxy_request');
  const absolute = parseAbsolute(raw, head.method);
  if (!absolute) return refuse('target_invalid', 'not absolute-form');
  if (absolute.scheme === 'https') return refuse('use_connect');
  if (absolute.scheme !== 'http') return refuse('target_invalid', 'scheme');
  const authority = parseAuthority(absolute.authority, 80);
  if (typeof authority === 'string') return refuse('authority_invalid', authority);
  const { path } = absolute;
  const target = targetWithHost(head, authority, 'http', path, Buffer.from(path, 'latin1'));
  // Not 421 (misdirected): without a tunnel, the Host field contradicts the target of the same request.
  return isRefusal(target) && target.refused === 'authority_mismatch' ? refuse('host_mismatch') : target;
}

function asteriskTarget(
  head: RequestHead,
  tunnel: Authority,
  scheme: Scheme,
  raw: string,
): RequestTarget | Refusal {
  if (raw !== '*' || head.method !== 'OPTIONS') return refuse('target_invalid', 'asterisk-form');
  return targetWithHost(head, tunnel, scheme, raw, undefined);
}

/** `path` and `rewritten` are those of the target. */
function targetWithHost(
  head: RequestHead,
  authority: Authority,
  scheme: Scheme,
  path: string,
  rewritten: Buffer | undefined,
): RequestTarget | Refusal {
  const at = findField(head, Field.host);
  if (at === -1) {
    if (head.minor === 1) return refuse('host_invalid', 'missing');
    const { text, port } = authority;
    const addedHost = port === defaultPort(scheme) ? text.slice(0, text.lastIndexOf(':')) : text;
    return { authority, path, rewritten, addedHost };
  }
  for (let i = at + 1; i < head.fields.count; i += 1) {
    if (head.fields.id(i) === Field.host) return refuse('host_invalid', 'more than one');
  }
  const { bytes, fields } = head;
  // The usual case: already canonical, so it is not parsed.
  if (isExactly(bytes, fields.valueStart(at), fields.valueEnd(at), authority.text))
    return { authority, path, rewritten, addedHost: undefined };
  const named = parseAuthority(fieldValue(head, at), defaultPort(scheme));
  if (typeof named === 'string') return refuse('host_invalid', named);
  if (named.text !== authority.text) return refuse('authority_mismatch', 'Host');
  return { authority, path, rewritten, addedHost: undefined };
}

/**
 * Splits `scheme://authority/path?query`. An empty path becomes `/`, or `*` for OPTIONS (RFC 9112 §3.2.4). The scheme is
 * returned in lower case.
 */
function parseAbsolute(
  raw: string,
  method: string,
): { scheme: string; authority: string; path: string } | undefined {
  const colon = raw.indexOf('://');
  if (colon <= 0) return undefined;
  const start = colon + 3;
  let end = start;
  while (end < raw.length && raw[end] !== '/' && raw[end] !== '?') end += 1;
  const rest = raw.slice(end);
  const isServerWide = rest === '' && method === 'OPTIONS';
  const path = isServerWide ? '*' : rest.startsWith('/') ? rest : `/${rest}`;
  return { scheme: raw.slice(0, colon).toLowerCase(), authority: raw.slice(start, end), path };
}
