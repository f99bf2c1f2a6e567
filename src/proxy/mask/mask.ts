// Masks secret values that an upstream echoes in its response heads, at the same length, so that no offset moves: raw,
// percent, JSON, HTML, hex, base64 and base64url. Pure; it gets texts and never sees the secret type.
import { type Steps, finish } from '../../base/steps.ts';
import { COLON } from '../../http1/byte-class.ts';
import { Field } from '../../http1/field-name.ts';
import type { ResponseHead } from '../../http1/head-parser.ts';
import type { FoundRange } from './needle-scanner.ts';
import {
  MAX_HEAD_SEARCH_BYTES,
  MAX_SEARCHED_BYTES,
  type NeedleSet,
  compileInSteps,
  mayContainNeedle,
} from './needle-set.ts';
import { findNeedles, mayContainReferenced } from './reference-scanner.ts';

export type Mask = NeedleSet;

/** Shorter values would match by chance and damage honest responses. */
export const MIN_MASKED_BYTES = 8;
const STAR = 0x2a;
/** `HTTP/1.1 200`: the text after it is chosen by the upstream. */
const STATUS_BYTES = 12;

/** All forms in which an upstream may echo each value. */
export function compileMask(values: readonly string[]): Mask {
  return finish(compileMaskInSteps(values, true));
}

/** No step takes longer than a few milliseconds. */
export function* compileMaskInSteps(values: readonly string[], searchesBodies: boolean): Steps<Mask> {
  const masked = [...new Set(values)].filter((value) => Buffer.byteLength(value) >= MIN_MASKED_BYTES);
  yield;
  return yield* compileInSteps(masked, formsOf, searchesBodies ? MAX_SEARCHED_BYTES : MAX_HEAD_SEARCH_BYTES);
}

function formsOf(value: string): string[] {
  const bytes = Buffer.from(value);
  const hex = bytes.toString('hex');
  const encoded = [hex, hex.toUpperCase(), ...base64Forms(bytes)];
  return PLAIN.test(value)
    ? [value, ...encoded]
    : [value, ...jsonForms(value), ...htmlForms(value), ...asciiForms(value), ...encoded];
}

