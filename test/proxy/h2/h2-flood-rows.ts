// The rows of the HTTP/2 attacks T-08 to T-10: floods, which a client sends on a connection of its own until that has gone,
// and what merely looks like one and goes on being served.
import {
  continuationFrame,
  dataFrame,
  encodeFrame,
  goawayFrame,
  headersFrame,
  pingFrame,
  priorityFrame,
  rstFrame,
  settingsAckFrame,
  settingsFrame,
  windowFrame,
} from '../../support/h2-frames.ts';
import type { H2WireClient } from '../../support/h2-wire-client.ts';
import { AMBIGUOUS_PATH, block, type FrameRow, rows } from './h2-frame-rows.ts';
import { indexed, literal } from '../../support/hpack.ts';

/** Frames of which nobody sends so many: a connection that outlives them fails its row. */
const MANY = 400_000;

/** So many pieces of about a hundred frames each. */
function* flood(piece: (n: number) => Buffer, count: number = MANY): Iterable<Buffer> {
  for (let n = 0; n < count; n += 100)
    yield Buffer.concat(Array.from({ length: Math.min(100, count - n) }, (_, i) => piece(n + i)));
}

/** An open request on stream 1, then the flood. */
function* behindRequest(client: H2WireClient, piece: (n: number) => Buffer): Iterable<Buffer> {
  yield headersFrame(client.nextId(), block(client));
  yield* flood(piece);
}

/** On each of many streams a request, whole or not, and what follows it. */
function perStream(
  client: H2WireClient,
  {
    isEnd = true,
    count = MANY,
    path,
  }: { readonly isEnd?: boolean; readonly count?: number; readonly path?: string },
  then: (id: number) => Buffer,
): Iterable<Buffer> {
  const head = block(client, [], path);
  return flood(() => {
    const id = client.nextId();
    return Buffer.concat([headersFrame(id, head, { isEnd }), then(id)]);
  }, count);
}

// nghttp2 and node:http2 say INTERNAL_ERROR of the floods that they notice themselves.
const calm = ['ENHANCE_YOUR_CALM', 'INTERNAL_ERROR'] as const;
const protocol = ['PROTOCOL_ERROR'] as const;

const resets = rows('T-08', [
  { what: 'requests and their reset', ends: calm, frames: (c) => perStream(c, {}, (id) => rstFrame(id)) },
  {
    what: 'requests, half a body and their reset',
    isHalf: true,
    ends: calm,
    frames: (c) =>
      perStream(c, { isEnd: false }, (id) => Buffer.concat([dataFrame(id, 'half'), rstFrame(id)])),
  },
  {
    what: 'requests that the gate refuses, and their reset',
    ends: calm,
    flood: 'resets',
    frames: (c) => perStream(c, { path: AMBIGUOUS_PATH }, (id) => rstFrame(id)),
  },
  {
    what: 'requests whose window is opened by nothing, so that we reset them',
    ends: [...calm, ...protocol],
    frames: (c) => perStream(c, {}, (id) => windowFrame(id, 0)),
  },
  {
    what: 'requests whose window is opened too far, so that we reset them',
    ends: [...calm, 'FLOW_CONTROL_ERROR'],
    frames: (c) => perStream(c, {}, (id) => windowFrame(id, 0x7fffffff)),
  },
  {
    what: 'requests that have a body behind their end',
    ends: [...calm, 'STREAM_CLOSED'],
    frames: (c) => perStream(c, {}, (id) => dataFrame(id, 'late')),
  },
  {
    what: 'requests that are none, so that we reset them',
    ends: [...calm, ...protocol],
    frames: (c) => flood(() => headersFrame(c.nextId(), block(c, [['X-Upper', '1']]), { isEnd: true })),
  },
  {
    what: 'more open requests than are allowed, so that we refuse them',
    ends: [...calm, ...protocol],
    frames: (c) => perStream(c, { isEnd: false }, () => Buffer.alloc(0)),
  },
  { what: 'fifty resets', ends: 'never', frames: (c) => perStream(c, { count: 50 }, (id) => rstFrame(id)) },
]);

function* endless(client: H2WireClient, fragment: Buffer): Iterable<Buffer> {
  const id = client.nextId();
  yield headersFrame(id, block(client), { isOpen: true, isEnd: true });
  yield* flood(() => continuationFrame(id, fragment), 20_000);
}

