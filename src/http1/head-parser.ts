// Parses HTTP/1.1 heads strictly, of requests and responses alike: one pass over the bytes, offsets only, no string but
// the method. It checks syntax only; framing, hosts and policy are checked elsewhere.
import { byteAt, CR, classAt, FIELD_VALUE, LF, SP, TARGET, TOKEN } from './byte-class.ts';
import { type HeadError, type Reading, headErrors } from './head-error.ts';
import { isExactly } from './field-name.ts';
import { Fields, parseFieldLines, skipLineEnd } from './fields.ts';

export type HeadLimits = {
  readonly maxHeadBytes: number;
  readonly maxFields: number;
  readonly maxTargetBytes: number;
};

/** Offsets count from the start of `bytes`. `start` is that of the start line, past any empty line before it. */
type Head = {
  readonly bytes: Buffer;
  readonly start: number;
  /** Past the blank line. */
  readonly end: number;
  /** Of the HTTP version, 1.0 or 1.1. */
  readonly minor: 0 | 1;
  readonly fieldsStart: number;
  readonly fields: Fields;
};

export type RequestHead = Head & {
  readonly method: string;
  readonly targetStart: number;
  readonly targetEnd: number;
};

export type ResponseHead = Head & { readonly status: number };

export const MAX_METHOD_BYTES = 32;
const VERSION = 'HTTP/1.1';
const VERSION_BYTES = VERSION.length;
const MAJOR_AT = 5;
const MINOR_AT = 7;
const ZERO = 0x30;
const knownMethods: readonly string[] = [
  'GET',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'HEAD',
  'OPTIONS',
  'CONNECT',
  'TRACE',
];

/**
 * Parses the request head that begins at `start` (RFC 9112 §3, §5). undefined = incomplete; an error is returned as soon
 * as the bytes show it.
 */
export function parseRequestHead(bytes: Buffer, start: number, limits: HeadLimits): Reading<RequestHead> {
  const end = Math.min(bytes.length, start + limits.maxHeadBytes);
  const head = requestHead(bytes, start, end, limits);
  return head ?? (end - start === limits.maxHeadBytes ? headErrors.headTooLarge : undefined);
}

/** Parses the response head that begins at `start` (RFC 9112 §4, §5); returns as parseRequestHead does. */
export function parseResponseHead(bytes: Buffer, start: number, limits: HeadLimits): Reading<ResponseHead> {
  const end = Math.min(bytes.length, start + limits.maxHeadBytes);
  const head = responseHead(bytes, start, end, limits);
  return head ?? (end - start === limits.maxHeadBytes ? headErrors.headTooLarge : undefined);
}

/** The value of field `i`, without the whitespace around it, one character a byte. */
export function fieldValue(head: RequestHead | ResponseHead, i: number): string {
  return head.bytes.toString('latin1', head.fields.valueStart(i), head.fields.valueEnd(i));
}

/** Index of the first field with this id (`Field`), or -1. */
export function findField(head: RequestHead | ResponseHead, id: number): number {
  const { fields } = head;
  if (!fields.hasAny(1 << id)) return -1;
  for (let i = 0; i < fields.count; i++) {
    if (fields.id(i) === id) return i;
  }
  return -1;
}

/** How many fields have this id (`Field`). */
export function countField(head: RequestHead | ResponseHead, id: number): number {
  const { fields } = head;
  if (!fields.hasAny(1 << id)) return 0;
  let count = 0;
  for (let i = 0; i < fields.count; i++) {
    if (fields.id(i) === id) count++;
  }
  return count;
}

function requestHead(bytes: Buffer, from: number, end: number, limits: HeadLimits): Reading<RequestHead> {
  const start = skipEmptyLine(bytes, from, end);
  if (typeof start !== 'number') return start;
  const methodEnd = scanMethod(bytes, start, end);
  if (typeof methodEnd !== 'number') return methodEnd;
  const targetStart = methodEnd + 1;
  const targetEnd = scanTarget(bytes, targetStart, end, limits.maxTargetBytes);
  if (typeof targetEnd !== 'number') return targetEnd;
  const minor = parseVersion(bytes, targetEnd + 1, end);
  if (minor !== 0 && minor !== 1) return minor;
  const fieldsStart = finishLine(bytes, targetEnd + 1 + VERSION_BYTES, end, headErrors.versionMalformed);
  if (typeof fieldsStart !== 'number') return fieldsStart;
  const fields = parseFieldLines(bytes, fieldsStart, end, limits.maxFields);
  if (!(fields instanceof Fields)) return fields;
  const method = methodOf(bytes, start, methodEnd);
  return { bytes, start, end: fields.end, method, targetStart, targetEnd, minor, fieldsStart, fields };
}

