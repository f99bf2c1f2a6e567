// The states in which an HTTP/2 client of the sandbox `box` can be, and the events that end them. Reaching a state writes no
// record; its end writes one record for each stream, whichever side ends it.
import { expect } from 'vitest';
import type { H2Exchange } from '../support/h2-exchange.ts';
import { goawayFrame, headersFrame, rstFrame } from '../support/h2-frames.ts';
import { H2WireClient } from '../support/h2-wire-client.ts';
import { encodeBlock } from '../support/hpack.ts';
import type { H2Scene, H2SceneOptions } from './h2-scene.ts';
import { type Box, TOKEN } from './record-scene.ts';

const silence = (): Promise<void> => new Promise(() => {});

export type BoxScene = H2Scene & Box;
export type Situation = {
  readonly title: string;
  readonly options?: H2SceneOptions;
  /** The number of streams in this state. */
  readonly streams: number;
  begin(scene: BoxScene): Promise<H2WireClient>;
};

async function boxClient(scene: BoxScene): Promise<H2WireClient> {
  const wire = await scene.boxClient();
  expect((await wire.openTunnel(scene.at(), scene.boxFields)).status).toBe(200);
  await wire.startTls({ ca: scene.proxy.caPem, name: 'api.test', alpn: ['h2'] });
  return H2WireClient.over(wire, scene.at());
}

/** Opens this many streams, sends part of each body, and waits until the host has them all. */
async function open(scene: BoxScene, count: number, body?: string): Promise<H2WireClient> {
  const client = await boxClient(scene);
  const method = body === undefined ? {} : { ':method': 'POST' };
  for (let i = 0; i < count; i += 1) {
    const stream = await client.open(client.fields(`/${i}`, [], method), { isEnd: body === undefined });
    if (body !== undefined) await stream.data(body);
  }
  if (scene.proxy.lookups.includes('callback.test')) return client;
  await scene.origin.stream(count - 1);
  return client;
}

async function half({ head, data }: H2Exchange): Promise<void> {
  await head(200);
  await data('half');
}

export const situations: readonly Situation[] = [
  { title: 'a session without streams', streams: 0, begin: boxClient },
  {
    title: 'half a header block',
    streams: 0,
    async begin(scene) {
      const client = await boxClient(scene);
      const block = encodeBlock(client.fields('/'));
      await client.send(headersFrame(1, block, { isOpen: true }));
      return client;
    },
  },
  {
    title: 'a stream without a response of its host',
    options: { respond: silence },
    streams: 1,
    begin: (scene) => open(scene, 1),
  },
  {
    title: 'each of four streams without a response of their host',
    options: { respond: silence },
    streams: 4,
    begin: (scene) => open(scene, 4),
  },
  {
    title: 'a stream with half a body',
    options: { respond: silence },
    streams: 1,
    begin: (scene) => open(scene, 1, 'half'),
  },
  {
    title: 'each of two responses that arrived in part',
    options: { respond: half },
    streams: 2,
    async begin(scene) {
      const client = await open(scene, 2);
      await client.peer.until(
        () => ([1, 3].every((id) => client.peer.stream(id).length === 4) ? true : undefined),
        'both halves',
      );
      return client;
    },
  },
  {
    title: 'a stream whose callback does not respond',
    options: {
      rules: [],
      callbacks: [{ match_hosts: ['api.test'], url: 'http://callback.test:9/', ttl_seconds: 60 }],
      resolve: { 'callback.test': new Promise(() => {}) },
    },
    streams: 1,
    async begin(scene) {
      const client = await boxClient(scene);
      await client.open(client.fields('/'), { isEnd: true });
      await expect.poll(() => scene.proxy.lookups).toContain('callback.test');
      return client;
    },
  },
];

export type End = {
  readonly by: string;
  end(scene: BoxScene, client: H2WireClient): Promise<readonly string[] | void> | void;
};
export const ends: readonly End[] = [
  { by: 'its client closes', end: (_, client) => client.wire.end() },
  { by: 'its client resets', end: (_, client) => client.wire.reset() },
  {
    by: 'its client sends GOAWAY and closes',
    end: (_, client) => client.send(goawayFrame(0)).then(() => client.wire.end()),
  },
  {
    by: 'its client resets each stream and closes',
    async end(_, client) {
      const ids = [...client.peer.streams.values()].map(({ id }) => id);
      await client.send(...ids.map((id) => rstFrame(id)));
      client.wire.end();
    },
  },
  { by: 'the process stops', end: ({ proxy }) => proxy.sidecar.close() },
  {
    by: 'its sandbox is removed',
    async end({ proxy }) {
      expect((await proxy.admin('DELETE', '/v1/sandboxes/box')).status).toBe(204);
      return ['admin sandbox.remove box - done 204 -'];
    },
  },
  {
    by: 'its token is changed',
    async end({ proxy }) {
      const changed = await proxy.admin('PATCH', '/v1/sandboxes/box', { token: `${TOKEN}-anew` });
      expect(changed.status).toBe(200);
      return ['admin sandbox.change box 1 done 200 -'];
    },
  },
];
