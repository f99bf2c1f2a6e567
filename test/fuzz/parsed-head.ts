// What the fuzz targets of request and response heads both check of a parsed head.
import assert from 'node:assert/strict';
import { type HeadError, isHeadError } from '../../src/http1/head-error.ts';
import type { HeadLimits, RequestHead, ResponseHead } from '../../src/http1/head-parser.ts';

type Head = RequestHead | ResponseHead;
type Parsed = Head | HeadError | undefined;

/** So wide that no input meets them. */
export const fuzzLimits: HeadLimits = { maxHeadBytes: 1 << 20, maxFields: 1 << 14, maxTargetBytes: 1 << 19 };

export function fieldsOf({ bytes, fields }: Head): readonly (readonly [string, string])[] {
  const text = (from: number, to: number): string => bytes.toString('latin1', from, to);
  return Array.from(
    { length: fields.count },
    (_, i) =>
      [text(fields.nameStart(i), fields.nameEnd(i)), text(fields.valueStart(i), fields.valueEnd(i))] as const,
  );
}

/** Bytes are parsed as they arrive: a prefix is incomplete, or has the same result as the whole. */
export function assertPrefixes(data: Buffer, whole: Parsed, parse: (bytes: Buffer) => Parsed): void {
  for (let length = 0; length < data.length; length += 1 + (data.length >> 6)) {
    const parsed = parse(data.subarray(0, length));
    if (parsed === undefined) continue;
    if (isHeadError(parsed)) assert.equal(parsed, whole, 'an error of the beginning is forgotten');
    else assert(whole !== undefined && !isHeadError(whole) && whole.end === parsed.end, 'a head that moves');
  }
}

/** A tab beside a framing value is refused, though it is whitespace: parsers of the web differ on it. */
export function hasTabBesideFraming({ bytes, fields }: Head): boolean {
  return Array.from({ length: fields.count }, (_, i) =>
    bytes.toString('latin1', fields.nameStart(i), fields.lineEnd(i)),
  ).some((line) => /^(?:content-length|transfer-encoding):/i.test(line) && line.includes('\t'));
}
