// Heads of messages that arrive as lists of names and values (HTTP/2). Each part is checked by itself, with the byte classes
// of HTTP/1.1; then the parts are written as the bytes of a head, which nothing parses: the offsets are known.
import { classAt, TARGET, TOKEN } from './byte-class.ts';
import { Fields, checkFieldParts } from './fields.ts';
import { type HeadError, headErrors } from './head-error.ts';
import { type HeadLimits, MAX_METHOD_BYTES, type RequestHead, type ResponseHead } from './head-parser.ts';

const RESPONSE_FIELDS_START = 'HTTP/1.1 200 \r\n'.length;
const LATIN1 = /^[\0-\xff]*$/;
const STATUS = /^[1-5][0-9][0-9]$/;

/** A request head with these fields: name, value, name, value, … */
export function writeRequestHead(
  method: string,
  target: string,
  fields: readonly string[],
  limits: HeadLimits,
): RequestHead | HeadError {
  if (method.length > MAX_METHOD_BYTES) return headErrors.methodTooLong;
  if (target.length > limits.maxTargetBytes) return headErrors.targetTooLong;
  // A character above U+00FF would be another one in the bytes, which alone are checked.
  if (!LATIN1.test(method)) return headErrors.methodMalformed;
  const startLine = `${method} ${target} HTTP/1.1\r\n`;
  const bytes = writeHead(startLine, fields);
  if (bytes.length > limits.maxHeadBytes) return headErrors.headTooLarge;
  const targetStart = method.length + 1;
  const targetEnd = targetStart + target.length;
  if (!consistsOf(bytes, 0, method.length, TOKEN)) return headErrors.methodMalformed;
  if (method === 'PRI') return headErrors.http2Preface;
  if (!consistsOf(bytes, targetStart, targetEnd, TARGET)) return headErrors.targetMalformed;
  const fieldsStart = startLine.length;
  const checked = checkFieldParts(bytes, fieldsStart, fields, limits.maxFields);
  if (!(checked instanceof Fields)) return checked;
  const { end } = checked;
  return { bytes, start: 0, end, method, targetStart, targetEnd, minor: 1, fieldsStart, fields: checked };
}

/** A response head with these fields, without a reason phrase. */
export function writeResponseHead(
  status: string,
  fields: readonly string[],
  limits: HeadLimits,
): ResponseHead | HeadError {
  if (!STATUS.test(status)) return headErrors.statusMalformed;
  const bytes = writeHead(`HTTP/1.1 ${status} \r\n`, fields);
  if (bytes.length > limits.maxHeadBytes) return headErrors.headTooLarge;
  const fieldsStart = RESPONSE_FIELDS_START;
  const checked = checkFieldParts(bytes, fieldsStart, fields, limits.maxFields);
  if (!(checked instanceof Fields)) return checked;
  return {
    bytes,
    start: 0,
    end: checked.end,
    minor: 1,
    status: Number(status),
    fieldsStart,
    fields: checked,
  };
}

function writeHead(startLine: string, fields: readonly string[]): Buffer {
  let text = startLine;
  for (let i = 0; i + 1 < fields.length; i += 2) text += `${fields[i]}: ${fields[i + 1]}\r\n`;
  return Buffer.from(`${text}\r\n`, 'latin1');
}

function consistsOf(bytes: Buffer, start: number, end: number, byteClass: number): boolean {
  for (let at = start; at < end; at++) if ((classAt(bytes, at) & byteClass) === 0) return false;
  return end > start;
}
