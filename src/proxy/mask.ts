// Hides secret values that a host echoes in its response heads: same length, so that no offset moves, in raw,
// percent, base64 and base64url form. Pure; it is given needles and never sees a secret type.
import { COLON, hexValue } from '../http1/byte-class.ts';
import { Field } from '../http1/field-name.ts';
import type { ResponseHead } from '../http1/head-parser.ts';

export type Mask = {
  /** What is looked for as it stands. */
  readonly needles: readonly Buffer[];
  /** What is looked for with any of its bytes escaped. */
  readonly values: readonly Buffer[];
};

/** Shorter values would match by chance and destroy honest answers. */
export const MIN_MASKED_BYTES = 8;
const STAR = 0x2a;
const PERCENT = 0x25;
const PLUS = 0x2b;
const SPACE = 0x20;
/** `HTTP/1.1 200`: what follows is the host's own text. */
const STATUS_BYTES = 12;

/** The encoded forms of each value under which a host may send it back. */
export function compileMask(values: readonly string[]): Mask {
  const masked = values.filter((value) => Buffer.byteLength(value) >= MIN_MASKED_BYTES);
  const forms = masked.flatMap((value) => [
    value,
    value.replaceAll(' ', '+'),
    ...base64Forms(Buffer.from(value)),
  ]);
  return { needles: longestFirst(forms), values: longestFirst(masked) };
}

/** Masks in place and says whether anything was hidden. The status and framing fields stay. */
export function maskResponseHead(head: ResponseHead, mask: Mask): boolean {
  const { bytes, start, end } = head;
  const region = bytes.subarray(start + STATUS_BYTES, end);
  let isMasked = false;
  const hide = (at: number, length: number): void => {
    if (hideRange(head, start + STATUS_BYTES + at, length)) isMasked = true;
  };
  // Which bytes are escaped is the host's choice, so the escaped forms cannot be listed.
  if (region.includes(PERCENT)) for (const value of mask.values) hideEscaped(region, value, hide);
  for (const needle of mask.needles) {
    let at = region.indexOf(needle);
    while (at !== -1) {
      hide(at, needle.length);
      at = region.indexOf(needle, at + needle.length);
    }
  }
  return isMasked;
}

/** A rendered `Bearer x` goes before the bare `x` inside it. */
function longestFirst(texts: readonly string[]): Buffer[] {
  return [...new Set(texts)].map((text) => Buffer.from(text)).toSorted((a, b) => b.length - a.length);
}

function hideEscaped(region: Buffer, value: Buffer, hide: (at: number, length: number) => void): void {
  for (let at = 0; at < region.length; at += 1) {
    const length = escapedLength(region, at, value);
    if (length > 0) hide(at, length);
  }
}

/** How many bytes at `at` read as `value` once percent and form encoding are undone; 0 if they do not. */
function escapedLength(region: Buffer, at: number, value: Buffer): number {
  let end = at;
  for (const byte of value) {
    const found = region[end];
    const isEscaped = found === PERCENT && hexAt(region, end + 1) * 16 + hexAt(region, end + 2) === byte;
    if (isEscaped) end += 3;
    else if (found === byte || (found === PLUS && byte === SPACE)) end += 1;
    else return 0;
  }
  return end - at;
}

function hexAt(region: Buffer, at: number): number {
  const value = hexValue(region[at] ?? 0);
  return value < 0 ? Number.NaN : value;
}

/** Overwrites a range, unless it stands in a field that frames the message. */
function hideRange(head: ResponseHead, at: number, length: number): boolean {
  const { bytes, fields, fieldsStart } = head;
  let line = 0;
  while (line < fields.count && at >= fields.lineEnd(line)) line += 1;
  if (at < fieldsStart || line === fields.count) {
    bytes.fill(STAR, at, at + length);
    return true;
  }
  const id = fields.id(line);
  if (id === Field.contentLength || id === Field.transferEncoding || id === Field.connection) return false;
  bytes.fill(STAR, at, at + length);
  // A value that spans name and value would take the colon with it, and the line would be no field any more.
  bytes[fields.nameEnd(line)] = COLON;
  return true;
}

/**
 * base64 and base64url of a value wherever it stands in a longer text (`user:SECRET`): three alignments, each
 * cut to the characters that the value alone determines.
 */
function base64Forms(value: Buffer): string[] {
  const forms: string[] = [];
  for (let shift = 0; shift < 3; shift += 1) {
    const padded = Buffer.concat([Buffer.alloc(shift), value])
      .toString('base64')
      .replace(/=+$/, '');
    const skipped = [0, 2, 3][shift] ?? 0;
    const usable = Math.floor(((shift + value.length) * 8) / 6);
    const form = padded.slice(skipped, usable);
    forms.push(form, form.replaceAll('+', '-').replaceAll('/', '_'));
  }
  return forms;
}
