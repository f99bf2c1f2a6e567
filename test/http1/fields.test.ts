// Where the lines of a field section begin and end, and which slips end the parsing.
import { describe, expect, it } from 'vitest';
import { Field } from '../../src/http1/field-name.ts';
import { Fields, parseFieldLines } from '../../src/http1/fields.ts';
import { isHeadError } from '../../src/http1/head-error.ts';
import { fieldOffsets } from './field-offsets.ts';

function parse(text: string, maxFields = 10): Fields | string {
  const bytes = Buffer.from(text, 'latin1');
  const parsed = parseFieldLines(bytes, 0, bytes.length, maxFields);
  if (isHeadError(parsed)) return parsed.code;
  return parsed ?? 'incomplete';
}

it('a line is described by the offsets of its name, its value and its end', () => {
  const fields = parse('Host:\t a.test \r\nX-A:\r\n\r\nrest');
  if (typeof fields === 'string') throw new Error(fields);
  expect(fieldOffsets(fields)).toEqual([
    [Field.host, 0, 4, 7, 13, 16],
    [Field.other, 16, 19, 20, 20, 22],
  ]);
  expect(fields.end).toBe(24);
});

it('a parsed head keeps its offsets while others are parsed', () => {
  const first = parse('Host: a\r\n\r\n');
  parse('X-Long-Name: b\r\n\r\n');
  expect(first instanceof Fields && first.nameEnd(0)).toBe(4);
});

describe('the parsing ends with', () => {
  it.each([
    ['A: b\nC: d\r\n\r\n', 'bare_lf'],
    ['A: b\rC: d\r\n\r\n', 'bare_cr'],
    ['A: b\0\r\n\r\n', 'control_byte'],
    ['A: b\r\n c\r\n\r\n', 'line_folded'],
    ['A : b\r\n\r\n', 'space_before_colon'],
    [': b\r\n\r\n', 'name_empty'],
    ['A\r\n\r\n', 'colon_missing'],
    ['A(: b\r\n\r\n', 'name_malformed'],
    ['Content_Length: 1\r\n\r\n', 'framing_lookalike'],
    ['transfer_encoding: chunked\r\n\r\n', 'framing_lookalike'],
    ['A: b\r\n\r', 'incomplete'],
    ['A: b\r\n', 'incomplete'],
  ])('%j: %s', (text, code) => expect(parse(text)).toBe(code));

  it('one field too many', () => {
    expect(parse('A: 1\r\nB: 2\r\n\r\n', 2)).toBeInstanceOf(Fields);
    expect(parse('A: 1\r\nB: 2\r\n\r\n', 1)).toBe('too_many_fields');
  });
});
