// The states in which a client of the sandbox `box` can be. Reaching a state writes no record; its end writes one record,
// whichever side ends it.
import { expect } from 'vitest';
import type { Exchange } from '../support/recording-origin.ts';
import type { WireClient } from '../support/wire-client.ts';
import { type SceneOptions, head } from './credential-scene.ts';
import type { RecordScene } from './record-scene.ts';

export type Situation = {
  readonly title: string;
  readonly options?: SceneOptions;
  /** The outcome in the record. */
  readonly outcome: 'failed' | 'tunnelled' | 'upgraded';
  /** Brings a client into this state. */
  begin(scene: RecordScene): Promise<WireClient>;
};

const SWITCHING =
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n';
const ASKING = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Key: k',
  'Sec-WebSocket-Version: 13',
];

const silence = (): Promise<void> => new Promise(() => {});

/** A client in the intercepted tunnel to api.test, its 200 read. */
async function tunnel(scene: RecordScene): Promise<WireClient> {
  const client = await scene.boxClient();
  const { status } = await client.openTunnel(scene.at(), scene.boxFields);
  expect(status).toBe(200);
  return client;
}

async function secured(scene: RecordScene): Promise<WireClient> {
  const client = await tunnel(scene);
  await client.startTls({ ca: scene.proxy.caPem, name: 'api.test' });
  return client;
}

async function clientWithRequest(
  scene: RecordScene,
  line: string,
  fields: readonly string[] = [],
): Promise<WireClient> {
  const client = await secured(scene);
  await client.send(head(line, scene.at(), fields));
  return client;
}

/** Closes when its client does: a half-closed tunnel stays open. */
async function untilEnd({ reader }: Exchange): Promise<void> {
  await reader.finished;
}

async function half(exchange: Exchange): Promise<void> {
  await exchange.send('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf');
  await silence();
}

async function endless(exchange: Exchange): Promise<void> {
  await exchange.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n');
  await silence();
}

async function mirror({ send, reader }: Exchange): Promise<void> {
  await send(`${SWITCHING}hi`);
  for (let piece = await reader.readSome(); piece !== undefined; piece = await reader.readSome())
    await send(piece);
}

const never = (): Promise<never> => new Promise(() => {});

export const situations: readonly Situation[] = [
  { title: 'an intercepted tunnel without bytes', outcome: 'failed', begin: tunnel },
  {
    title: 'half a ClientHello',
    outcome: 'failed',
    async begin(scene) {
      const client = await tunnel(scene);
      await client.send('\x16\x03\x01\x02\x00\x01');
      return client;
    },
  },
  { title: 'an intercepted tunnel that was never used', outcome: 'failed', begin: secured },
  {
    title: 'half a head in a tunnel',
    outcome: 'failed',
    async begin(scene) {
      const client = await secured(scene);
      await client.send('GET / HT');
      return client;
    },
  },
  {
    title: 'a request without a response of its host',
    options: { respond: silence },
    outcome: 'failed',
    async begin(scene) {
      const client = await clientWithRequest(scene, 'GET /');
      await scene.origin.request(0);
      return client;
    },
  },
  {
    title: 'a plaintext request without a response of its host',
    options: { respond: silence, tls: 'clear', rules: [] },
    outcome: 'failed',
    async begin(scene) {
      const client = await scene.boxClient();
      await client.send(head(`GET http://${scene.at()}/`, scene.at(), scene.boxFields));
      await scene.origin.request(0);
      return client;
    },
  },
  {
    title: 'a request with half a body',
    options: { respond: silence },
    outcome: 'failed',
    async begin(scene) {
      const client = await clientWithRequest(scene, 'POST /', ['Content-Length: 9']);
      await client.send('half');
      await scene.origin.request(0);
      return client;
    },
  },
  ...[half, endless].map(
    (respond): Situation => ({
      title: `a response that arrived in part (${respond.name})`,
      options: { respond },
      outcome: 'failed',
      async begin(scene) {
        const client = await clientWithRequest(scene, 'GET /');
        await client.readThrough('half');
        return client;
      },
    }),
  ),
  {
    title: 'a request whose callback does not respond',
    options: {
      rules: [],
      callbacks: [{ match_hosts: ['api.test'], url: 'http://callback.test:9/', ttl_seconds: 60 }],
      resolve: { 'callback.test': never() },
    },
    outcome: 'failed',
    async begin(scene) {
      const client = await clientWithRequest(scene, 'GET /');
      await expect.poll(() => scene.proxy.lookups).toEqual(['callback.test']);
      return client;
    },
  },
  {
    title: 'a request during the lookup of its host',
    options: { resolve: { 'api.test': never() } },
    outcome: 'failed',
    async begin(scene) {
      const client = await clientWithRequest(scene, 'GET /');
      await expect.poll(() => scene.proxy.lookups).toEqual(['api.test']);
      return client;
    },
  },
  {
    title: 'a CONNECT during the lookup of its host',
    options: { rules: [], resolve: { 'api.test': never() } },
    outcome: 'failed',
    async begin(scene) {
      const client = await scene.boxClient();
      await client.send(head(`CONNECT ${scene.at()}`, scene.at(), scene.boxFields));
      await expect.poll(() => scene.proxy.lookups).toEqual(['api.test']);
      return client;
    },
  },
  {
    title: 'a blind tunnel',
    options: { rules: [], tls: 'clear', respond: untilEnd },
    outcome: 'tunnelled',
    async begin(scene) {
      const client = await tunnel(scene);
      await client.send(head('GET /', scene.at()));
      await scene.origin.request(0);
      return client;
    },
  },
  {
    title: 'a websocket',
    options: { respond: mirror },
    outcome: 'upgraded',
    async begin(scene) {
      const client = await clientWithRequest(scene, 'GET /', ASKING);
      await client.readThrough('hi');
      return client;
    },
  },
];