function responseHead(bytes: Buffer, start: number, end: number, limits: HeadLimits): Reading<ResponseHead> {
  const minor = parseVersion(bytes, start, end);
  if (minor !== 0 && minor !== 1) return minor;
  const status = parseStatus(bytes, start + VERSION_BYTES, end);
  if (typeof status !== 'number') return status;
  const fieldsStart = skipReason(bytes, start + VERSION_BYTES + 4, end);
  if (typeof fieldsStart !== 'number') return fieldsStart;
  const fields = parseFieldLines(bytes, fieldsStart, end, limits.maxFields);
  if (!(fields instanceof Fields)) return fields;
  return { bytes, start, end: fields.end, minor, status, fieldsStart, fields };
}

// RFC 9112 §2.2 asks servers to ignore an empty line that old clients send after a body. One, no more.
function skipEmptyLine(bytes: Buffer, start: number, end: number): Reading<number> {
  if (start === end || byteAt(bytes, start) !== CR) return start;
  const next = skipLineEnd(bytes, start, end);
  const isSecond = typeof next === 'number' && next < end && byteAt(bytes, next) === CR;
  return isSecond ? headErrors.emptyLine : next;
}

function scanMethod(bytes: Buffer, start: number, end: number): Reading<number> {
  let at = start;
  while (at < end && (classAt(bytes, at) & TOKEN) !== 0) at++;
  if (at - start > MAX_METHOD_BYTES) return headErrors.methodTooLong;
  if (at === end) return undefined;
  const byte = byteAt(bytes, at);
  if (byte !== SP || at === start) return byte === LF ? headErrors.bareLf : headErrors.methodMalformed;
  // The preface of HTTP/2 (RFC 9113 §3.4): what follows it is not HTTP/1.1.
  return isExactly(bytes, start, at, 'PRI') ? headErrors.http2Preface : at;
}

function scanTarget(bytes: Buffer, start: number, end: number, max: number): Reading<number> {
  let at = start;
  while (at < end && (classAt(bytes, at) & TARGET) !== 0) at++;
  if (at - start > max) return headErrors.targetTooLong;
  if (at === end) return undefined;
  const byte = byteAt(bytes, at);
  if (at === start) return headErrors.targetMalformed;
  if (byte === SP) return at;
  // HTTP/0.9: an upstream that supports it would respond without a head.
  if (byte === CR) return headErrors.versionMissing;
  return byte === LF ? headErrors.bareLf : headErrors.targetMalformed;
}

function parseVersion(bytes: Buffer, at: number, end: number): Reading<0 | 1> {
  for (let i = 0; i < VERSION_BYTES; i++) {
    if (at + i === end) return undefined;
    const byte = byteAt(bytes, at + i);
    const fits = i === MAJOR_AT || i === MINOR_AT ? isDigit(byte) : byte === VERSION.charCodeAt(i);
    if (!fits) return headErrors.versionMalformed;
  }
  const minor = byteAt(bytes, at + MINOR_AT) - ZERO;
  if (byteAt(bytes, at + MAJOR_AT) !== ZERO + 1) return headErrors.versionUnsupported;
  return minor === 0 || minor === 1 ? minor : headErrors.versionUnsupported;
}

/** Parses ` 200`; parsers differ on 000, 099 and 600, which are no status codes. */
function parseStatus(bytes: Buffer, at: number, end: number): Reading<number> {
  if (at === end) return undefined;
  if (byteAt(bytes, at) !== SP) return headErrors.statusMalformed;
  let status = 0;
  for (let i = 1; i <= 3; i++) {
    if (at + i === end) return undefined;
    const byte = byteAt(bytes, at + i);
    if (!isDigit(byte)) return headErrors.statusMalformed;
    status = status * 10 + (byte - ZERO);
  }
  return status >= 100 && status <= 599 ? status : headErrors.statusMalformed;
}

// Real servers omit the reason phrase, and the space before it too.
function skipReason(bytes: Buffer, from: number, end: number): Reading<number> {
  let at = from;
  if (at < end && byteAt(bytes, at) === SP) {
    while (at < end && (classAt(bytes, at) & FIELD_VALUE) !== 0) at++;
    return skipLineEnd(bytes, at, end);
  }
  return finishLine(bytes, at, end, headErrors.statusMalformed);
}

function finishLine(bytes: Buffer, at: number, end: number, otherwise: HeadError): Reading<number> {
  if (at < end && (classAt(bytes, at) & FIELD_VALUE) !== 0) return otherwise;
  return skipLineEnd(bytes, at, end);
}

function isDigit(byte: number): boolean {
  return byte >= ZERO && byte <= ZERO + 9;
}

function methodOf(bytes: Buffer, start: number, end: number): string {
  for (const method of knownMethods) {
    if (isExactly(bytes, start, end, method)) return method;
  }
  return bytes.toString('latin1', start, end);
}
