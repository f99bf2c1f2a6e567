// The frames in any pieces, what is rejected before a byte of a payload is kept, and what reading them costs.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  encodeFrame,
  FrameReader,
  FrameTooLarge,
  ProtocolError,
} from '../../../src/agent-worker/protocol/frame.ts';
import { MAX_FRAME_BYTES } from '../../../src/agent-worker/protocol/messages.ts';
import { runs } from '../../support/run-size.ts';

function read(pieces: readonly Buffer[], maxBytes?: number): string[] {
  const reader = new FrameReader(maxBytes);
  return pieces.flatMap((piece) => [...reader.read(piece)].map((payload) => payload.toString()));
}

function announce(length: number): Buffer {
  const head = Buffer.alloc(4);
  head.writeUInt32BE(length);
  return head;
}

describe('frames', () => {
  it('are read as they were written, however the stream is cut', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ text: fc.string({ maxLength: 200, unit: 'binary' }) }), { maxLength: 8 }),
        fc.array(fc.nat(), { maxLength: 20 }),
        (messages, cuts) => {
          const wire = Buffer.concat(messages.map((message) => encodeFrame(message)));
          const ends = [...cuts.map((cut) => cut % (wire.length + 1)), wire.length].toSorted((a, b) => a - b);
          const pieces = ends.map((end, i) => wire.subarray(ends[i - 1] ?? 0, end));
          expect(read(pieces)).toEqual(messages.map((message) => JSON.stringify(message)));
        },
      ),
      { numRuns: runs(1000) },
    );
  });

  it('of any bytes end in an error or wait for more, and what was kept is bounded by what has come', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 64 }), { maxLength: 30 }), (pieces) => {
        try {
          read(pieces.map((piece) => Buffer.from(piece)));
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
        }
      }),
      { numRuns: runs(1000) },
    );
  });

  it('are read byte by byte', () => {
    const wire = encodeFrame({ text: 'x'.repeat(70_000) });
    const pieces = Array.from(wire, (byte) => Buffer.of(byte));
    expect(read(pieces)[0]).toHaveLength(wire.length - 4);
  });

  it('may be of the largest length, and not of one byte more', () => {
    expect(read([announce(3), Buffer.from('abc')], 3)).toEqual(['abc']);
    expect(() => read([announce(4)], 3)).toThrow(ProtocolError);
    expect(read([announce(MAX_FRAME_BYTES)])).toEqual([]);
    expect(() => read([announce(MAX_FRAME_BYTES + 1)])).toThrow('a frame of a length out of bounds');
  });

  it('without a payload are rejected', () => expect(() => read([announce(0)])).toThrow('an empty frame'));

  it('cost memory by what has come, not by what was announced', () => {
    const readers = Array.from({ length: 64 }, () => new FrameReader());
    const before = process.memoryUsage().arrayBuffers;
    for (const reader of readers) expect([...reader.read(announce(MAX_FRAME_BYTES))]).toEqual([]);
    for (const reader of readers) expect([...reader.read(Buffer.from('x'))]).toEqual([]);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(64 * 1024 * 1024);
  });

  it('are not written when they are too large', () => {
    expect(encodeFrame(['ä'], 6)).toHaveLength(10);
    expect(() => encodeFrame(['ä'], 5)).toThrow(FrameTooLarge);
  });
});
