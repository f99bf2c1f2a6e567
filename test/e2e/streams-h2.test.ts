// Streamed responses over HTTP/2: each event reaches the client before the origin sends the next one, quickly, whatever
// else the connection carries.
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { H2Exchange } from '../support/h2-exchange.ts';
import { createH2Origin, type H2Origin } from '../support/h2-origin.ts';
import type { H2Stream } from '../support/h2-stream.ts';
import { H2WireClient } from '../support/h2-wire-client.ts';
import { spawnSallyport, type SpawnedSallyport } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';

const EVENTS = 200;

const origins = createTestAuthority();
let origin: H2Origin;
let proxy: SpawnedSallyport;
let ca: string;
/** By path: makes the origin send its next event. */
const next = new Map<string, () => void>();

beforeAll(async () => {
  origin = await createH2Origin({ tls: { authority: origins, names: ['api.test'] }, respond });
  const headers = [{ name: 'X-Key', type: 'plaintext', value: 'injected' }];
  proxy = await spawnSallyport({
    upstreamCaPem: origins.certificatePem,
    proxyConfig: { rules: [{ name: 'api', match_hosts: ['api.test'], headers }] },
  });
  ca = await readFile(proxy.caFile, 'utf8');
});

afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  await origin.close();
});

async function respond({ request, head, data }: H2Exchange): Promise<void> {
  await head(200, [['content-type', 'text/event-stream']]);
  for (let i = 0; i < EVENTS; i += 1) {
    const { promise, resolve } = Promise.withResolvers<void>();
    next.set(request.path, resolve);
    await data(`data: ${performance.timeOrigin + performance.now()}\n\n`);
    await promise;
  }
  await data('', { isEnd: true });
}

function connect(): Promise<H2WireClient> {
  return H2WireClient.connectThrough(proxy.port, `api.test:${origin.port}`, { ca, name: 'api.test' });
}

/** Reads event by event; returns the delay of each in milliseconds, the shortest first. */
async function takeEvents(client: H2WireClient, path: string): Promise<readonly number[]> {
  const stream = await client.open(client.fields(path), { isEnd: true });
  await client.head(stream);
  const delays: number[] = [];
  for (let seen = 0; delays.length < EVENTS; ) {
    seen = await eventAfter(client, stream, seen);
    const sentMs = Number(/data: (.*)\n\n$/.exec(stream.content.toString())?.[1]);
    delays.push(performance.timeOrigin + performance.now() - sentMs);
    next.get(path)?.();
  }
  expect((await client.response(stream)).text.match(/data: /g)).toHaveLength(EVENTS);
  return delays.sort((a, b) => a - b);
}

function eventAfter(client: H2WireClient, stream: H2Stream, seen: number): Promise<number> {
  return client.peer.until(() => (stream.length > seen ? stream.length : undefined), 'an event');
}

function report(what: string, delays: readonly number[]): void {
  const at = (share: number): string => (delays[Math.floor(delays.length * share)] ?? 0).toFixed(2);
  console.info(`${what}: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`);
}

describe('server-sent events over HTTP/2', () => {
  it('arrive one by one', async () => {
    await using client = await connect();
    report('an event alone', await takeEvents(client, '/events'));
  });

  it('arrive one by one on many streams of one connection', async () => {
    await using client = await connect();
    const paths = Array.from({ length: 10 }, (_, n) => `/events/${n}`);
    const delays = await Promise.all(paths.map((path) => takeEvents(client, path)));
    report(
      'an event among ten streams',
      delays.flat().sort((a, b) => a - b),
    );
  });
});
