// The frames in any pieces, and what is rejected before a byte of a payload is kept.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  decodeCredit,
  encodeCredit,
  encodeFrameHead,
  type Frame,
  type FrameLimits,
  FrameReader,
  FROM_AGENT,
  FROM_HOST,
  MAX_DATA_BYTES,
  ProtocolError,
} from '../../../src/box-agent/protocol/frame.ts';

const encode = ({ type, id, payload }: Frame): Buffer =>
  Buffer.concat([encodeFrameHead(type, id, payload.length), payload]);

function read(limits: FrameLimits, pieces: readonly Buffer[]): Frame[] {
  const reader = new FrameReader(limits);
  return pieces.flatMap((piece) =>
    [...reader.read(piece)].map(({ type, id, payload }) => ({ type, id, payload: Buffer.from(payload) })),
  );
}

const payload = (min: number, max: number) =>
  fc.uint8Array({ minLength: min, maxLength: max }).map((bytes) => Buffer.from(bytes));
const frame = fc.oneof(
  fc.record({ type: fc.constant('data' as const), id: fc.nat(), payload: payload(1, 300) }),
  fc.record({ type: fc.constant('end' as const), id: fc.nat(), payload: payload(0, 0) }),
  fc.record({ type: fc.constant('credit' as const), id: fc.nat(), payload: payload(4, 4) }),
  fc.record({ type: fc.constant('result' as const), id: fc.nat(), payload: payload(2, 300) }),
);

describe('frames', () => {
  it('are read as they were written, however the stream is cut', () => {
    fc.assert(
      fc.property(
        fc.array(frame, { maxLength: 8 }),
        fc.array(fc.nat(), { maxLength: 20 }),
        (frames, cuts) => {
          const wire = Buffer.concat(frames.map(encode));
          const ends = [...cuts.map((cut) => cut % (wire.length + 1)), wire.length].toSorted((a, b) => a - b);
          const pieces = ends.map((end, i) => wire.subarray(ends[i - 1] ?? 0, end));
          expect(read(FROM_AGENT, pieces)).toEqual(frames);
        },
      ),
    );
  });

  it('are read byte by byte', () => {
    const sent: Frame = { type: 'data', id: 7, payload: Buffer.alloc(MAX_DATA_BYTES, 'x') };
    const pieces = [...encode(sent)].map((byte) => Buffer.of(byte));
    expect(read(FROM_AGENT, pieces)).toEqual([sent]);
  });

  const head = (length: number, type: number, id = 1): Buffer => {
    const bytes = Buffer.alloc(9);
    bytes.writeUInt32BE(length);
    bytes.writeUInt8(type, 4);
    bytes.writeUInt32BE(id, 5);
    return bytes;
  };

  it.each([
    ['a length that ends within the head', head(4, 2)],
    ['a length of nothing', head(0, 2)],
    ['a length of four gigabytes', head(0xffffffff, 2)],
    ['a length above that of the type', head(5 + MAX_DATA_BYTES + 1, 2)],
    ['data of nothing', head(5, 2)],
    ['a short credit', head(5 + 3, 5)],
    ['a long result', head(5 + 65_536, 9)],
    ['an end with a payload', head(6, 4)],
    ['an unknown type', head(5, 99)],
    ['type zero', head(5, 0)],
    ['a call by the agent', head(5 + 2, 1)],
    ['a ping by the agent', head(5, 11)],
  ])('reject %s at the head', (_, bytes) => {
    expect(() => read(FROM_AGENT, [bytes])).toThrow(ProtocolError);
  });

  it('reject from the host what only an agent sends', () => {
    expect(() => read(FROM_HOST, [head(5 + 2, 9)])).toThrow(ProtocolError);
    expect(() => read(FROM_HOST, [head(5 + 1, 12)])).toThrow(ProtocolError);
  });

  it('hold a payload that has not come at no more than its length', () => {
    const reader = new FrameReader(FROM_AGENT);
    expect([...reader.read(encodeFrameHead('data', 1, MAX_DATA_BYTES))]).toEqual([]);
    expect([...reader.read(Buffer.alloc(10))]).toEqual([]);
  });
});

describe('a credit', () => {
  it('is read as it was written', () => expect(decodeCredit(encodeCredit(0xfffffffe))).toBe(0xfffffffe));

  it('of nothing is rejected: any number of them would cost nothing', () =>
    expect(() => decodeCredit(encodeCredit(0))).toThrow(ProtocolError));
});
