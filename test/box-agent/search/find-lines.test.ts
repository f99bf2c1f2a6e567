// Lines with a text, from pieces of any size.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findLines, type FoundLine } from '../../../src/box-agent/search/find-lines.ts';

async function* inPieces(content: Buffer, size: number): AsyncGenerator<Buffer, void, undefined> {
  for (let at = 0; at < content.length; at += size) yield content.subarray(at, at + size);
}

const find = (text: string | Buffer, wanted: string, size = 64 * 1024): Promise<FoundLine[]> =>
  Array.fromAsync(findLines(inPieces(Buffer.from(text), size), Buffer.from(wanted)));

describe('the lines of a file', () => {
  it('are found once each, with their numbers', async () => {
    expect(await find('xx\nno\nax xa\r\n\nx', 'x')).toEqual([
      { line: 1, text: 'xx' },
      { line: 3, text: 'ax xa' },
      { line: 5, text: 'x' },
    ]);
  });

  it('are the same in pieces of any size', async () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', '\n'), maxLength: 60 });
    const wanted = fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 1, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(text, wanted, fc.integer({ min: 1, max: 9 }), async (text, wanted, size) => {
        const lines = text.split('\n').map((line, i) => ({ line: i + 1, text: line }));
        expect(await find(text, wanted, size)).toEqual(lines.filter((line) => line.text.includes(wanted)));
      }),
    );
  });

  it('of a binary file are passed over', async () => {
    expect(await find('x\n\0x\n', 'x')).toEqual([]);
  });

  it('are cut where they are long', async () => {
    const [found] = await find(`x${'é'.repeat(5000)}`, 'x');
    expect(found?.text.length).toBe(1000);
  });

  it('without an end are searched in bounded parts', async () => {
    const found = await find(`${'a'.repeat(3_000_000)}x`, 'x');
    expect(found).toHaveLength(1);
    expect(found[0]?.line).toBe(1);
  });

  it('that are not UTF-8 become text', async () => {
    expect(await find(Buffer.from('x\xff\n', 'latin1'), 'x')).toEqual([{ line: 1, text: 'x\ufffd' }]);
  });
});
