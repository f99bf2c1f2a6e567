// Pieces that are written together: adjacent and small ones become one, large ones stay uncopied.
import { expect, it } from 'vitest';
import { joinPieces } from '../../src/proxy/joined-pieces.ts';

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
