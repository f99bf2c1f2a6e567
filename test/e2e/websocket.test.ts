// WebSocket between a ws client and a ws server: through an interception, which parses only the upgrade, through a blind
// tunnel, which parses nothing, and in plaintext with and without CONNECT.
import { once } from 'node:events';
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { lookUntil } from './deadline.ts';
import {
  createWebSocketScene,
  INJECTED,
  type Pair,
  received,
  type Side,
  sides,
  valuesOf,
  type WebSocketScene,
  ways,
} from './websocket-scene.ts';

const MEGABYTE = 1_000_000;
let scene: WebSocketScene;

beforeAll(async () => void (scene = await createWebSocketScene()));
afterAll(() => scene[Symbol.asyncDispose]());

describe.each(ways)('$title', (way) => {
  it('gets the credential in its upgrade when a rule names the host', async () => {
    const { client, request } = await scene.open(way);
    expect(valuesOf(request, 'authorization')).toEqual(way.host === 'api.test' ? [INJECTED] : []);
    client.close();
  });

  it.each<[string, string | Buffer]>([
    ['a text', 'grüße'],
    ['an empty text', ''],
    ['bytes', Buffer.from([0, 255, 13, 10, 0])],
    ['no bytes', Buffer.alloc(0)],
    ['what looks like HTTP', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nGET / HTTP/1.1\r\n\r\n'],
    ['a megabyte of text', 'm'.repeat(MEGABYTE)],
    ['a megabyte of bytes', randomBytes(MEGABYTE)],
  ])('carries %s in both directions', async (_, message) => {
    const pair = await scene.open(way);
    for (const [from, to] of sides) {
      const arrived = received(pair[to], 1);
      pair[from].send(message);
      expect(await arrived).toEqual([message]);
    }
    pair.client.close();
  });

  it('carries a hundred messages in order while both sides send', async () => {
    const { client, server } = await scene.open(way);
    const numbers = Array.from({ length: 100 }, (_, i) => String(i));
    const both = [received(client, 100), received(server, 100)];
    for (const number of numbers) {
      client.send(number);
      server.send(number);
    }
    expect(await Promise.all(both)).toEqual([numbers, numbers]);
    client.close();
  });

  it.each(sides)('carries a megabyte in fragments of the %s, with a ping in between', async (from, to) => {
    const pair = await scene.open(way);
    const arrived = received(pair[to], 1);
    const pinged = once(pair[to], 'ping').then(() => 'the ping');
    const first = Promise.race([pinged, arrived.then(() => 'the message')]);
    const pieces = Array.from({ length: 10 }, (_, i) => Buffer.alloc(MEGABYTE / 10, i));
    for (const [i, piece] of pieces.entries()) {
      pair[from].send(piece, { fin: i === 9, binary: true });
      if (i === 4) pair[from].ping();
    }
    expect(await first).toBe('the ping');
    expect(await arrived).toEqual([Buffer.concat(pieces)]);
    pair.client.close();
  });

  it.each(sides)('carries a ping of the %s and its pong with their payload', async (from) => {
    const pair = await scene.open(way);
    const pong = once(pair[from], 'pong');
    pair[from].ping('are you there');
    expect(String((await pong)[0])).toBe('are you there');
    pair.client.close();
  });

  it.each<[Side, number, string]>(
    sides.flatMap(([from]) =>
      [1000, 1001, 1011, 3000, 4001, 4999].map((code): [Side, number, string] => [from, code, 'grüße']),
    ),
  )('carries a close by the %s with %i and its reason', async (from, code, why) => {
    const pair = await scene.open(way);
    expect(await closed(pair, from, () => pair[from].close(code, why))).toEqual([code, why, code]);
  });

  it.each(sides)('carries a close by the %s without a code', async (from) => {
    const pair = await scene.open(way);
    expect(await closed(pair, from, () => pair[from].close())).toEqual([1005, '', 1005]);
  });

  it.each(sides)('carries the longest reason of the %s', async (from) => {
    const pair = await scene.open(way);
    const why = 'y'.repeat(123);
    expect(await closed(pair, from, () => pair[from].close(4000, why))).toEqual([4000, why, 4000]);
  });

  it.each(sides)('delivers what the %s sent before it closed', async (from, to) => {
    const pair = await scene.open(way);
    const arrived = received(pair[to], 3);
    for (let i = 0; i < 3; i += 1) pair[from].send(Buffer.alloc(MEGABYTE, i));
    pair[from].close(1000);
    expect((await arrived).map((message) => [message.length, message[0]])).toEqual(
      [0, 1, 2].map((i) => [MEGABYTE, i]),
    );
  });

  it.each(sides)('a %s that is disconnected ends the other side without a close frame', async (from, to) => {
    const pair = await scene.open(way);
    const gone = once(pair[to], 'close');
    // A reset is reported as an error, then the end; a FIN without a close frame as the end only.
    pair[to].on('error', () => {});
    pair[from].terminate();
    expect((await gone)[0]).toBe(1006);
  });
});

describe('a hundred sockets', () => {
  it('opened at the same time carry their own messages and leave nothing behind', async () => {
    const before = scene.proxy.process.usage().descriptors;
    const pairs = await Promise.all(
      Array.from({ length: 100 }, (_, i) => scene.open(ways[i % ways.length] ?? ways[0]!)),
    );
    const echoes = pairs.map(async ({ client, server }, i) => {
      server.on('message', (message) => server.send(`${i} received ${String(message)}`));
      const refresh = received(client, 20);
      for (let n = 0; n < 20; n += 1) client.send(`${i}.${n}`);
      return refresh;
    });
    const expected = pairs.map((_, i) => Array.from({ length: 20 }, (__, n) => `${i} received ${i}.${n}`));
    expect(await Promise.all(echoes)).toEqual(expected);
    const ends = pairs.map((pair, i) => closed(pair, 'client', () => pair.client.close(4000 + i)));
    expect(await Promise.all(ends)).toEqual(pairs.map((_, i) => [4000 + i, '', 4000 + i]));
    expect(
      await lookUntil(
        () => scene.proxy.process.usage().descriptors,
        (count) => count <= before,
        10_000,
      ),
    ).toBeLessThanOrEqual(before);
  });
});

/** Code and reason at the other side, and the code of the reply. */
async function closed(pair: Pair, from: Side, close: () => void): Promise<readonly unknown[]> {
  const to = from === 'client' ? 'server' : 'client';
  const both = Promise.all([once(pair[to], 'close'), once(pair[from], 'close')]);
  close();
  const [[code, why], [back]] = await both;
  return [code, String(why), back];
}
