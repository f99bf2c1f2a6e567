// A hundred megabytes to a receiver that does not read: the sender has to wait, the proxy buffers nothing, and everything
// arrives when the receiver reads again.
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createOrigin, type Exchange, type RecordingOrigin, response } from '../support/recording-origin.ts';
import { launcher, spawnSallyport, type SpawnedSallyport } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { WireClient } from '../support/wire-client.ts';
import { type BigBody, chunked, createBigBody } from './big-body.ts';
import { lookUntil } from './deadline.ts';
import { sampleResident } from './resident-sampler.ts';
import { everyNth } from '../support/run-size.ts';

const MAX_GROWTH_BYTES = 32 * 1024 * 1024;
// The most that kernel buffers can hold; the rest must wait at the sender.
const MAX_ON_THE_WAY_BYTES = 60_000_000;
const STALLED_MS = 15_000;
const QUIET_LOOKS = 10;

type Framing = 'Content-Length' | 'chunks';

const origins = createTestAuthority();
const warmUp = createBigBody(4_000_000);
const big = createBigBody();
let origin: RecordingOrigin;
let proxy: SpawnedSallyport;
let ca: string;
let baselineBytes: number;
// Of the current transfer.
let sending: BigBody = warmUp;
let sentBytes = 0;
let readOn: Promise<void> = Promise.resolve();

beforeAll(async () => {
  origin = await createOrigin({ tls: { authority: origins, names: ['api.test'] }, respond });
  const headers = [{ name: 'X-Key', type: 'plaintext', value: 'injected' }];
  proxy = await spawnSallyport({
    // The start of the sources leaves free memory behind, so that the growth is that of the transfers. With the bundle, which
    // is smaller when idle, it would contain what the first transfers allocate once.
    program: launcher,
    upstreamCaPem: origins.certificatePem,
    proxyConfig: { rules: [{ name: 'api', match_hosts: ['api.test'], headers }] },
  });
  ca = await readFile(proxy.caFile, 'utf8');
  for (const framing of framings) {
    await upload(framing);
    await download(framing);
  }
  sending = big;
  baselineBytes = proxy.process.usage().residentBytes;
});

afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  await origin.close();
});

const framings: readonly Framing[] = ['Content-Length', 'chunks'];

everyNth(2, framings, (some, options) =>
  it.each(some)('an upload with %s waits for an origin that does not read', options, async (framing) => {
    expect(await transferHeldBack(() => upload(framing))).toBe(big.sha256);
  }),
);

everyNth(2, framings.toReversed(), (some, options) =>
  it.each(some)('a response with %s waits for a client that does not read', options, async (framing) => {
    expect(await transferHeldBack(() => download(framing))).toBe(big.sha256);
  }),
);

/** Reads only after the sender is blocked. Returns the hash of the received bytes. */
async function transferHeldBack(transfer: () => Promise<string>): Promise<string> {
  using memory = sampleResident(proxy.process);
  const gate = Promise.withResolvers<void>();
  readOn = gate.promise;
  sentBytes = 0;
  const arrived = transfer();
  await untilStuck();
  expect(sentBytes).toBeGreaterThan(0);
  expect(sentBytes).toBeLessThan(MAX_ON_THE_WAY_BYTES);
  gate.resolve();
  const sha256 = await arrived;
  expect(memory.peakBytes - baselineBytes).toBeLessThan(MAX_GROWTH_BYTES);
  return sha256;
}

/** Waits until the sender has sent nothing for a quarter of a second. */
async function untilStuck(): Promise<void> {
  let before = 0;
  let quiet = 0;
  const look = (): number => {
    quiet = sentBytes > 0 && sentBytes === before ? quiet + 1 : 0;
    before = sentBytes;
    return quiet;
  };
  expect(await lookUntil(look, (looks) => looks >= QUIET_LOOKS, STALLED_MS)).toBe(QUIET_LOOKS);
}

async function upload(framing: Framing): Promise<string> {
  await using client = await openTunnel();
  await client.send(`POST /up HTTP/1.1\r\nHost: api.test:${origin.port}\r\n${framingField(framing)}\r\n\r\n`);
  await sendBody((bytes) => client.send(bytes), framing);
  return (await client.readResponse()).text;
}

async function download(framing: Framing): Promise<string> {
  await using client = await openTunnel();
  client.socket.pause();
  await client.send(`GET /${framing} HTTP/1.1\r\nHost: api.test:${origin.port}\r\n\r\n`);
  await readOn;
  return (await client.readResponse()).body.sha256;
}

async function respond(exchange: Exchange): Promise<void> {
  const { target } = exchange.request;
  if (target === '/up') {
    exchange.socket.pause();
    await readOn;
    return exchange.send(response(200, [], (await exchange.readBody()).sha256));
  }
  const framing = target === '/chunks' ? 'chunks' : 'Content-Length';
  await exchange.send(`HTTP/1.1 200 OK\r\n${framingField(framing)}\r\n\r\n`);
  await sendBody(exchange.send, framing);
}

function framingField(framing: Framing): string {
  return framing === 'chunks' ? 'Transfer-Encoding: chunked' : `Content-Length: ${sending.length}`;
}

async function sendBody(send: (bytes: Buffer) => Promise<void>, framing: Framing): Promise<void> {
  const pieces = framing === 'chunks' ? chunked(sending.pieces()) : sending.pieces();
  for (const piece of pieces) {
    await send(piece);
    sentBytes += piece.length;
  }
}

async function openTunnel(): Promise<WireClient> {
  return WireClient.connectThrough(proxy.port, `api.test:${origin.port}`, { ca, name: 'api.test' });
}
