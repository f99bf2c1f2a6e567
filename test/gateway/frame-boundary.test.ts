import { describe, expect, it } from 'vitest';
import { FrameBoundary } from '../../src/gateway/frame-boundary.ts';

/** Its head, and as many bytes behind it. */
const frames: readonly (readonly [name: string, head: readonly number[], payload: number])[] = [
  ['an empty one', [0x88, 0], 0],
  ['a short one', [0x81, 5], 5],
  ['one of 126 bytes', [0x82, 126, 0, 126], 126],
  ['one of 70000 bytes', [0x82, 127, 0, 0, 0, 0, 0, 1, 0x11, 0x70], 70_000],
  ['one with a mask', [0x81, 0x83, 1, 2, 3, 4], 3],
];
const bytesOf = (head: readonly number[], payload: number): Buffer =>
  Buffer.concat([Buffer.from(head), Buffer.alloc(payload, 0xff)]);
const all = Buffer.concat(frames.map(([, head, payload]) => bytesOf(head, payload)));

describe('a frame', () => {
  it.each(frames)('ends behind its payload: %s', (_, head, payload) => {
    const bytes = bytesOf(head, payload);
    const boundary = new FrameBoundary();
    for (const [at, byte] of bytes.entries()) {
      expect(boundary.isReached).toBe(at === 0);
      boundary.push(Buffer.from([byte]), false);
    }
    expect(boundary.isReached).toBe(true);
  });
});

describe('the stream', () => {
  it('is taken as a whole, however it is cut', () => {
    for (const size of [1, 3, 1_000, all.length]) {
      const boundary = new FrameBoundary();
      let taken = 0;
      for (let at = 0; at < all.length; at += size)
        taken += boundary.push(all.subarray(at, at + size), false);
      expect([taken, boundary.isReached]).toEqual([all.length, true]);
    }
  });

  it('is taken up to the end of a frame where it stops', () => {
    const boundary = new FrameBoundary();
    expect(boundary.push(Buffer.from([0x81, 3, 1]), false)).toBe(3);
    expect(boundary.push(Buffer.from([2, 3, 0x81, 9]), true)).toBe(2);
    expect([boundary.isReached, boundary.push(Buffer.from([0x81]), true)]).toEqual([true, 0]);
  });

  it('with a length that nobody sends has no end', () => {
    const boundary = new FrameBoundary();
    boundary.push(Buffer.from([0x82, 127, 255, 255, 255, 255, 255, 255, 255, 255]), false);
    boundary.push(Buffer.alloc(1_000), true);
    expect(boundary.isReached).toBe(false);
  });
});
