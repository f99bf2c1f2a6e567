import { describe, expect, it } from 'vitest';
import { type Line, LineSplitter, MAX_LINE_BYTES } from '../../../src/workload/output/line-splitter.ts';

/** The lines of these pieces; those without an end too. */
function split(...pieces: readonly (string | Buffer)[]): readonly Line[] {
  const splitter = new LineSplitter();
  const lines: Line[] = [];
  for (const piece of pieces) {
    splitter.add(Buffer.from(piece));
    for (let line = splitter.next(); line !== undefined; line = splitter.next()) lines.push(line);
  }
  return [...lines, ...[splitter.finish() ?? []].flat()];
}
const texts = (lines: readonly Line[]): readonly string[] => lines.map(({ text }) => text);

describe('lines', () => {
  it.each([
    [['one\ntwo\n'], ['one', 'two']],
    [['one\ntwo'], ['one', 'two']],
    [
      ['o', 'ne', '\n', 'two\n'],
      ['one', 'two'],
    ],
    [['\n\n'], ['', '']],
    [[''], []],
    [['a\r\nb\n'], ['a\r', 'b']],
  ])('%j are %j', (pieces, lines) => {
    expect(texts(split(...pieces))).toEqual(lines);
    expect(split(...pieces).every(({ isTruncated }) => !isTruncated)).toBe(true);
  });

  it('keep a character that is cut by pieces', () => {
    const bytes = Buffer.from('é€😀\n');
    expect(texts(split(...[...bytes].map((byte) => Buffer.of(byte))))).toEqual(['é€😀']);
  });

  it('replace bytes that are no UTF-8', () =>
    expect(texts(split(Buffer.from([0x61, 0xff, 0x62, 0x0a])))).toEqual(['a\uFFFDb']));

  it('are cut at their greatest length, and what follows is whole', () => {
    const long = 'x'.repeat(MAX_LINE_BYTES);
    expect(split(`${long}\n`)).toEqual([{ text: long, isTruncated: false }]);
    const rows = split(long, 'y', 'y'.repeat(100_000), '\nnext\n');
    expect(rows).toEqual([
      { text: long, isTruncated: true },
      { text: 'next', isTruncated: false },
    ]);
  });

  it('are never cut within a character', () => {
    const [line] = split(`${'x'.repeat(MAX_LINE_BYTES - 1)}€\n`);
    expect(line).toEqual({ text: 'x'.repeat(MAX_LINE_BYTES - 1), isTruncated: true });
  });

  it('are taken before the next piece comes', () => {
    const splitter = new LineSplitter();
    splitter.add(Buffer.from('one\ntwo\n'));
    splitter.next();
    expect(() => splitter.add(Buffer.from('three\n'))).toThrow('not taken');
  });
});
