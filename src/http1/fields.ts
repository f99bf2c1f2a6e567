// Parses the field section of a head to the offsets of each name and value. Strict by RFC 9112 §5 without any of its
// tolerances, because each tolerance is a smuggling technique. Creates no string and interprets no field.
import { byteAt, CR, classAt, COLON, FIELD_VALUE, isOws, LF, TOKEN, UNDERSCORE } from './byte-class.ts';
import { type HeadError, type Reading, headErrors } from './head-error.ts';
import { type IdSet, fieldIdOf, isFieldNamedLoosely } from './field-name.ts';

/** Start of the name, its id, its end, start and end of the value. The next name starts where the line ends. */
const STRIDE = 5;
// Offsets are collected here while a head is parsed, and copied once it is complete: each head owns its numbers.
const scratch: number[] = [];

/** Field lines in the order received. Offsets count from the start of the head's buffer. */
export class Fields {
  readonly count: number;
  /** Past the blank line that ends the section. */
  readonly end: number;
  readonly #flat: readonly number[];
  /** Bit n is set if a field has the id n. */
  readonly #ids: number;

  constructor(flat: readonly number[], ids: number, end: number) {
    this.count = (flat.length - 1) / STRIDE;
    this.end = end;
    this.#flat = flat;
    this.#ids = ids;
  }

