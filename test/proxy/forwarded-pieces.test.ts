// Pieces that are written together: adjacent and small ones become one, large ones stay uncopied. What was forwarded is
// collected every eight megabytes.
import { getHeapSpaceStatistics } from 'node:v8';
import { expect, it } from 'vitest';
import { countForwarded, joinPieces } from '../../src/proxy/forwarded-pieces.ts';

it('two adjacent pieces are one view of the same memory', () => {
  const whole = Buffer.alloc(100_000, 'x');
  const [joined, ...rest] = joinPieces([whole.subarray(0, 40_000), whole.subarray(40_000)]);
  expect([joined?.buffer === whole.buffer, joined?.length, rest]).toEqual([true, 100_000, []]);
});

it('small pieces are copied into one', () => {
  const joined = joinPieces([Buffer.from('a'), Buffer.from('bc'), Buffer.from('d')]);
  expect(joined.map(String)).toEqual(['abcd']);
});

it('large pieces stay as they are', () => {
  const pieces = [Buffer.alloc(16_384), Buffer.alloc(16_384)];
  expect(joinPieces(pieces)).toBe(pieces);
});

it.each([0, 1])('%i pieces stay as they are', (count) => {
  const pieces = Array.from({ length: count }, () => Buffer.from('a'));
  expect(joinPieces(pieces)).toBe(pieces);
});

const MB = 2 ** 20;
const CHUNK_BYTES = 64 * 1024;

function youngBytes(): number {
  return getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')?.space_used_size ?? 0;
}

/** How often the young generation became smaller while this many bytes were forwarded, and little else happened. */
function collectionsDuring(bytes: number): number {
  let collections = 0;
  let before = youngBytes();
  for (let at = 0; at < bytes; at += CHUNK_BYTES) {
    countForwarded(CHUNK_BYTES);
    const now = youngBytes();
    if (now < before) collections += 1;
    before = now;
  }
  return collections;
}

it('collects the young generation once for each 8 MiB', () => {
  // What was counted before, and what the first collection loads.
  countForwarded(8 * MB);
  expect(collectionsDuring(8 * MB - CHUNK_BYTES)).toBe(0);
  expect(collectionsDuring(CHUNK_BYTES)).toBe(1);
  expect(collectionsDuring(40 * MB)).toBe(5);
});

it('frees buffers that nothing holds, without a name in the global scope', () => {
  const before = process.memoryUsage().arrayBuffers;
  for (let at = 0; at < 8 * MB; at += CHUNK_BYTES) Buffer.allocUnsafeSlow(CHUNK_BYTES);
  countForwarded(8 * MB);
  // Another thread frees what a collection found; the next collection waits for it.
  countForwarded(8 * MB);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(2 * MB);
  expect('gc' in globalThis).toBe(false);
});
