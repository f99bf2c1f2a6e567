import { describe, expect, it } from 'vitest';
import { decodeText, parseJsonBody, readJsonBody, UNSTORABLE } from '../../../src/base/http/json-body.ts';
import { STRICT } from '../../../src/base/json/json-document.ts';

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

describe('a body of any size', () => {
  const rules = { ...STRICT, ignoresBom: true };
  // One that is parsed at once, one that is parsed in slices.
  const sizes = [1, 70_000] as const;
  const spaced = (text: string, size: number): Buffer => Buffer.from(text + ' '.repeat(size));

  it.each(sizes)('is parsed by its rules (%i bytes)', async (size) => {
    const lenient = { ...rules, maxDepth: 40, mayRepeatNames: true, isStorable: false };
    const deep = '['.repeat(33) + ']'.repeat(33);
    for (const [text, strict] of [
      ['{"a":1,"a":2}', { ok: false, msg: expect.stringContaining('repeats a name'), position: 7 }],
      [deep, { ok: false, msg: expect.stringContaining('nested too deeply'), position: 32 }],
      ['{"a":["\\u0000"]}', { ok: false, msg: UNSTORABLE, position: undefined, unstorable: ['a', 0] }],
    ] as const) {
      expect(await readJsonBody([spaced(text, size)], rules)).toEqual(strict);
      expect(await readJsonBody([spaced(text, size)], lenient)).toEqual({
        ok: true,
        value: JSON.parse(text),
      });
    }
    expect(await readJsonBody([spaced('{"a":1,}', size)], rules)).toMatchObject({ ok: false, position: 7 });
    expect(await readJsonBody([spaced('', size)], rules)).toMatchObject({ ok: false, position: undefined });
    expect(await readJsonBody([spaced('\ufeff{}', size)], rules)).toEqual({ ok: true, value: {} });
  });

  it('lets other work run while it is parsed', async () => {
    const text = JSON.stringify(Array.from({ length: 30_000 }, (_, at) => ({ at })));
    let turns = 0;
    let isParsed = false;
    const count = (): void => {
      turns += 1;
      if (!isParsed) setImmediate(count);
    };
    setImmediate(count);
    const parsed = await readJsonBody([Buffer.from(text)], rules);
    isParsed = true;
    expect(parsed).toMatchObject({ ok: true });
    expect(turns).toBeGreaterThan(3);
  });
  it('has the same meaning in whatever pieces it arrives', async () => {
    const text = `{"ä€😀":"${'a😀'.repeat(20_000)}${String.raw`\ud83d\ude00`.repeat(9_000)}","b":[1e5,null,true]}`;
    const bytes = Buffer.from(`\ufeff${text}`);
    for (const size of [1, 3, 1_000, 65_535, 65_537, bytes.length]) {
      const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
        bytes.subarray(at * size, (at + 1) * size),
      );
      expect(await readJsonBody(pieces, rules)).toEqual({ ok: true, value: JSON.parse(text) });
      const cut = [...pieces.slice(0, -1), Buffer.from([0xe2, 0x82])];
      expect(await readJsonBody([Buffer.from('1'), ...cut], rules)).toMatchObject({ ok: false });
    }
  });

  it.each(sizes)('is rejected where it is no UTF-8, also at its end (%i bytes)', async (size) => {
    for (const bytes of [[0xff], [0xe2, 0x82], [0xed, 0xa0, 0x80]])
      expect(await readJsonBody([spaced('1', size), Buffer.from(bytes)], rules)).toEqual({
        ...{ ok: false, position: undefined },
        msg: 'The body is not valid UTF-8',
      });
  });

  it.each(sizes)('of several members has a number of a limited length (%i bytes)', async (size) => {
    const digits = (count: number): Buffer => spaced(`{"a":${'1'.repeat(count)}}`, size);
    expect(await readJsonBody([digits(60_000)], rules)).toEqual({ ok: true, value: { a: Infinity } });
    expect(await readJsonBody([digits(70_000)], rules)).toMatchObject({
      ...{ ok: false, position: 5 },
      msg: expect.stringContaining('too many digits'),
    });
  });

  it('is decoded in steps', async () => {
    const bytes = [Buffer.from('ä'.repeat(500_000)), Buffer.alloc(10, 97), Buffer.alloc(2_000_000, 97)];
    const lengths = Array.from(decodeText(bytes, true), ({ length }) => length);
    expect(Math.max(...lengths)).toBeLessThanOrEqual(65_536);
    expect(lengths.reduce((sum, length) => sum + length)).toBe(2_500_010);
  });
});
