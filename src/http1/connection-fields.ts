// Reads the fields of one hop: persistence, upgrade, and which fields must not be forwarded (RFC 9110 §7.6.1). It only
// marks what to drop.
import { byteAt, classAt, COMMA, decimalAt, isOws, TOKEN } from './byte-class.ts';
import { type HeadError, headErrors } from './head-error.ts';
import { Field, type FieldId, type IdSet, fieldIdOf, idSet, isFieldNamed, isSameName } from './field-name.ts';
import type { RequestHead, ResponseHead } from './head-parser.ts';

type Head = RequestHead | ResponseHead;

export type ConnectionFields = {
  /** Connection lists `close`. */
  readonly close: boolean;
  /** Connection lists `keep-alive`. */
  readonly keepAlive: boolean;
  /** Connection lists `upgrade`. */
  readonly upgrade: boolean;
  /** The one protocol of the one Upgrade field, lower case, if Connection lists `upgrade` on HTTP/1.1. */
  readonly upgradeToken: string | undefined;
  /** 1 for each field that is hop-by-hop or nominated by Connection. Empty where a response has none of them. */
  readonly drop: ArrayLike<number>;
  /** `timeout` of Keep-Alive in seconds. */
  readonly keepAliveTimeoutSeconds: number | undefined;
};

/** Of a request the caller may mark more fields. */
export type RequestConnectionFields = ConnectionFields & { readonly drop: number[] };

/** A 1 is set for each field that is not forwarded. */
export type Drop = { [i: number]: number };

type Options = { close: boolean; keepAlive: boolean; upgrade: boolean; count: number };
const NO_OPTIONS: Options = Object.freeze({ close: false, keepAlive: false, upgrade: false, count: 0 });

// Each nomination is searched for among all fields; without a limit one 16 KiB head would cost milliseconds.
const MAX_OPTIONS = 64;
const MAX_TIMEOUT_DIGITS = 9;

// Never forwarded: fields of one hop, and the proxy's token (RFC 9110 §7.6.1, RFC 9112 §9.3, App. C.2.2, RFC 7540 §3.2.1:
// node:http2 throws on HTTP2-Settings).
const hopByHop: IdSet = idSet([
  Field.connection,
  Field.keepAlive,
  Field.proxyConnection,
  Field.proxyAuthorization,
  Field.proxyAuthenticate,
  Field.proxyOther,
  Field.te,
  Field.trailer,
  Field.upgrade,
  Field.http2Settings,
]);
// A client that nominates one of these would have it removed after the decision that was based on it.
const neverNominated: IdSet = idSet([Field.host, Field.contentLength, Field.transferEncoding, Field.expect]);

/**
 * Reads Connection, Keep-Alive and Upgrade and marks every field that ends at this hop. Errors are for requests; in
 * responses a malformed option, or one that names a framing field (some upstreams list `Transfer-Encoding`), is ignored.
 */
export function readConnectionFields(head: RequestHead): RequestConnectionFields | HeadError;
export function readConnectionFields(head: Head): ConnectionFields | HeadError;
export function readConnectionFields(head: Head): ConnectionFields | HeadError {
  const { fields } = head;
  const hasNone = !fields.hasAny(hopByHop);
  if (hasNone && !('method' in head)) return NO_CONNECTION_FIELDS;
  const drop = nothingDropped(fields.count);
  if (hasNone) return { ...NO_CONNECTION_FIELDS, drop };
  let upgradeAt = -1;
  let upgradeCount = 0;
  let keepAliveAt = -1;
  let options = NO_OPTIONS;
  for (let i = 0; i < fields.count; i++) {
    const id = fields.id(i);
    if ((hopByHop & (1 << id)) === 0) continue;
    drop[i] = 1;
    if (id === Field.connection) {
      if (options === NO_OPTIONS) options = { ...NO_OPTIONS };
      const error = readOptions(head, i, options, drop);
      if (error !== undefined) return error;
    } else if (id === Field.upgrade) {
      upgradeAt = i;
      upgradeCount++;
    } else if (id === Field.keepAlive) keepAliveAt = i;
  }
  const upgrades = options.upgrade && upgradeCount === 1 && head.minor === 1;
  return {
    close: options.close,
    keepAlive: options.keepAlive,
    upgrade: options.upgrade,
    upgradeToken: upgrades ? singleToken(head, upgradeAt) : undefined,
    drop,
    keepAliveTimeoutSeconds: keepAliveAt === -1 ? undefined : timeoutOf(head, keepAliveAt),
  };
}

