// Writes heads: a parsed one with some lines dropped and some appended, or a whole one from text. All other bytes are
// copied unchanged, except the version: it is that of the sender, never that of the received message (RFC 9112 §2.3). The
// caller decides what is dropped and appended.
import { CR, classOf, FIELD_VALUE, LF, TOKEN } from './byte-class.ts';
import type { RequestHead, ResponseHead } from './head-parser.ts';

export type HeadEdit = {
  /** 1 for each field whose line is left out. */
  readonly drop: ArrayLike<number>;
  /** Whole lines with their CRLF, set after all others. */
  readonly append: readonly Buffer[];
};

const CRLF = '\r\n';
const ONE = 0x31;
const MINOR_AT = 'HTTP/1.'.length;

/** The head with its lines edited and, if `target` is given, with that target in place of its own. */
export function rewriteRequestHead(
  head: RequestHead,
  edit: HeadEdit & { readonly target?: Buffer | undefined },
): Buffer {
  const { target } = edit;
  const { bytes, start, targetStart, targetEnd, fieldsStart } = head;
  if (target === undefined) return rewriteLines(head, edit, targetEnd - start + 1 + MINOR_AT);
  const lineBytes = fieldsStart - start - (targetEnd - targetStart) + target.length;
  const out = createOutput(head, edit, lineBytes);
  let at = bytes.copy(out, 0, start, targetStart);
  at += target.copy(out, at);
  const minorAt = at + 1 + MINOR_AT;
  return withOwnVersion(head, finish(head, edit, out, at, targetEnd), minorAt);
}

/** The head with its lines edited. */
export function rewriteResponseHead(head: ResponseHead, edit: HeadEdit): Buffer {
  return rewriteLines(head, edit, MINOR_AT);
}

/** One field line with its CRLF. Throws on text that a parser would not accept: a bug of the caller. */
export function fieldLine(name: string, value: string): Buffer {
  if (name === '') throw new TypeError('a field name must not be empty');
  assertOf(TOKEN, name);
  assertOf(FIELD_VALUE, value);
  return Buffer.from(`${name}: ${value}${CRLF}`, 'latin1');
}

/** A whole head: start line, field lines, blank line. Throws as fieldLine does. */
export function buildHead(startLine: string, lines: readonly (readonly [string, string])[]): Buffer {
  assertOf(FIELD_VALUE, startLine);
  const written = lines.map(([name, value]) => fieldLine(name, value));
  return Buffer.concat([Buffer.from(startLine + CRLF, 'latin1'), ...written, Buffer.from(CRLF)]);
}

function rewriteLines(head: RequestHead | ResponseHead, edit: HeadEdit, minorAt: number): Buffer {
  const lineBytes = head.fieldsStart - head.start;
  const out = createOutput(head, edit, lineBytes);
  return withOwnVersion(head, finish(head, edit, out, 0, head.start), minorAt);
}

function withOwnVersion(head: RequestHead | ResponseHead, out: Buffer, minorAt: number): Buffer {
  if (head.minor === 0) out[minorAt] = ONE;
  return out;
}

/** Memory for the start line, every field that stays and every appended line. */
function createOutput(head: RequestHead | ResponseHead, edit: HeadEdit, lineBytes: number): Buffer {
  const { fields } = head;
  let size = lineBytes + (head.end - head.fieldsStart);
  for (let i = 0; i < fields.count; i++)
    if (edit.drop[i] === 1) size -= fields.lineEnd(i) - fields.nameStart(i);
  for (const line of edit.append) size += line.length;
  return Buffer.allocUnsafe(size);
}

/**
 * Copies what stays from `runStart` on, each unbroken run of lines at once, then the appended lines and the blank line.
 * `at` bytes of `out` are written already.
 */
function finish(
  head: RequestHead | ResponseHead,
  edit: HeadEdit,
  out: Buffer,
  at: number,
  runStart: number,
): Buffer {
  const { bytes, fields } = head;
  for (let i = 0; i < fields.count; i++) {
    if (edit.drop[i] !== 1) continue;
    at += bytes.copy(out, at, runStart, fields.nameStart(i));
    runStart = fields.lineEnd(i);
  }
  at += bytes.copy(out, at, runStart, head.end - CRLF.length);
  for (const line of edit.append) at += line.copy(out, at);
  out[at++] = CR;
  out[at++] = LF;
  // The memory was not cleared: a byte that nothing was written to must not leave.
  return at === out.length ? out : out.subarray(0, at);
}

// Above 0xff latin1 keeps the low byte only: U+010D U+010A would become CR LF (header injection by truncation).
function assertOf(bits: number, text: string): void {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code > 0xff || (classOf(code) & bits) === 0) throw new TypeError('a head must not contain this text');
  }
}
