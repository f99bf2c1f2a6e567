// A hundred megabytes of messages to a WebSocket that does not read: its sender has to wait, the proxy buffers nothing, and
// everything arrives when it reads again.
// @module-tag long
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { WebSocket } from 'ws';
import { type BigBody, createBigBody } from './big-body.ts';
import { lookUntil } from './deadline.ts';
import { sampleResident } from './resident-sampler.ts';
import {
  createWebSocketScene,
  intercepted,
  type Pair,
  type Side,
  sides,
  type WebSocketScene,
  ways,
} from './websocket-scene.ts';

const MIB = 1024 * 1024;
/** While the sender waits nothing moves, so the memory of the proxy then is what it buffers. */
const MAX_HELD_BYTES = 32 * MIB;
// Without TLS termination the proxy reads 64 KiB at a time, and V8 collects such garbage only after 64 MiB.
const MAX_GROWTH_BYTES = { terminated: 32 * MIB, passed: 96 * MIB } as const;
// The most that kernel buffers can hold; the rest must wait at the sender.
const MAX_ON_THE_WAY_BYTES = 60_000_000;
const STALLED_MS = 15_000;
const QUIET_LOOKS = 10;

const warmUp = createBigBody(4_000_000);
const big = createBigBody();

describe.each(ways.slice(0, 3))('$title', (way) => {
  let scene: WebSocketScene;

  beforeAll(async () => {
    scene = await createWebSocketScene();
    const pair = await scene.open(way, [], { perMessageDeflate: false });
    for (const [from, to] of sides) {
      const arrived = hashOf(pair[to], warmUp);
      await transfer(pair[from], warmUp).done;
      await arrived;
    }
    pair.client.close();
  });
  afterAll(() => scene[Symbol.asyncDispose]());

  it.each<[string, readonly [Side, Side][]]>([
    ['a client that sends to a server that does not read', [sides[0]!]],
    ['a server that sends to a client that does not read', [sides[1]!]],
    ['two that both send and do not read', sides],
  ])('makes %s wait', async (_, flows) => {
    const baselineBytes = scene.proxy.process.usage().residentBytes;
    using memory = sampleResident(scene.proxy.process);
    const pair = await scene.open(way, [], { perMessageDeflate: false });
    const ends = flows.map(([from, to]) => holdBack(pair, from, to));
    for (const { sending } of ends) {
      await untilStuck(sending);
      expect(sending.bytes).toBeGreaterThan(0);
      expect(sending.bytes).toBeLessThan(MAX_ON_THE_WAY_BYTES);
    }
    expect(scene.proxy.process.usage().residentBytes - baselineBytes).toBeLessThan(MAX_HELD_BYTES);
    for (const { receiver } of ends) receiver.resume();
    expect(await Promise.all(ends.map(({ arrived }) => arrived))).toEqual(ends.map(() => big.sha256));
    expect(memory.peakBytes - baselineBytes).toBeLessThan(
      MAX_GROWTH_BYTES[way === intercepted ? 'terminated' : 'passed'],
    );
    pair.client.close();
  });
});

type Transfer = { bytes: number; readonly done: Promise<void> };

function holdBack(
  pair: Pair,
  from: Side,
  to: Side,
): { readonly receiver: WebSocket; readonly sending: Transfer; readonly arrived: Promise<string> } {
  const receiver = pair[to];
  const arrived = hashOf(receiver, big);
  receiver.pause();
  return { receiver, sending: transfer(pair[from], big), arrived };
}

/** Each message is sent after the one before has left this process. */
function transfer(socket: WebSocket, body: BigBody): Transfer {
  const sendAll = async (): Promise<void> => {
    for (const piece of body.pieces()) {
      await new Promise<void>((resolve, reject) => {
        socket.send(piece, (error) => (error ? reject(error) : resolve()));
      });
      sending.bytes += piece.length;
    }
  };
  const started = Promise.withResolvers<void>();
  const sending: Transfer = { bytes: 0, done: started.promise.then(sendAll) };
  started.resolve();
  return sending;
}

function hashOf(socket: WebSocket, { length }: BigBody): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const hash = createHash('sha256');
  let bytes = 0;
  const onMessage = (message: Buffer): void => {
    hash.update(message);
    bytes += message.length;
    if (bytes < length) return;
    socket.off('message', onMessage);
    resolve(hash.digest('hex'));
  };
  socket.on('message', onMessage);
  socket.once('close', (code) => reject(new Error(`closed with ${code} after ${bytes} bytes`)));
  return promise;
}

/** Waits until the sender has sent nothing for a quarter of a second. */
async function untilStuck(sending: Transfer): Promise<void> {
  let before = 0;
  let quiet = 0;
  const look = (): number => {
    quiet = sending.bytes > 0 && sending.bytes === before ? quiet + 1 : 0;
    before = sending.bytes;
    return quiet;
  };
  expect(await lookUntil(look, (looks) => looks >= QUIET_LOOKS, STALLED_MS)).toBe(QUIET_LOOKS);
}
