// A hundred megabytes up and down over HTTP/2: everything arrives, a receiver that does not read makes the sender wait, and
// the proxy buffers nothing.
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { H2Exchange } from '../support/h2-exchange.ts';
import { windowFrame } from '../support/h2-frames.ts';
import { createH2Origin, type H2Origin } from '../support/h2-origin.ts';
import type { H2Stream } from '../support/h2-stream.ts';
import { H2WireClient } from '../support/h2-wire-client.ts';
import { spawnSallyport, type SpawnedSallyport } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { type BigBody, createBigBody } from './big-body.ts';
import { sampleResident } from './resident-sampler.ts';

const MAX_GROWTH_BYTES = 32 * 1024 * 1024;
const FIRST_WINDOW = 65_535;
/** The window of the host in the proxy, and the buffers of the Node streams on both sides. */
const MAX_ON_THE_WAY_BYTES = 1_000_000;
const ENOUGH_BYTES = 120_000_000;

const origins = createTestAuthority();
const warmUp = createBigBody(4_000_000);
const big = createBigBody();
let origin: H2Origin;
let proxy: SpawnedSallyport;
let ca: string;
let baselineBytes: number;
let sentBytes = 0;

beforeAll(async () => {
  origin = await createH2Origin({
    tls: { authority: origins, names: ['api.test'] },
    isGranting: false,
    respond,
  });
  const headers = [{ name: 'X-Key', type: 'plaintext', value: 'injected' }];
  proxy = await spawnSallyport({
    upstreamCaPem: origins.certificatePem,
    proxyConfig: { rules: [{ name: 'api', match_hosts: ['api.test'], headers }] },
  });
  ca = await readFile(proxy.caFile, 'utf8');
  await using client = await connect();
  for (const warm of [upload, download]) await warm(client, warmUp);
  baselineBytes = proxy.process.usage().residentBytes;
});

afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  await origin.close();
});

it.each([
  ['up', upload],
  ['down', download],
] as const)(
  '100 MB go %s when the receiver reads, and nothing stays in memory',
  { tags: ['long'] },
  async (_, transfer) => {
    using memory = sampleResident(proxy.process);
    await using client = await connect();
    expect(await transfer(client, big)).toBe(big.sha256);
    expect(memory.peakBytes - baselineBytes).toBeLessThan(MAX_GROWTH_BYTES);
  },
);

it('100 MB go both ways at once on one connection', { tags: ['long'] }, async () => {
  using memory = sampleResident(proxy.process);
  await using client = await connect();
  expect(await Promise.all([upload(client, big), download(client, big)])).toEqual([big.sha256, big.sha256]);
  expect(memory.peakBytes - baselineBytes).toBeLessThan(MAX_GROWTH_BYTES);
});

async function respond({ request, connection, head, data, response }: H2Exchange): Promise<void> {
  const { peer } = connection;
  if (request.method === 'POST') {
    await peer?.until(() => request.body.length === FIRST_WINDOW || undefined, 'a full window');
    await peer?.send(windowFrame(0, ENOUGH_BYTES), windowFrame(request.id, ENOUGH_BYTES));
    if (await request.ended()) await response(200, [], request.body.sha256);
    return;
  }
  const body = request.path === '/warm-up' ? warmUp : big;
  await head(200, [['content-length', String(body.length)]]);
  sentBytes = 0;
  for (const piece of body.pieces()) {
    for (let at = 0; at < piece.length; at += 16_384) {
      if (!(await data(piece.subarray(at, at + 16_384)))) return;
      sentBytes += Math.min(16_384, piece.length - at);
    }
  }
  await data('', { isEnd: true });
}

/** Returns the hash of what the origin received. */
async function upload(client: H2WireClient, body: BigBody): Promise<string> {
  const stream = await client.open(client.fields('/up', [], { ':method': 'POST' }));
  await sendBody(stream, body);
  return (await client.response(stream)).text;
}

async function sendBody(stream: H2Stream, body: BigBody): Promise<void> {
  for (const piece of body.pieces()) expect(await stream.data(piece)).toBe(true);
  await stream.data('', { isEnd: true });
}

/** Reads nothing beyond the first window until the origin has stopped; returns the hash of the received bytes. */
async function download(client: H2WireClient, body: BigBody): Promise<string> {
  const path = body === warmUp ? '/warm-up' : '/big';
  const stream = await client.open(client.fields(path), { isEnd: true });
  await client.peer.until(() => stream.length > FIRST_WINDOW - 1_000 || undefined, 'a full window');
  await using bystander = await connect();
  for (let n = 0; n < 20; n += 1)
    await bystander.request(bystander.fields('/none', [], { ':scheme': 'http' }));
  expect(sentBytes).toBeLessThan(FIRST_WINDOW + MAX_ON_THE_WAY_BYTES);
  await client.send(windowFrame(0, ENOUGH_BYTES), windowFrame(stream.id, ENOUGH_BYTES));
  return (await client.response(stream)).sha256;
}

/** A client that sends no automatic WINDOW_UPDATE. */
function connect(): Promise<H2WireClient> {
  const tls = { ca, name: 'api.test' };
  return H2WireClient.connectThrough(proxy.port, `api.test:${origin.port}`, tls, { isGranting: false });
}
