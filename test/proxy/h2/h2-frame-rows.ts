// The rows of the HTTP/2 attacks T-11 and T-12: single frames, header blocks among them, that say something else than
// they are, or cannot be read at all, and what becomes of the connection that they came by.
import type { Flood } from '../../../src/proxy/h2/flood-gauge.ts';
import {
  dataFrame,
  encodeFrame,
  type ErrorName,
  HAS_PRIORITY,
  headersFrame,
  PADDED,
  pushFrame,
  rstFrame,
} from '../../support/h2-frames.ts';
import type { H2WireClient } from '../../support/h2-wire-client.ts';
import { encodeBlock, indexed, literal, type SentField, tableSize } from '../../support/hpack.ts';

export type FrameRow = {
  readonly attack: string;
  readonly what: string;
  /** The client's frames, piece by piece. */
  readonly frames: (client: H2WireClient) => Iterable<Buffer>;
  /** The codes that GOAWAY may have where it was read before the end; or that the connection goes on. */
  readonly ends: readonly ErrorName[] | 'never';
  /** The flood that is recorded, where the limit of the proxy itself must be the one that ends the connection. */
  readonly flood?: Flood;
  /** How this stream ends where the connection goes on. */
  readonly then?: { readonly stream: number; readonly reset?: ErrorName; readonly responded?: Responded };
  /** Its requests are never whole, and must not pass for whole ones at the origin. */
  readonly isHalf?: true;
};
type Responded = readonly [status: number, code: string | undefined];

export function rows(attack: string, list: readonly Omit<FrameRow, 'attack'>[]): readonly FrameRow[] {
  return list.map((row) => ({ attack, ...row }));
}

/** A rule on paths, so that the gate refuses a path that can be read in more than one way. */
export const pathRule = {
  name: 'paths',
  match_hosts: ['api.test'],
  match_paths: ['/v1/*'],
  headers: [{ name: 'X-Path', type: 'plaintext', value: 'v1' }],
} as const;
export const AMBIGUOUS_PATH = '/v1/%2e%2e/frames';

/** A request's header block. */
export function block(client: H2WireClient, extra: readonly SentField[] = [], path = '/frames'): Buffer {
  return encodeBlock(client.fields(path, extra));
}

/** A whole request with these bytes behind its header block. */
function request(client: H2WireClient, ...more: readonly Buffer[]): Buffer {
  return headersFrame(client.nextId(), Buffer.concat([block(client), ...more]), { isEnd: true });
}

/** A field is put into the table, then a request refers to it so many times. */
function bomb(client: H2WireClient, bytes: number, references: number): readonly Buffer[] {
  const field = literal('x-bomb', 'b'.repeat(bytes), 'indexing');
  return [request(client, field), request(client, ...Array.from({ length: references }, () => indexed(62)))];
}

function fields(count: number): Buffer {
  return encodeBlock(Array.from({ length: count }, (_, n) => [`x-${n}`, '']));
}

const compression = { ends: ['COMPRESSION_ERROR'] } as const;
const tooLarge = { ends: 'never', then: { stream: 1, responded: [431, 'head_too_large'] } } as const;
const tooMuch = { ends: 'never', then: { stream: 1, reset: 'ENHANCE_YOUR_CALM' } } as const;

const bombs = rows('T-11', [
  {
    what: 'a field of 3.9 KiB, sixteen thousand times by its index',
    ...tooMuch,
    then: { stream: 3, reset: 'ENHANCE_YOUR_CALM' },
    frames: (c) => bomb(c, 3_900, 16_000),
  },
  {
    what: 'a field of 3.9 KiB, five times by its index',
    ...tooLarge,
    then: { stream: 3, responded: [431, 'head_too_large'] },
    frames: (c) => bomb(c, 3_900, 5),
  },
  {
    what: 'a field of 3 KiB, four times by its index',
    ends: 'never',
    then: { stream: 3, responded: [200, undefined] },
    frames: (c) => bomb(c, 3_000, 4),
  },
  { what: 'a field of 20 KiB', ...tooLarge, frames: (c) => [request(c, literal('x', 'y'.repeat(20_000)))] },
  { what: 'a field of 60 KiB', ...tooLarge, frames: (c) => [request(c, literal('x', 'y'.repeat(60_000)))] },
  { what: 'more than a hundred fields', ...tooLarge, frames: (c) => [request(c, fields(101))] },
  { what: 'two thousand fields', ...tooMuch, frames: (c) => [request(c, fields(2_000))] },
  {
    what: 'a table that is larger than allowed',
    ...compression,
    frames: (c) => [headersFrame(1, Buffer.concat([tableSize(1 << 20), block(c)]))],
  },
  { what: 'a size of the table behind a field', ...compression, frames: (c) => [request(c, tableSize(0))] },
  { what: 'an index of nothing', ...compression, frames: (c) => [request(c, indexed(62))] },
  { what: 'index 0', ...compression, frames: (c) => [request(c, indexed(0))] },
  { what: 'an integer without end', ...compression, frames: (c) => [request(c, Buffer.alloc(20, 0xff))] },
  {
    what: 'a string that ends behind its block',
    ...compression,
    frames: (c) => [request(c, Buffer.of(0, 0x7f, 0x61))],
  },
  {
    what: 'Huffman padding of zeros',
    ...compression,
    frames: (c) => [request(c, Buffer.of(0, 1, 0x61, 0x81, 0x18))],
  },
]);