  /** Whether a field has one of these ids, without a look at each. */
  hasAny(ids: IdSet): boolean {
    return (this.#ids & ids) !== 0;
  }

  // The casts below are safe: callers pass 0 <= i < count only.

  /** The name's id (`Field`), 0 for names that the proxy does not act on. */
  id(i: number): number {
    return this.#flat[i * STRIDE + 1] as number;
  }

  /** Start of the name, which is the start of the line. */
  nameStart(i: number): number {
    return this.#flat[i * STRIDE] as number;
  }

  nameEnd(i: number): number {
    return this.#flat[i * STRIDE + 2] as number;
  }

  /** The value without the whitespace around it. */
  valueStart(i: number): number {
    return this.#flat[i * STRIDE + 3] as number;
  }

  valueEnd(i: number): number {
    return this.#flat[i * STRIDE + 4] as number;
  }

  /** Past the CRLF of the line. */
  lineEnd(i: number): number {
    return this.#flat[i * STRIDE + 5] as number;
  }
}

/** Parses field lines up to and including the blank line. Reads up to `end`; undefined = incomplete. */
export function parseFieldLines(
  bytes: Buffer,
  from: number,
  end: number,
  maxFields: number,
): Reading<Fields> {
  let at = from;
  let ids = 0;
  scratch[0] = from;
  for (let count = 0; ; count++) {
    if (at === end) return undefined;
    if (byteAt(bytes, at) === CR) {
      const past = skipLineEnd(bytes, at, end);
      return typeof past === 'number' ? new Fields(scratch.slice(0, count * STRIDE + 1), ids, past) : past;
    }
    if (count === maxFields) return headErrors.tooManyFields;
    const next = parseFieldLine(bytes, at, end, count * STRIDE);
    if (typeof next !== 'number') return next;
    ids |= 1 << (scratch[count * STRIDE + 1] as number);
    at = next;
  }
}

/**
 * The fields of lines that were written as `name: value` CRLF from these parts (name, value, name, value, …). Each part is
 * checked in its own range, so that no part can be read as two.
 */
export function checkFieldParts(
  bytes: Buffer,
  from: number,
  parts: readonly string[],
  maxFields: number,
): Fields | HeadError {
  const count = parts.length / 2;
  if (!Number.isInteger(count)) return headErrors.nameMalformed;
  if (count > maxFields) return headErrors.tooManyFields;
  let at = from;
  let ids = 0;
  scratch[0] = from;
  for (let i = 0; i < count; i++) {
    const nameEnd = at + (parts[2 * i] as string).length;
    const valueStart = nameEnd + 2;
    const valueEnd = valueStart + (parts[2 * i + 1] as string).length;
    const error = checkName(bytes, at, nameEnd) ?? checkValue(bytes, valueStart, valueEnd);
    if (error !== undefined) return error;
    const id = fieldIdOf(bytes, at, nameEnd);
    const slot = i * STRIDE;
    at = valueEnd + 2;
    ids |= 1 << id;
    scratch[slot + 1] = id;
    scratch[slot + 2] = nameEnd;
    scratch[slot + 3] = valueStart;
    scratch[slot + 4] = valueEnd;
    scratch[slot + 5] = at;
  }
  return new Fields(scratch.slice(0, count * STRIDE + 1), ids, at + 2);
}

function checkName(bytes: Buffer, start: number, end: number): HeadError | undefined {
  if (start === end) return headErrors.nameEmpty;
  let seen = 0;
  for (let at = start; at < end; at++) {
    const bits = classAt(bytes, at);
    if ((bits & TOKEN) === 0) return headErrors.nameMalformed;
    seen |= bits;
  }
  const isAlike = (seen & UNDERSCORE) !== 0 && isFramingAlike(bytes, start, end);
  return isAlike ? headErrors.framingLookalike : undefined;
}

/** RFC 9113 §8.2.1: no whitespace around it either. */
function checkValue(bytes: Buffer, start: number, end: number): HeadError | undefined {
  for (let at = start; at < end; at++) {
    if ((classAt(bytes, at) & FIELD_VALUE) === 0) return strayByte(byteAt(bytes, at));
  }
  const isPadded = end > start && (isOws(byteAt(bytes, start)) || isOws(byteAt(bytes, end - 1)));
  return isPadded ? headErrors.valuePadded : undefined;
}

/** Expects CRLF at `at` and returns the index past it; a bare LF or CR is an error (request splitting). */
export function skipLineEnd(bytes: Buffer, at: number, end: number): Reading<number> {
  if (at === end) return undefined;
  if (byteAt(bytes, at) !== CR) return strayByte(byteAt(bytes, at));
  if (at + 1 === end) return undefined;
  return byteAt(bytes, at + 1) === LF ? at + 2 : headErrors.bareCr;
}

/** The error for a byte that is not allowed where it is. */
export function strayByte(byte: number): HeadError {
  if (byte === LF) return headErrors.bareLf;
  return byte === CR ? headErrors.bareCr : headErrors.controlByte;
}

function parseFieldLine(bytes: Buffer, start: number, end: number, slot: number): Reading<number> {
  let at = start;
  let seen = 0;
  for (; at < end; at++) {
    const bits = classAt(bytes, at);
    if ((bits & TOKEN) === 0) break;
    seen |= bits;
  }
  if (at === end) return undefined;
  if (byteAt(bytes, at) !== COLON || at === start) return nameError(bytes, start, at);
  if ((seen & UNDERSCORE) !== 0 && isFramingAlike(bytes, start, at)) return headErrors.framingLookalike;

  const nameEnd = at++;
  while (at < end && isOws(byteAt(bytes, at))) at++;
  const valueStart = at;
  while (at < end && (classAt(bytes, at) & FIELD_VALUE) !== 0) at++;
  const lineEnd = skipLineEnd(bytes, at, end);
  if (typeof lineEnd !== 'number') return lineEnd;
  while (at > valueStart && isOws(byteAt(bytes, at - 1))) at--;

  scratch[slot + 1] = fieldIdOf(bytes, start, nameEnd);
  scratch[slot + 2] = nameEnd;
  scratch[slot + 3] = valueStart;
  scratch[slot + 4] = at;
  scratch[slot + 5] = lineEnd;
  return lineEnd;
}

// Transfer_Encoding: an upstream that reads `_` as `-` would frame the message differently.
function isFramingAlike(bytes: Buffer, start: number, end: number): boolean {
  return (
    isFieldNamedLoosely(bytes, start, end, 'transfer-encoding') ||
    isFieldNamedLoosely(bytes, start, end, 'content-length')
  );
}

function nameError(bytes: Buffer, start: number, at: number): HeadError {
  const byte = byteAt(bytes, at);
  // obs-fold (RFC 9112 §5.2): a value continued on the next line is read by some hops only.
  if (isOws(byte)) return at === start ? headErrors.lineFolded : headErrors.spaceBeforeColon;
  if (byte === COLON) return headErrors.nameEmpty;
  if (byte === CR) return headErrors.colonMissing;
  return byte > 0x20 && byte !== 0x7f ? headErrors.nameMalformed : strayByte(byte);
}