const continuations = rows('T-09', [
  {
    what: 'empty ones without end',
    ends: [...calm, ...protocol],
    frames: (c) => endless(c, Buffer.alloc(0)),
  },
  {
    what: 'ones of a byte without end',
    ends: [...calm, ...protocol],
    frames: (c) => endless(c, indexed(2)),
  },
  {
    what: 'full ones without end',
    ends: [...calm, ...protocol],
    frames: (c) =>
      endless(c, Buffer.concat(Array.from({ length: 16 }, () => literal('x', 'y'.repeat(1_000))))),
  },
  {
    what: 'another frame in between',
    ends: protocol,
    frames: (c) => [headersFrame(c.nextId(), block(c), { isOpen: true }), pingFrame()],
  },
  {
    what: 'one of another stream',
    ends: protocol,
    frames: (c) => [
      headersFrame(c.nextId(), block(c), { isOpen: true }),
      continuationFrame(99, Buffer.alloc(0)),
    ],
  },
  { what: 'one that continues nothing', ends: protocol, frames: () => [continuationFrame(1, indexed(2))] },
  {
    what: 'a head in four of them',
    ends: 'never',
    frames: (c) => {
      const head = block(c);
      return [headersFrame(c.nextId(), head, { isEnd: true, split: Math.ceil(head.length / 5) })];
    },
  },
]);

const oddSettings = (id: number, value: number): Buffer => {
  const payload = Buffer.alloc(6);
  payload.writeUInt16BE(id, 0);
  payload.writeUInt32BE(value, 2);
  return encodeFrame({ type: 'SETTINGS', payload });
};

const floods = rows('T-10', [
  { what: 'pings', ends: calm, frames: () => flood(() => pingFrame()) },
  {
    what: 'responses to pings',
    ends: [...calm, ...protocol],
    frames: () => flood(() => pingFrame('12345678', { isAck: true })),
  },
  { what: 'settings', ends: calm, frames: () => flood(() => settingsFrame()) },
  {
    what: 'settings that change the table',
    ends: calm,
    frames: () => flood((n) => settingsFrame({ header_table_size: n % 4096, initial_window_size: n })),
  },
  { what: 'responses to settings', ends: [...calm, ...protocol], frames: () => flood(settingsAckFrame) },
  { what: 'windows of the connection', ends: calm, frames: () => flood(() => windowFrame(0, 1)) },
  { what: 'windows of a stream', ends: calm, frames: (c) => behindRequest(c, () => windowFrame(1, 1)) },
  {
    what: 'windows of streams that are over',
    ends: calm,
    frames: function* (c) {
      yield* perStream(c, { count: 1 }, (id) => rstFrame(id));
      yield* flood(() => windowFrame(1, 1));
    },
  },
  { what: 'priorities', ends: calm, frames: () => flood((n) => priorityFrame(2 * (n % 1_000) + 1)) },
  { what: 'empty pieces of a body', ends: calm, frames: (c) => behindRequest(c, () => dataFrame(1, '')) },
  {
    what: 'padding instead of a body',
    ends: [...calm, 'FLOW_CONTROL_ERROR'],
    frames: (c) => behindRequest(c, () => dataFrame(1, '', { padding: 200 })),
  },
  { what: 'frames of no known type', ends: calm, frames: () => flood(() => encodeFrame({ type: 0xaa })) },
  {
    what: 'a window of the connection that overflows',
    ends: ['FLOW_CONTROL_ERROR'],
    frames: () => [windowFrame(0, 0x7fffffff)],
  },
  { what: 'a window of the connection by nothing', ends: protocol, frames: () => [windowFrame(0, 0)] },
  {
    what: 'a first window beyond 2^31',
    ends: ['FLOW_CONTROL_ERROR'],
    frames: () => [oddSettings(4, 0x80000000)],
  },
  { what: 'frames of one byte', ends: protocol, frames: () => [settingsFrame({ max_frame_size: 1 })] },
  {
    what: 'settings cut short',
    ends: ['FRAME_SIZE_ERROR'],
    frames: () => [encodeFrame({ type: 'SETTINGS', payload: Buffer.alloc(5) })],
  },
  { what: 'a ping cut short', ends: ['FRAME_SIZE_ERROR'], frames: () => [pingFrame('short')] },
  {
    what: 'a leave, and then more',
    ends: ['NO_ERROR', ...protocol, 'INTERNAL_ERROR'],
    frames: function* (c) {
      yield goawayFrame(0, 'INTERNAL_ERROR');
      yield* perStream(c, { count: 10 }, () => Buffer.alloc(0));
    },
  },
  {
    what: 'twenty pings and five settings',
    ends: 'never',
    frames: function* () {
      yield* flood(() => pingFrame(), 20);
      yield* flood(() => settingsFrame({ initial_window_size: 70_000 }), 5);
    },
  },
]);

export const floodRows: readonly FrameRow[] = [...resets, ...continuations, ...floods];
