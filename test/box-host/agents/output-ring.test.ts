// The ring against all that was ever written: what is kept is the end of it, and offsets are those that a client computes.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OutputRing } from '../../../src/box-host/agents/output-ring.ts';

/** Reads as a client does: the next offset is computed from the text. */
function readAll(ring: OutputRing, from = 0, step = 7): { readonly text: string; readonly first: number } {
  let [text, at, first] = ['', from, -1];
  for (let piece = ring.read(at, step); piece !== undefined; piece = ring.read(at, step)) {
    if (first === -1) first = piece.offset;
    expect(piece.end).toBe(piece.offset + Buffer.byteLength(piece.text));
    text += piece.text;
    at = piece.offset + Buffer.byteLength(piece.text);
  }
  return { text, first };
}

describe('a ring', () => {
  it('keeps the end of what was written, in whole characters', () => {
    const piece = fc.oneof(
      fc.uint8Array({ maxLength: 50 }).map((bytes) => Buffer.from(bytes)),
      fc.string({ unit: 'binary', maxLength: 30 }).map((text) => Buffer.from(text)),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), fc.integer({ min: 16, max: 200 }), (pieces, size) => {
        const ring = new OutputRing(size);
        for (const bytes of pieces) ring.push(bytes);
        ring.finish();
        const all = Buffer.from(Buffer.concat(pieces).toString());
        expect(ring.end).toBe(all.length);
        const { text } = readAll(ring);
        expect(all.toString().endsWith(text)).toBe(true);
        expect(Buffer.byteLength(text)).toBeGreaterThanOrEqual(Math.min(all.length, size - 3));
        expect(ring.allocated).toBeLessThanOrEqual(Math.max(size, 4096));
      }),
    );
  });

  it('reads on from any offset that it gave', () => {
    const ring = new OutputRing(1000);
    ring.push(Buffer.from('añb😀c\xff'));
    ring.finish();
    const whole = readAll(ring).text;
    for (let at = 0; at <= ring.end; at += 1) expect(whole.endsWith(readAll(ring, at).text)).toBe(true);
    expect(readAll(ring, 3).text).toBe('b😀cÿ');
  });

  it('joins a character that arrives in two pieces', () => {
    const ring = new OutputRing(1000);
    const bytes = Buffer.from('😀');
    ring.push(bytes.subarray(0, 2));
    expect(ring.read(0, 100)).toBeUndefined();
    ring.push(bytes.subarray(2));
    expect(ring.read(0, 100)).toEqual({ text: '😀', offset: 0, end: 4 });
  });

  it('has offsets of the text where bytes were no text', () => {
    const ring = new OutputRing(1000);
    ring.push(Buffer.from([0xff, 0x61]));
    expect(ring.read(0, 100)).toEqual({ text: '\ufffda', offset: 0, end: 4 });
    ring.push(Buffer.from('b'));
    expect(ring.read(4, 100)).toEqual({ text: 'b', offset: 4, end: 5 });
  });

  it('shows a gap where the beginning is gone', () => {
    const ring = new OutputRing(16);
    ring.push(Buffer.from('0123456789'.repeat(10)));
    expect(ring.read(0, 100)).toEqual({ text: '4567890123456789', offset: 84, end: 100 });
    expect(ring.start).toBe(84);
  });

  it('takes little for little output', () => {
    const ring = new OutputRing(1024 * 1024);
    expect(ring.allocated).toBe(0);
    ring.push(Buffer.from('x'));
    expect(ring.allocated).toBe(4096);
  });

  it('has nothing behind its end', () => {
    const ring = new OutputRing(100);
    ring.push(Buffer.from('abc'));
    expect([ring.read(3, 10), ring.read(1e15, 10)]).toEqual([undefined, undefined]);
  });

  it('gives up its oldest half, and goes on', () => {
    let held = 0;
    const memory = {
      take: (bytes: number) => {
        held += bytes;
        return true;
      },
      give: (bytes: number) => {
        held -= bytes;
      },
    };
    const ring = new OutputRing(16_384, memory);
    const text = 'abcdefghijklmnop'.repeat(1024);
    ring.push(Buffer.from(text));
    expect([ring.shrink(), ring.start, held]).toEqual([true, 8192, 8192]);
    expect(readAll(ring)).toEqual({ text: text.slice(8192), first: 8192 });
    ring.push(Buffer.from('q'));
    expect([ring.end, held, ring.start]).toEqual([16_385, 16_384, 8192]);
    expect(readAll(ring).text).toBe(`${text.slice(8192)}q`);
    expect([ring.shrink(), ring.shrink(), ring.shrink(), held]).toEqual([true, true, false, 4096]);
    expect(readAll(ring).text).toBe(`${text.slice(-4095)}q`);
  });

  it('keeps the newest in what it has where it gets no more memory', () => {
    const taken: boolean[] = [];
    const ring = new OutputRing(65_536, {
      take: (_, isRequired) => taken.push(isRequired) > 0 && isRequired,
      give: () => undefined,
    });
    const text = '0123456789'.repeat(1000);
    ring.push(Buffer.from(text));
    ring.push(Buffer.from(text));
    expect(taken).toEqual([false, true, false]);
    expect([ring.allocated, ring.start, ring.end]).toEqual([4096, 20_000 - 4096, 20_000]);
    expect(readAll(ring).text).toBe(text.slice(-4096));
  });
});
