// Lines out of pieces, bounded.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ProtocolError } from '../../../src/box-agent/protocol/frame.ts';
import { readLines } from '../../../src/box-host/agents/call-data.ts';

async function* inPieces(text: string, size: number): AsyncGenerator<Buffer, void, undefined> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const read = async (text: string, size = 1000): Promise<string[]> =>
  (await Array.fromAsync(readLines(inPieces(text, size)))).map(String);

describe('lines', () => {
  it('are the same in pieces of any size', async () => {
    const lines = fc.array(fc.string({ unit: fc.constantFrom('a', 'é'), maxLength: 10 }), { maxLength: 10 });
    await fc.assert(
      fc.asyncProperty(lines, fc.integer({ min: 1, max: 12 }), async (lines, size) => {
        expect(await read(lines.map((line) => `${line}\n`).join(''), size)).toEqual(lines);
      }),
    );
  });

  it.each([
    ['too long', `${'x'.repeat(40_000)}\n`],
    ['without an end', 'x'.repeat(40_000)],
    ['cut off', 'a\nb'],
  ])('that are %s are rejected', async (_, text) => {
    await expect(read(text, 64_000)).rejects.toThrow(ProtocolError);
  });
});
