import { expect, it } from 'vitest';
import { parseJsonBody } from '../../../src/base/http/json-body.ts';

it.each([
  ['{"a":["ä"]}', { ok: true, value: { a: ['ä'] } }],
  ['', { ok: false, msg: expect.stringContaining('empty'), position: undefined }],
  [
    '{} {}',
    {
      ok: false,
      msg: 'The body is not valid JSON at line 1, column 4: a comma is missing before it, or the document ends before it',
      position: 3,
    },
  ],
  [
    '{"a":1,"\\u0061":2}',
    { ok: false, msg: 'An object in the body repeats a name at line 1, column 8', position: 7 },
  ],
  [
    '['.repeat(33) + ']'.repeat(33),
    { ok: false, msg: 'The body is nested too deeply at line 1, column 33', position: 32 },
  ],
])('the body %j is parsed to one meaning or rejected', (text, parsed) => {
  expect(parseJsonBody(Buffer.from(text), false)).toEqual(parsed);
});

it.each([[[0x22, 0xff, 0x22]], [[0x22, 0xc0, 0xaf, 0x22]], [[0x22, 0xed, 0xa0, 0x80, 0x22]]])(
  'the bytes %j are not UTF-8',
  (bytes) => {
    expect(parseJsonBody(Buffer.from(bytes), true)).toMatchObject({
      ok: false,
      msg: 'The body is not valid UTF-8',
    });
  },
);

it('a byte order mark is ignored or rejected', () => {
  expect(parseJsonBody(Buffer.from('\ufeff1'), true)).toEqual({ ok: true, value: 1 });
  expect(parseJsonBody(Buffer.from('\ufeff1'), false)).toMatchObject({ ok: false });
});
