// Everything that is decided from a request head alone, before the policy decides: its authority, its framing, which of
// its fields are not forwarded. Pure. What the plan says is what is sent: nothing is read from the head again.
import { readConnectionFields } from '../../http1/connection-fields.ts';
import { type HeadError, headErrors, isHeadError } from '../../http1/head-error.ts';
import { isFieldNamed } from '../../http1/field-name.ts';
import { expectsContinue } from '../../http1/expect.ts';
import { type Framing, requestFraming } from '../../http1/framing.ts';
import type { RequestHead } from '../../http1/head-parser.ts';
import type { Authority } from '../../policy/authority/authority.ts';
import { type Refusal, isRefusal, refuse } from '../refusal.ts';
import type { Scheme } from '../context.ts';
import { type RequestTarget, targetInTunnel, targetOnProxyPort } from './request-target.ts';

export type RequestPlan = {
  readonly head: RequestHead;
  readonly target: RequestTarget;
  readonly scheme: Scheme;
  readonly framing: Framing;
  /** 1 for each field that is not forwarded. */
  readonly drop: number[];
  readonly expectsContinue: boolean;
  readonly isUpgrade: boolean;
  readonly isIdempotent: boolean;
  /** The client's connection is closed after the response, by its request or by its version of HTTP. */
  readonly endsConnection: boolean;
};

/** `tunnel` is undefined on the proxy port. */
export function planRequest(
  head: RequestHead,
  tunnel: Authority | undefined,
  scheme: Scheme,
): RequestPlan | Refusal {
  const isIdempotent = idempotent.has(head.method);
  if (!isIdempotent && neverForwarded.has(head.method.toUpperCase())) return refuse('method_refused');
  // RFC 9110 §7.6.2: Max-Forwards asks the proxies on the way themselves, and with zero this one must respond.
  if (head.method === 'OPTIONS' && countsHops(head)) return refuse('method_refused', 'max_forwards');
  const target = tunnel ? targetInTunnel(head, tunnel, scheme) : targetOnProxyPort(head);
  if (isRefusal(target)) return target;
  const framing = requestFraming(head);
  if (isHeadError(framing)) return refusalOfError(framing);
  const connection = readConnectionFields(head);
  if (isHeadError(connection)) return refusalOfError(connection);
  const waitsForContinue = expectsContinue(head);
  if (isHeadError(waitsForContinue)) return refusalOfError(waitsForContinue);
  const isUpgrade =
    connection.upgrade &&
    connection.upgradeToken === 'websocket' &&
    head.method === 'GET' &&
    head.minor === 1;
  if (isUpgrade && framing.kind !== 'none') return refuse('malformed_request', 'upgrade with a body');
  return {
    head,
    target,
    scheme,
    framing,
    drop: connection.drop,
    expectsContinue: waitsForContinue && framing.kind !== 'none',
    isUpgrade,
    isIdempotent,
    endsConnection: connection.close || head.minor === 0,
  };
}

/** The refusal for an error of the parser, whose text is fixed and safe to show. */
export function refusalOfError(error: HeadError): Refusal {
  const code =
    error === headErrors.methodTooLong ? 'method_refused' : (codes[error.status] ?? 'malformed_request');
  // Other codes have a hint of their own, which names the setting.
  return refuse(code, error.code, code === 'malformed_request' ? error.text : undefined);
}

/**
 * The refusal for a head that is none. What a client sends that takes the proxy port for one of TLS or SOCKS has a name, and
 * the record has the cure, because such a client cannot read the response.
 */
export function refusalOfHead(
  error: HeadError,
  firstByte: number | undefined,
  tunnel: Authority | undefined,
): Refusal {
  const protocol = firstByte === undefined || tunnel ? undefined : otherProtocols.get(firstByte);
  if (error !== headErrors.methodMalformed || !protocol) return refusalOfError(error);
  return refuse(protocol, 'the proxy URL of the client must begin with http://');
}

/** By the first byte: a TLS handshake record (RFC 8446 §5.1), SOCKS 4, SOCKS 5 (RFC 1928 §3). */
const otherProtocols: ReadonlyMap<number, 'tls_at_proxy_port' | 'socks_at_proxy_port'> = new Map([
  [0x16, 'tls_at_proxy_port'],
  [0x04, 'socks_at_proxy_port'],
  [0x05, 'socks_at_proxy_port'],
]);

const codes = {
  400: 'malformed_request',
  414: 'uri_too_long',
  417: 'expectation_failed',
  431: 'head_too_large',
  501: 'transfer_coding_refused',
  505: 'version_refused',
} as const;

/**
 * TRACE would have the upstream echo the injected fields in a body (RFC 9110 §9.3.8). CONNECT inside a tunnel asks for a
 * second proxy, for which no policy has decided. Compared in upper case, because some servers ignore the case of methods.
 */
export const neverForwarded: ReadonlySet<string> = new Set(['TRACE', 'TRACK', 'CONNECT']);

function countsHops({ bytes, fields }: RequestHead): boolean {
  for (let i = 0; i < fields.count; i += 1)
    if (isFieldNamed(bytes, fields.nameStart(i), fields.nameEnd(i), 'max-forwards')) return true;
  return false;
}

/** RFC 9110 §9.2.2. */
const idempotent: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);
