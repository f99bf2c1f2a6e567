// Lines out of pieces, bounded.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ProtocolError } from '../../../src/box-agent/protocol/frame.ts';
import { PieceQueue, readLines } from '../../../src/box-host/agents/call-data.ts';

async function* inPieces(text: string, size: number): AsyncGenerator<Buffer, void, undefined> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const read = async (text: string, size = 1000): Promise<string[]> =>
  (await Array.fromAsync(readLines(inPieces(text, size)))).map(String);

describe('pieces that wait', () => {
  it('come out as they went in', () => {
    const sizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 20_000 })), {
      maxLength: 30,
    });
    fc.assert(
      fc.property(sizes, fc.infiniteStream(fc.boolean()), (sizes, takes) => {
        const queue = new PieceQueue();
        const [sent, received]: [Buffer[], Buffer[]] = [[], []];
        for (const [i, size] of sizes.entries()) {
          const bytes = Buffer.alloc(size, i);
          sent.push(Buffer.from(bytes));
          queue.push(bytes);
          const piece = takes.next().value ? queue.take() : undefined;
          if (piece !== undefined) received.push(Buffer.from(piece));
        }
        for (let piece = queue.take(); piece !== undefined; piece = queue.take())
          received.push(Buffer.from(piece));
        expect(Buffer.concat(received).equals(Buffer.concat(sent))).toBe(true);
      }),
    );
  });

  it('are not an object for each byte', () => {
    const queue = new PieceQueue();
    for (let i = 0; i < 100_000; i += 1) queue.push(Buffer.of(i));
    let [count, bytes] = [0, 0];
    for (let piece = queue.take(); piece !== undefined; piece = queue.take()) {
      count += 1;
      bytes += piece.length;
    }
    expect([count, bytes]).toEqual([7, 100_000]);
  });

  it('hold nothing of what came with them', () => {
    const queue = new PieceQueue();
    queue.push(Buffer.alloc(1_000_000).subarray(0, 5000));
    expect(queue.take()?.buffer.byteLength).toBeLessThan(20_000);
  });
});

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
