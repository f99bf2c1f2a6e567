// I9 over HTTP/2: streams, field lists, bodies and retries have limits; what exceeds a limit is refused or delayed.
import { describe, expect, it, vi } from 'vitest';
import type { H2Exchange } from '../support/h2-exchange.ts';
import { headersFrame } from '../support/h2-frames.ts';
import { refusalOf } from '../support/h2-wire-client.ts';
import { encodeBlock, literal } from '../support/hpack.ts';
import { type H2Scene, createH2Scene } from './h2-scene.ts';

function sceneWith(config: object, respond: (exchange: H2Exchange) => Promise<unknown>): Promise<H2Scene> {
  return createH2Scene({
    respond: async (exchange) => void (await respond(exchange)),
    config: () => ({ timeouts: { drain_ms: 200 }, ...config }),
  });
}

const never = (): Promise<never> => new Promise(() => undefined);

describe('I9 bounded: clients', () => {
  it('I9 bounded: a client has a limited number of concurrent streams', async () => {
    await using scene = await sceneWith({ limits: { max_streams: 3 } }, never);
    await using client = await scene.client();
    const streams = Array.from({ length: 8 }, () => client.peer.stream(client.nextId()));
    const block = encodeBlock(client.fields('/'));
    await client.send(...streams.map(({ id }) => headersFrame(id, block, { isEnd: true })));
    const codes = await Promise.all(streams.slice(3).map((stream) => stream.resetOrClosed()));
    expect(new Set(codes)).toEqual(new Set(['REFUSED_STREAM']));
    await vi.waitUntil(() => scene.origin.streams.length >= 3, { interval: 5, timeout: 5_000 });
    expect(scene.origin.streams).toHaveLength(3);
  });

  it('I9 bounded: the fields of a request have a limited size', async () => {
    await using scene = await sceneWith({}, ({ response }) => response(200, [], 'fine'));
    await using client = await scene.client();
    const fields = Array.from({ length: 101 }, (_, i) => literal(`x-${i}`, 'v'));
    const response = await client.request(client.fields('/', fields));
    expect([response.status, refusalOf(response)]).toEqual([431, 'head_too_large']);
    expect(scene.origin.streams).toHaveLength(0);
  });
});

describe('I9 bounded: hosts', () => {
  it('I9 bounded: a host fills at most one window for each stream whose client does not read', async () => {
    let sent = 0;
    await using scene = await sceneWith({}, async ({ head, data }) => {
      await head(200);
      while (sent < 4_000_000 && (await data(Buffer.alloc(16_384)))) sent += 16_384;
    });
    await using client = await scene.client('api.test', { isGranting: false });
    await client.open(client.fields('/'), { isEnd: true });
    let [last, since] = [0, performance.now()];
    await vi.waitUntil(
      () => {
        if (sent !== last) [last, since] = [sent, performance.now()];
        return performance.now() - since > 700;
      },
      { interval: 20, timeout: 20_000 },
    );
    expect(sent).toBeGreaterThan(65_535);
    expect(sent).toBeLessThan(1_000_000);
  });

  it('I9 bounded: a host can send a limited number of interim responses', async () => {
    await using scene = await sceneWith({}, async ({ interim, response }) => {
      for (let i = 0; i < 30; i += 1) await interim(103);
      await response(200, [], 'late');
    });
    await using client = await scene.client();
    const response = await client.request(client.fields('/'));
    expect([response.status, refusalOf(response)]).toEqual([502, 'upstream_malformed']);
  });

  it('I9 bounded: the fields of a response have a limited size', async () => {
    const fields = Array.from({ length: 150 }, (_, i) => literal(`x-${i}`, 'v'));
    await using scene = await sceneWith({}, ({ response }) => response(200, fields, 'fine'));
    await using client = await scene.client();
    // node:http2 ends such a stream before the proxy reads it.
    expect(await client.request(client.fields('/'))).toMatchObject({ status: 0, length: 0 });
  });
});

describe('I9 bounded: retries', () => {
  it('I9 bounded: a request that its host does not process is retried at most three times', async () => {
    await using scene = await sceneWith({}, ({ reset }) => reset('REFUSED_STREAM'));
    await using client = await scene.client();
    await client.request(client.fields('/'));
    expect(scene.origin.streams).toHaveLength(4);
  });
});
