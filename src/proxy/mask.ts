// Hides secret values that a host echoes in its response heads: same length, so that no offset moves, in raw,
// percent, base64 and base64url form. Pure; it is given needles and never sees a secret type.
import { Field } from '../http1/field-name.ts';
import type { ResponseHead } from '../http1/head-parser.ts';

export type Mask = { readonly needles: readonly Buffer[] };

/** Shorter values would match by chance and destroy honest answers. */
export const MIN_MASKED_BYTES = 8;
const STAR = 0x2a;

/** The encoded forms of each value under which a host may send it back. */
export function compileMask(values: readonly string[]): Mask {
  const forms = new Set<string>();
  for (const value of values) {
    if (Buffer.byteLength(value) < MIN_MASKED_BYTES) continue;
    forms.add(value);
    const percent = encodeURIComponent(value);
    forms.add(percent);
    forms.add(percent.replace(/%[0-9A-F]{2}/g, (escape) => escape.toLowerCase()));
    for (const form of base64Forms(Buffer.from(value))) forms.add(form);
  }
  // Longest first: a rendered `Bearer x` goes before the bare `x` inside it.
  const sorted = [...forms].toSorted((a, b) => b.length - a.length);
  return { needles: sorted.map((form) => Buffer.from(form)) };
}

/** Masks in place and says whether anything was hidden. The status line and framing fields stay. */
export function maskResponseHead(head: ResponseHead, mask: Mask): boolean {
  const { bytes, fieldsStart, end } = head;
  let isMasked = false;
  const region = bytes.subarray(fieldsStart, end);
  for (const needle of mask.needles) {
    let at = region.indexOf(needle);
    while (at !== -1) {
      if (!touchesFraming(head, fieldsStart + at)) {
        region.fill(STAR, at, at + needle.length);
        isMasked = true;
      }
      at = region.indexOf(needle, at + needle.length);
    }
  }
  return isMasked;
}

function touchesFraming(head: ResponseHead, at: number): boolean {
  for (let i = 0; i < head.fields.count; i += 1) {
    if (at >= head.fields.lineEnd(i)) continue;
    const id = head.fields.id(i);
    return id === Field.contentLength || id === Field.transferEncoding || id === Field.connection;
  }
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