/** A 0 for each field. A typed array of this size would take three times the memory. */
export function nothingDropped(count: number): number[] {
  while (zeros.length < count) zeros.push(0);
  return zeros.slice(0, count);
}

const zeros: number[] = [];

// The result for nearly every response. All of them share it, so it is frozen, `drop` included.
const NO_CONNECTION_FIELDS: ConnectionFields = Object.freeze({
  close: false,
  keepAlive: false,
  upgrade: false,
  upgradeToken: undefined,
  drop: Object.freeze([]),
  keepAliveTimeoutSeconds: undefined,
});

function readOptions(head: Head, i: number, options: Options, drop: Drop): HeadError | undefined {
  const isRequest = 'method' in head;
  const end = head.fields.valueEnd(i);
  for (let at = head.fields.valueStart(i); at < end; ) {
    const optionEnd = endOfOption(head.bytes, at, end);
    const start = skipOws(head.bytes, at, optionEnd);
    const trimmed = trimOws(head.bytes, start, optionEnd);
    at = optionEnd + 1;
    if (trimmed === start) continue;
    if (++options.count > MAX_OPTIONS) return headErrors.connectionTooLong;
    const error = isToken(head.bytes, start, trimmed)
      ? readOption(head, start, trimmed, options, drop)
      : headErrors.connectionMalformed;
    if (error !== undefined && isRequest) return error;
  }
  return undefined;
}

function readOption(
  head: Head,
  start: number,
  end: number,
  options: Options,
  drop: Drop,
): HeadError | undefined {
  const { bytes } = head;
  if (isFieldNamed(bytes, start, end, 'close')) options.close = true;
  else if (isFieldNamed(bytes, start, end, 'keep-alive')) options.keepAlive = true;
  else if (isFieldNamed(bytes, start, end, 'upgrade')) options.upgrade = true;
  else return nominate(head, start, end, drop);
  return undefined;
}

function nominate(head: Head, start: number, end: number, drop: Drop): HeadError | undefined {
  const { bytes, fields } = head;
  const id: FieldId = fieldIdOf(bytes, start, end);
  if ((neverNominated & (1 << id)) !== 0) return headErrors.connectionStripsFraming;
  for (let i = 0; i < fields.count; i++) {
    if (fields.id(i) === id && isSameName(bytes, start, end, fields.nameStart(i), fields.nameEnd(i))) {
      drop[i] = 1;
    }
  }
  return undefined;
}

/** `websocket`, never `h2c, websocket`: a list would leave the choice, and the framing, to the upstream. */
function singleToken(head: Head, i: number): string | undefined {
  const start = head.fields.valueStart(i);
  const end = head.fields.valueEnd(i);
  if (start === end || !isToken(head.bytes, start, end)) return undefined;
  return head.bytes.toString('latin1', start, end).toLowerCase();
}

function timeoutOf(head: Head, i: number): number | undefined {
  const { bytes } = head;
  const end = head.fields.valueEnd(i);
  for (let at = head.fields.valueStart(i); at < end; ) {
    const optionEnd = endOfOption(bytes, at, end);
    const start = skipOws(bytes, at, optionEnd);
    const digits = start + 'timeout='.length;
    if (isFieldNamed(bytes, start, Math.min(digits, optionEnd), 'timeout=')) {
      return decimalAt(bytes, digits, trimOws(bytes, digits, optionEnd), MAX_TIMEOUT_DIGITS);
    }
    at = optionEnd + 1;
  }
  return undefined;
}

function endOfOption(bytes: Buffer, from: number, end: number): number {
  let at = from;
  while (at < end && byteAt(bytes, at) !== COMMA) at++;
  return at;
}

function skipOws(bytes: Buffer, from: number, end: number): number {
  let at = from;
  while (at < end && isOws(byteAt(bytes, at))) at++;
  return at;
}

function trimOws(bytes: Buffer, start: number, from: number): number {
  let end = from;
  while (end > start && isOws(byteAt(bytes, end - 1))) end--;
  return end;
}

function isToken(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    if ((classAt(bytes, at) & TOKEN) === 0) return false;
  }
  return true;
}