/** Without characters that JSON or HTML encoders escape: most tokens are, and the forms of very many values take time. */
const PLAIN = /^[^\x00-\x1f"&'+/<=>\\`\x7f-\uffff]*$/;

/** As encoders write characters beyond ASCII, which what is encoded in a value may contain, such as a password of `Basic`. */
function asciiForms(value: string): string[] {
  if (/^[\x00-\x7f]*$/.test(value)) return [];
  const json = JSON.stringify(value).slice(1, -1);
  const points = (toReference: (point: number) => string): string =>
    value.replace(/[^\x00-\x7f]/gu, (char) => `&#${toReference(char.codePointAt(0) as number)};`); // not empty
  return [
    json.replace(/[^\x00-\x7f]/g, (char) => `\\u${hexOf(char).padStart(4, '0')}`),
    json.replace(/[^\x00-\x7f]/g, (char) => `\\u${hexOf(char).toUpperCase().padStart(4, '0')}`),
    points((point) => point.toString()),
    points((point) => `x${point.toString(16)}`),
    points((point) => `x${point.toString(16).toUpperCase()}`),
  ];
}

/** Some JSON encoders escape slashes too, some the characters of HTML, some everything that may be harmful. */
function jsonForms(value: string): string[] {
  const json = JSON.stringify(value).slice(1, -1);
  const backslashed = value.replaceAll('\\', '\\\\');
  return [
    json,
    json.replaceAll('/', '\\/'),
    json.replace(/[&<>]/g, toCodePoint),
    json.replace(/[&'<=>]/g, toCodePoint),
    backslashed.replace(/["&'+<>`]/g, toUpperCodePoint),
    backslashed.replaceAll('/', '\\/').replace(/["&'<>]/g, toUpperCodePoint),
  ];
}

function toCodePoint(char: string): string {
  return `\\u00${hexOf(char)}`;
}

function toUpperCodePoint(char: string): string {
  return `\\u00${hexOf(char).toUpperCase()}`;
}

function hexOf(char: string): string {
  return char.charCodeAt(0).toString(16).padStart(2, '0');
}

function htmlForms(value: string): string[] {
  return htmlEntities.map((entities) => value.replace(/["&'+/<=>`]/g, (char) => entities[char] ?? char));
}

/** As common HTML encoders write them; other characters stay. */
const htmlEntities: readonly Readonly<Record<string, string>>[] = [
  {},
  { '"': '&quot;' },
  { '"': '&quot;', "'": '&#39;' },
  { '"': '&quot;', "'": '&#x27;' },
  { '"': '&quot;', "'": '&apos;' },
  { '"': '&#34;', "'": '&#39;' },
  { '"': '&#34;', "'": '&#39;', '+': '&#43;' },
  { '"': '&quot;', "'": '&#x27;', '`': '&#x60;' },
  { '"': '&quot;', "'": '&#x27;', '`': '&#x60;', '=': '&#x3D;' },
  { '"': '&quot;', "'": '&#39;', '`': '&#x60;', '=': '&#x3D;', '/': '&#x2F;' },
].map((entities) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', ...entities }));

/**
 * Masks in place and says whether anything was hidden. The status and framing fields stay. If the secrets are too many
 * to be searched for and the head contains the beginning of one, nothing else stays.
 */
export function maskResponseHead(head: ResponseHead, mask: Mask): boolean {
  const from = head.start + STATUS_BYTES;
  const { bytes, end } = head;
  if (!mayContainNeedle(bytes, mask, from, end) && !mayContainReferenced(bytes, mask, from, end))
    return false;
  if (mask.prefixes) return hideRanges(head, linesOf(head));
  const found = findNeedles(head.bytes.subarray(from, head.end), mask);
  return (
    found.length > 0 &&
    hideRanges(
      head,
      found.map(({ start, end }) => ({ start: from + start, end: from + end })),
    )
  );
}

function hideRanges(head: ResponseHead, ranges: readonly FoundRange[]): boolean {
  return ranges.map((range) => hideRange(head, range)).includes(true);
}

/** The reason phrase and each field, without line ends. */
function linesOf({ start, fields, fieldsStart }: ResponseHead): FoundRange[] {
  const lines: FoundRange[] = [{ start: start + STATUS_BYTES + 1, end: fieldsStart - 2 }];
  for (let i = 0; i < fields.count; i += 1)
    lines.push({ start: fields.nameStart(i), end: fields.valueEnd(i) });
  return lines;
}

/** Overwrites a range, unless it is in a field that frames the message. */
function hideRange({ bytes, fields, fieldsStart }: ResponseHead, { start, end }: FoundRange): boolean {
  let line = 0;
  while (line < fields.count && start >= fields.lineEnd(line)) line += 1;
  if (start < fieldsStart || line === fields.count) {
    bytes.fill(STAR, start, end);
    return true;
  }
  const id = fields.id(line);
  if (id === Field.contentLength || id === Field.transferEncoding || id === Field.connection) return false;
  bytes.fill(STAR, start, end);
  // A match across name and value would overwrite the colon, and the line would be no field any more.
  bytes[fields.nameEnd(line)] = COLON;
  return true;
}

/**
 * base64 of a value at any position in a longer text (`user:SECRET`): three alignments, each cut to the characters that
 * the value alone determines. Folding makes them match base64url too.
 */
function base64Forms(value: Buffer): string[] {
  return [0, 2, 3].map((skipped, shift) => {
    const usable = Math.floor(((shift + value.length) * 8) / 6);
    return Buffer.concat([Buffer.alloc(shift), value])
      .toString('base64')
      .slice(skipped, usable);
  });
}
