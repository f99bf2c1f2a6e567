// Header lists checked as lists, compared with what the project did before: writing them as the text of an HTTP/1.1 head and
// parsing that. Both must accept the same lists, and mean the same head.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type HeadError, headErrors, isHeadError } from '../../src/http1/head-error.ts';
import {
  type HeadLimits,
  type RequestHead,
  type ResponseHead,
  parseRequestHead,
  parseResponseHead,
} from '../../src/http1/head-parser.ts';
import { writeRequestHead, writeResponseHead } from '../../src/http1/written-head.ts';
import { propertySeed } from '../properties/property-seed.ts';
import { fieldOffsets } from './field-offsets.ts';

const limits: HeadLimits = { maxHeadBytes: 600, maxFields: 12, maxTargetBytes: 120 };

type Parse<H> = (bytes: Buffer, start: number, limits: HeadLimits) => H | HeadError | undefined;

/** A head from the text of a list; every part must be exactly one part of the head. */
function fromText<H extends RequestHead | ResponseHead>(
  parse: Parse<H>,
  startLine: string,
  fields: readonly string[],
): H | HeadError {
  let text = `${startLine}\r\n`;
  for (let i = 0; i + 1 < fields.length; i += 2) text += `${fields[i]}: ${fields[i + 1]}\r\n`;
  const bytes = Buffer.from(`${text}\r\n`, 'latin1');
  const head = parse(bytes, 0, limits);
  if (head === undefined) return headErrors.headTooLarge;
  if (isHeadError(head)) return head;
  return head.end === bytes.length && saysAll(head, fields) ? head : headErrors.nameMalformed;
}

function saysAll({ fields }: RequestHead | ResponseHead, parts: readonly string[]): boolean {
  if (2 * fields.count !== parts.length) return false;
  for (let i = 0; i < fields.count; i += 1) {
    const isName = fields.nameEnd(i) - fields.nameStart(i) === parts[2 * i]?.length;
    const isValue = fields.valueEnd(i) - fields.valueStart(i) === parts[2 * i + 1]?.length;
    if (!isName || !isValue) return false;
  }
  return true;
}

/** All that a reader of a head can see of it. */
function seen(head: RequestHead | ResponseHead | HeadError): unknown {
  if (isHeadError(head)) return 'refused';
  const { fields, bytes, ...others } = head;
  return { ...others, offsets: fieldOffsets(fields), end: fields.end, text: bytes.toString('latin1') };
}

const known = [
  'host',
  'content-length',
  'te',
  'connection',
  'proxy-x',
  'authorization',
  'x',
  'x-a_b',
  'cookie',
];
const nastyNames = [
  'content_length',
  'transfer_encoding',
  'X-Upper',
  '',
  'a b',
  'a:',
  ':path',
  'x\r\ny',
  'é',
  'a\0',
];
const nastyValues = [
  'a\r\nb: c',
  'a\r\n\r\nGET / HTTP/1.1',
  ' a',
  'a ',
  'a\t',
  '\t',
  ' ',
  'a\nb',
  '\r',
  'a\0',
  '\x7f',
  'ÿé',
];
const char = fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code));
const bytesText = fc.array(char, { maxLength: 12 }).map((chars) => chars.join(''));
const name = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom(...known) },
  { weight: 1, arbitrary: fc.constantFrom(...nastyNames) },
  { weight: 1, arbitrary: bytesText },
);
const value = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom('', '1', 'a b', 'trailers', 'v'.repeat(40)) },
  { weight: 1, arbitrary: fc.constantFrom(...nastyValues) },
  { weight: 1, arbitrary: bytesText },
);
const list = fc.array(fc.tuple(name, value), { maxLength: 14 }).map((pairs) => pairs.flat());
const method = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('GET', 'POST', 'patch', 'M'.repeat(32)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('M'.repeat(33), 'PRI', 'G T', 'GET /x HTTP/1.1\r\nA: b\r\n\r\nGET', '\r\nGET'),
  },
  { weight: 1, arbitrary: bytesText.filter((text) => text !== '') },
);
const target = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('/', '/v1?q=%41', '*', `/${'p'.repeat(119)}`) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(`/${'p'.repeat(120)}`, '/a b', '/ HTTP/1.1\r\nX: y', '/#', '/é', '/\r\n'),
  },
  { weight: 1, arbitrary: bytesText.map((text) => `/${text}`) },
);
const status = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 100, max: 599 }).map(String) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '',
      '99',
      '600',
      '0200',
      '20',
      '2000',
      '200 OK',
      '200\r\nX: y',
      '099',
      '+20',
      '2e2',
    ),
  },
  { weight: 1, arbitrary: bytesText },
);
const runs = { numRuns: 4_000, seed: propertySeed() };

describe('a list is the head that its text would be', () => {
  it('of a request', () => {
    let accepted = 0;
    const property = fc.property(method, target, list, (verb, path, fields) => {
      const head = writeRequestHead(verb, path, fields, limits);
      if (!isHeadError(head)) accepted += 1;
      // The parser ignores an empty line before a request; in a method it is an error.
      const isLine = verb.startsWith('\r\n');
      const parsed = fromText(parseRequestHead, `${verb} ${path} HTTP/1.1`, fields);
      expect(seen(head)).toEqual(isLine ? 'refused' : seen(parsed));
    });
    fc.assert(property, runs);
    expect(accepted).toBeGreaterThan(runs.numRuns / 20);
  });

  it('of a response', () => {
    let accepted = 0;
    const property = fc.property(status, list, (code, fields) => {
      const head = writeResponseHead(code, fields, limits);
      if (!isHeadError(head)) accepted += 1;
      // The parser reads a reason phrase behind the status; in a list it is an error.
      const parsed = fromText(parseResponseHead, `HTTP/1.1 ${code} `, fields);
      expect(seen(head)).toEqual(/^\d{3}$/.test(code) ? seen(parsed) : 'refused');
    });
    fc.assert(property, runs);
    expect(accepted).toBeGreaterThan(runs.numRuns / 20);
  });
});

describe('the error of a list', () => {
  it.each([
    [headErrors.tooManyFields, Array.from({ length: 26 }, () => 'x')],
    [headErrors.headTooLarge, ['x', 'v'.repeat(600)]],
    [headErrors.nameEmpty, ['', 'v']],
    [headErrors.nameMalformed, ['a b', 'v']],
    [headErrors.framingLookalike, ['content_length', '1']],
    [headErrors.bareCr, ['x', 'a\r\nb']],
    [headErrors.bareLf, ['x', 'a\nb']],
    [headErrors.controlByte, ['x', 'a\0b']],
    [headErrors.valuePadded, ['x', ' a']],
    [headErrors.nameMalformed, ['x']],
  ])('is %o', (error, fields) => {
    expect(writeRequestHead('GET', '/', fields, limits)).toBe(error);
    expect(writeResponseHead('200', fields, limits)).toBe(error);
  });
});

it('a character above U+00FF is refused: in the bytes it would be another one', () => {
  expect(writeRequestHead('\u0147ET', '/', [], limits)).toBe(headErrors.methodMalformed);
});
