// Everything that is decided from a request head alone, and the canonical head that is sent in its place. Pure. What the plan
// says is what is forwarded: nothing is read from the client's bytes again.
import { METHODS } from 'node:http';
import { readConnectionFields } from '../http1/connection-fields.ts';
import { expectsContinue } from '../http1/expect.ts';
import {
  compileNames,
  Field,
  isFieldNamed,
  isFieldNamedLoosely,
  type NameTest,
} from '../http1/field-name.ts';
import { type Framing, requestFraming } from '../http1/framing.ts';
import { isHeadError } from '../http1/head-error.ts';
import { countField, fieldValue, findField, type RequestHead } from '../http1/head-parser.ts';
import { fieldLine, rewriteRequestHead } from '../http1/head-writer.ts';
import { type Refusal, refusalOfHead, refuse } from './refusal.ts';

export type RequestPlan = {
  readonly head: RequestHead;
  readonly method: string;
  /** Path and query, byte for byte as sent. */
  readonly target: string;
  /** Host, byte for byte as sent. */
  readonly host: string;
  readonly framing: Framing;
  readonly drop: number[];
  readonly expectsContinue: boolean;
  readonly isUpgrade: boolean;
  /** The connection is closed after the response, by the request or by its version of HTTP. */
  readonly endsConnection: boolean;
};

export function planRequest(head: RequestHead): RequestPlan | Refusal {
  const { method } = head;
  if (!forwarded.has(method)) return refuse('method_refused');
  const framing = requestFraming(head);
  if (isHeadError(framing)) return refusalOfHead(framing);
  const target = head.bytes.toString('latin1', head.targetStart, head.targetEnd);
  if (!target.startsWith('/')) return refuse('target_form_refused');
  const host = countField(head, Field.host) === 1 ? fieldValue(head, findField(head, Field.host)) : '';
  if (!HOST.test(host)) return refuse('host_invalid');
  const connection = readConnectionFields(head);
  if (isHeadError(connection)) return refusalOfHead(connection);
  const waitsForContinue = expectsContinue(head);
  if (isHeadError(waitsForContinue)) return refusalOfHead(waitsForContinue);
  const isUpgrade = connection.upgradeToken === 'websocket' && method === 'GET' && head.minor === 1;
  if (isUpgrade && framing.kind !== 'none') return refuse('malformed_request');
  return {
    head,
    method,
    target,
    host,
    framing,
    drop: connection.drop,
    expectsContinue: waitsForContinue && framing.kind !== 'none',
    isUpgrade,
    endsConnection: connection.close || head.minor === 0,
  };
}

/** The values of a field, `name` in lower case. */
export function valuesOf({ head }: RequestPlan, name: string): readonly string[] {
  const { bytes, fields } = head;
  const values: string[] = [];
  for (let i = 0; i < fields.count; i += 1)
    if (isFieldNamed(bytes, fields.nameStart(i), fields.nameEnd(i), name)) values.push(fieldValue(head, i));
  return values;
}

export type HeadChange = {
  /** The caller's credentials that must not reach the target. */
  readonly withheld: NameTest;
  /** Names of cookies that are removed from Cookie, where that field passes. */
  readonly withoutCookies: ReadonlySet<string>;
  /** The value of Cookie as the target gets it; '' is none. */
  mapCookies?: ((value: string) => string) | undefined;
  /** Besides those of the gateway. */
  readonly added?: readonly (readonly [name: string, value: string])[] | undefined;
  readonly clientAddress: string | undefined;
  readonly scheme: 'http' | 'https';
};

/**
 * The bytes that node:http parses, which are those that the target gets but for what frames them on its connection: without
 * fields of one hop, forwarding fields and withheld credentials, with the gateway's own forwarding fields.
 */
export function canonicalHead(plan: RequestPlan, change: HeadChange): Buffer {
  const { head, drop } = plan;
  const { bytes, fields } = head;
  const append: Buffer[] = [];
  const changesCookies = change.withoutCookies.size > 0 || change.mapCookies !== undefined;
  for (let i = 0; i < fields.count; i += 1) {
    const [start, end] = [fields.nameStart(i), fields.nameEnd(i)];
    if (
      fields.id(i) === Field.expect ||
      isForwarding(bytes, start, end) ||
      change.withheld(bytes, start, end)
    )
      drop[i] = 1;
    else if (changesCookies && isFieldNamedLoosely(bytes, start, end, 'cookie')) {
      drop[i] = 1;
      const own = withoutCookies(fieldValue(head, i), change.withoutCookies);
      const rest = change.mapCookies?.(own) ?? own;
      if (rest !== '') append.push(fieldLine('Cookie', rest));
    }
  }
  if (change.clientAddress !== undefined) append.push(fieldLine('X-Forwarded-For', change.clientAddress));
  append.push(fieldLine('X-Forwarded-Host', plan.host), protoLines[change.scheme]);
  for (const [name, value] of change.added ?? []) append.push(fieldLine(name, value));
  const canonical = rewriteRequestHead(head, { drop, append });
  // A response to HTTP/1.0 must not be chunked: node:http decides that by the version.
  if (head.minor === 0) canonical[plan.method.length + plan.target.length + MINOR_OFFSET] = ZERO;
  return canonical;
}

/** The length of ` ` and ` HTTP/1.` around the target. */
const MINOR_OFFSET = 9;
const ZERO = 0x30;

const HOST = /^(?:[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i;

const protoLines = {
  http: fieldLine('X-Forwarded-Proto', 'http'),
  https: fieldLine('X-Forwarded-Proto', 'https'),
};

/** The methods of node:http's parser, without those of proxies and TRACE, which would have the target echo the request. */
const forwarded: ReadonlySet<string> = new Set(
  METHODS.filter((name) => name !== 'CONNECT' && name !== 'TRACE'),
);

const FORWARDED_PREFIX = 'x-forwarded-';
const forwardingNames = compileNames([
  'forwarded',
  'forwarded-for',
  'x-forwarded',
  'x-real-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'true-client-ip',
  'cf-connecting-ip',
  'fastly-client-ip',
  // By these some servers take another path than the one that was authorized.
  'x-original-url',
  'x-rewrite-url',
]);

/** A field by which a target would believe the client about who it is, or about what it asked. */
function isForwarding(bytes: Buffer, start: number, end: number): boolean {
  const prefixEnd = start + FORWARDED_PREFIX.length;
  if (end > prefixEnd && isFieldNamedLoosely(bytes, start, prefixEnd, FORWARDED_PREFIX)) return true;
  return forwardingNames(bytes, start, end);
}

function withoutCookies(value: string, names: ReadonlySet<string>): string {
  const pairs = value.split(';').map((pair) => pair.trim());
  return pairs.filter((pair) => pair !== '' && !names.has(pair.split('=', 1)[0]?.trim() ?? '')).join('; ');
}
