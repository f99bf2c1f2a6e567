// Valid messages for the property tests: heads made of any legal byte, and chunked bodies in any legal spelling.
import * as fc from 'fast-check';
import type { HeadLimits } from '../../src/http1/head-parser.ts';

export const limits: HeadLimits = { maxHeadBytes: 16_384, maxFields: 100, maxTargetBytes: 8192 };

export type HeadText = {
  readonly startLine: string;
  readonly fields: readonly { readonly name: string; readonly value: string; readonly line: string }[];
};
export type Chunk = { readonly data: string; readonly wire: string };

/** One of the bytes 0 to 255 for which `admits` holds of the character with that code. */
function byteOf(admits: RegExp): fc.Arbitrary<string> {
  const all = Array.from({ length: 256 }, (_, byte) => String.fromCharCode(byte));
  return fc.constantFrom(...all.filter((character) => admits.test(character)));
}

function textOf(admits: RegExp, minLength: number, maxLength: number): fc.Arbitrary<string> {
  return fc.string({ unit: byteOf(admits), minLength, maxLength });
}

export const token: fc.Arbitrary<string> = textOf(/[!#$%&'*+\-.^_`|~0-9A-Za-z]/, 1, 20);
export const target: fc.Arbitrary<string> = textOf(/[!-~]/, 1, 60).map(
  (text) => `/${text.replace(/[#"<>]/g, '')}`,
);

const ows: fc.Arbitrary<string> = textOf(/[ \t]/, 0, 3);
const value: fc.Arbitrary<string> = textOf(/[\t -~\x80-\xff]/, 0, 40).map((text) =>
  text.replace(/^[ \t]+|[ \t]+$/g, ''),
);
const isFraming = (name: string): boolean => /^(content.length|transfer.encoding)$/i.test(name);

const field: fc.Arbitrary<HeadText['fields'][number]> = fc
  .record({ name: token.filter((name) => !isFraming(name)), value, before: ows, after: ows })
  .map(({ name, value, before, after }) => ({ name, value, line: `${name}:${before}${value}${after}\r\n` }));

const fields: fc.Arbitrary<HeadText['fields']> = fc.array(field, { maxLength: 12 });

export const requestText: fc.Arbitrary<HeadText & { method: string; target: string; minor: number }> = fc
  .record({ method: token.filter((text) => text !== 'PRI'), target, minor: fc.constantFrom(0, 1), fields })
  .map((parts) => ({ ...parts, startLine: `${parts.method} ${parts.target} HTTP/1.${parts.minor}\r\n` }));

export const responseText: fc.Arbitrary<HeadText & { status: number; minor: number }> = fc
  .record({
    status: fc.integer({ min: 100, max: 599 }),
    reason: fc.option(textOf(/[\t -~\x80-\xff]/, 0, 20)),
    minor: fc.constantFrom(0, 1),
    fields,
  })
  .map((parts) => {
    const reason = parts.reason === null ? '' : ` ${parts.reason}`;
    return { ...parts, startLine: `HTTP/1.${parts.minor} ${parts.status}${reason}\r\n` };
  });

/** The bytes of a head. */
export function toWire({ startLine, fields }: HeadText): string {
  return `${startLine}${fields.map(({ line }) => line).join('')}\r\n`;
}

const extension: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: fc.constant('') },
  token.map((name) => `;${name}`),
  fc.tuple(token, token).map(([name, text]) => `;${name}=${text}`),
  token.map((name) => `;${name}="; \\" ,\t\xe9"`),
);

/** A chunk as a lenient origin may send it: padded, in capitals, with an extension. */
const chunk: fc.Arbitrary<Chunk> = fc
  .record({
    data: textOf(/[^]/, 1, 40),
    zeros: fc.integer({ min: 0, max: 3 }),
    isUpper: fc.boolean(),
    extension,
  })
  .map(({ data, zeros, isUpper, extension }) => {
    const size = '0'.repeat(zeros) + data.length.toString(16);
    return { data, wire: `${isUpper ? size.toUpperCase() : size}${extension}\r\n${data}\r\n` };
  });

const canonicalChunk: fc.Arbitrary<Chunk> = textOf(/[^]/, 1, 40).map((data) => ({
  data,
  wire: `${data.length.toString(16)}\r\n${data}\r\n`,
}));

const lastChunk: fc.Arbitrary<string> = fc.oneof(
  fc.constant('0\r\n\r\n'),
  fc
    .tuple(extension, fields)
    .map(([text, lines]) => `00${text}\r\n${lines.map(({ line }) => line).join('')}\r\n`),
);

/** A whole chunked body of a response, and the data in it. */
export const chunkedBody: fc.Arbitrary<Chunk> = fc
  .tuple(fc.array(fc.oneof(chunk, canonicalChunk), { maxLength: 6 }), lastChunk)
  .map(([chunks, last]) => ({
    data: chunks.map(({ data }) => data).join(''),
    wire: chunks.map(({ wire }) => wire).join('') + last,
  }));
