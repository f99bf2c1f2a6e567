// WebSocket between a ws client and a ws server: through an interception, which reads the upgrade and then no more,
// and through a blind tunnel, which reads nothing.
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { spawnSallyport, type SpawnedSallyport } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { openTunnel, secureTunnel } from './tunnel.ts';

const MEGABYTE = 1_000_000;
const origins = createTestAuthority();
const server = createServer({ SNICallback: (name, done) => done(null, origins.contextFor(name)) });
const webSockets = new WebSocketServer({ server, maxPayload: 2 * MEGABYTE });
let proxy: SpawnedSallyport;
let proxyCa: string;
let port: number;

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  port = (server.address() as AddressInfo).port;
  const headers = [{ name: 'X-Key', type: 'plaintext', value: 'injected' }];
  proxy = await spawnSallyport({
    upstreamCaPem: origins.certificatePem,
    proxyConfig: { rules: [{ name: 'api', match_hosts: ['api.test'], headers }] },
  });
  proxyCa = await readFile(proxy.caFile, 'utf8');
});

afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  for (const socket of webSockets.clients) socket.terminate();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

type Way = { readonly name: string; readonly ca: () => string; readonly keys: readonly string[] };
type Pair = { readonly client: WebSocket; readonly server: WebSocket };

describe.each<Way>([
  { name: 'api.test', ca: () => proxyCa, keys: ['injected'] },
  { name: 'other.test', ca: () => origins.certificatePem, keys: [] },
])('$name', (way) => {
  it('has its upgrade with the injected header where a rule names it', async () => {
    const { pair, keys } = await open(way);
    expect(keys).toEqual(way.keys);
    pair.client.close();
  });

  it.each<[string, string | Buffer]>([
    ['a text', 'grüße'],
    ['an empty text', ''],
    ['bytes', Buffer.from([0, 255, 13, 10, 0])],
    ['a megabyte of text', 'm'.repeat(MEGABYTE)],
    ['a megabyte of bytes', randomBytes(MEGABYTE)],
  ])('carries %s in both directions', async (_, message) => {
    const { pair } = await open(way);
    expect(await carried(pair.client, pair.server, message)).toEqual(message);
    expect(await carried(pair.server, pair.client, message)).toEqual(message);
    pair.client.close();
  });

  it('carries a hundred messages in order while both sides send', async () => {
    const { pair } = await open(way);
    const numbers = Array.from({ length: 100 }, (_, i) => String(i));
    const both = [received(pair.client, 100), received(pair.server, 100)];
    for (const number of numbers) {
      pair.client.send(number);
      pair.server.send(number);
    }
    expect(await Promise.all(both)).toEqual([numbers, numbers]);
    pair.client.close();
  });

  it('carries ping and pong with their payload', async () => {
    const { pair } = await open(way);
    for (const one of [pair.client, pair.server]) {
      const pong = once(one, 'pong');
      one.ping('are you there');
      expect(String((await pong)[0])).toBe('are you there');
    }
    pair.client.close();
  });

  it.each<[string, keyof Pair, keyof Pair]>([
    ['the client', 'client', 'server'],
    ['the server', 'server', 'client'],
  ])('tells the other side with what code %s closed', async (_, from, to) => {
    const { pair } = await open(way);
    const [closed, answered] = [once(pair[to], 'close'), once(pair[from], 'close')];
    pair[from].close(4001, 'done here');
    const [code, reason] = await closed;
    expect([code, String(reason)]).toEqual([4001, 'done here']);
    expect((await answered)[0]).toBe(4001);
  });

  it.each<[string, keyof Pair, keyof Pair]>([
    ['client', 'client', 'server'],
    ['server', 'server', 'client'],
  ])('a %s that is cut off is gone for the other side', async (_, from, to) => {
    const { pair } = await open(way);
    const closed = once(pair[to], 'close');
    pair[from].terminate();
    expect((await closed)[0]).toBe(1006);
  });
});

async function open(way: Way): Promise<{ pair: Pair; keys: readonly string[] }> {
  const authority = `${way.name}:${port}`;
  const secure = await secureTunnel(await openTunnel(proxy.port, authority), way.name, way.ca());
  const accepted = once(webSockets, 'connection');
  const client = new WebSocket(`wss://${authority}/socket`, { createConnection: () => secure });
  const [accepting, request] = await accepted;
  if (client.readyState !== WebSocket.OPEN) await once(client, 'open');
  const { rawHeaders } = request;
  const keys = rawHeaders.filter((_: string, i: number) => rawHeaders[i - 1]?.toLowerCase() === 'x-key');
  return { pair: { client, server: accepting }, keys };
}

async function carried(from: WebSocket, to: WebSocket, message: string | Buffer): Promise<string | Buffer> {
  const arrived = once(to, 'message');
  from.send(message);
  const [bytes, isBinary] = await arrived;
  return isBinary ? bytes : String(bytes);
}

function received(socket: WebSocket, count: number): Promise<readonly string[]> {
  const { promise, resolve } = Promise.withResolvers<readonly string[]>();
  const messages: string[] = [];
  socket.on('message', (bytes) => {
    messages.push(String(bytes));
    if (messages.length === count) resolve(messages);
  });
  return promise;
}
