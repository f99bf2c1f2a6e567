// What is freed, and what is left alone because others may have a part of it.
import { expect, it } from 'vitest';
import { freeBytes, freed } from '../../../src/base/http/freed-bytes.ts';

it('frees a buffer with the last piece of it', () => {
  const whole = Buffer.allocUnsafeSlow(100);
  freeBytes(whole.subarray(0, 60));
  expect(whole.length).toBe(100);
  freeBytes(whole.subarray(60));
  expect(whole.length).toBe(0);
});

it('leaves the buffer alone that small ones share, also what is at its end', () => {
  const { buffer } = Buffer.allocUnsafe(16);
  freeBytes(new Uint8Array(buffer, buffer.byteLength - 16));
  expect(buffer.byteLength).toBeGreaterThan(16);
});

it('frees each piece of a stream when the next one is asked for', async () => {
  const pieces = [Buffer.allocUnsafeSlow(10).fill('a'), Buffer.allocUnsafeSlow(10).fill('b')];
  async function* stream(): AsyncGenerator<Uint8Array> {
    yield* pieces;
  }
  const seen: unknown[] = [];
  for await (const piece of freed(stream())) seen.push([String(piece), pieces.map(({ length }) => length)]);
  expect(seen).toEqual([
    ['a'.repeat(10), [10, 10]],
    ['b'.repeat(10), [0, 10]],
  ]);
  expect(pieces[1]?.length).toBe(0);
});