/** A frame of this type whose payload is these bytes. */
function odd(type: 'HEADERS' | 'RST_STREAM', flags: number, payload: Buffer): Buffer {
  return encodeFrame({ type, flags, stream: 1, payload });
}

/** An open request on stream 1, and a frame behind it. */
export function behind(client: H2WireClient, frame: Buffer): readonly Buffer[] {
  return [headersFrame(client.nextId(), block(client)), frame];
}

const frameSize = { ends: ['FRAME_SIZE_ERROR'] } as const;
const protocol = { ends: ['PROTOCOL_ERROR'] } as const;
const either = { ends: ['PROTOCOL_ERROR', 'FRAME_SIZE_ERROR'] } as const;
const http1 = 'GET / HTTP/1.1\r\nHost: api.test\r\n\r\n';

const malformed = rows('T-12', [
  { what: 'a head on stream 0', ...protocol, frames: (c) => [headersFrame(0, block(c))] },
  { what: 'a head on an even stream', ...protocol, frames: (c) => [headersFrame(2, block(c))] },
  {
    what: 'more padding than payload',
    ...protocol,
    frames: () => [odd('HEADERS', PADDED, Buffer.of(200, 1))],
  },
  {
    what: 'a head too short for its priority',
    ...either,
    frames: () => [odd('HEADERS', HAS_PRIORITY, Buffer.of(1))],
  },
  {
    what: 'a frame that is larger than allowed',
    ...frameSize,
    frames: () => [odd('HEADERS', 0, Buffer.alloc(16_385))],
  },
  { what: 'a body on stream 0', ...protocol, frames: () => [dataFrame(0, 'x')] },
  { what: 'a body on a stream that was never opened', ...protocol, frames: () => [dataFrame(1, 'x')] },
  { what: 'a reset of a stream that was never opened', ...protocol, frames: () => [rstFrame(1)] },
  { what: 'a reset of stream 0', ...protocol, frames: () => [rstFrame(0)] },
  {
    what: 'a reset of three bytes',
    ...frameSize,
    isHalf: true,
    frames: (c) => behind(c, odd('RST_STREAM', 0, Buffer.alloc(3))),
  },
  {
    what: 'a promise by the client',
    ...protocol,
    isHalf: true,
    frames: (c) => behind(c, pushFrame(1, 2, block(c))),
  },
  {
    what: 'a second head without an end',
    ends: 'never',
    then: { stream: 1, reset: 'PROTOCOL_ERROR' },
    isHalf: true,
    frames: (c) => behind(c, headersFrame(1, encodeBlock([['x', 'y']]))),
  },
  {
    what: 'an empty head',
    ends: 'never',
    then: { stream: 1, reset: 'PROTOCOL_ERROR' },
    frames: (c) => [headersFrame(c.nextId(), Buffer.alloc(0), { isEnd: true })],
  },
  // nghttp2 keeps no list of the streams that are over: a lower number could be one of those.
  {
    what: 'a stream with a lower number than the last',
    ends: 'never',
    then: { stream: 3, responded: [200, undefined] },
    frames(c) {
      const skipped = c.nextId();
      return [request(c), headersFrame(skipped, block(c), { isEnd: true })];
    },
  },
  { what: 'noise', ...either, frames: () => [Buffer.alloc(100_000, 0xa5)] },
  { what: 'HTTP/1.1', ...either, frames: () => [Buffer.from(http1.repeat(50))] },
]);

export const frameRows: readonly FrameRow[] = [...bombs, ...malformed];
