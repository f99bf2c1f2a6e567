// curl sends and receives a hundred megabytes through an interception while the memory of the proxy is sampled.
// @module-tag long
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createOrigin, type Exchange, type RecordingOrigin, response } from '../support/recording-origin.ts';
import { createScratch, type Scratch } from '../support/scratch.ts';
import { launcher, runToEnd, spawnSallyport, type SpawnedSallyport } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { type BigBody, chunked, createBigBody } from './big-body.ts';
import { sampleResident } from './resident-sampler.ts';

const TOKEN = 'sesame-of-the-big-bodies';
const MAX_GROWTH_BYTES = 32 * 1024 * 1024;

const origins = createTestAuthority();
const warmUp = createBigBody(4_000_000);
const big = createBigBody();
let scratch: Scratch;
let origin: RecordingOrigin;
let proxy: SpawnedSallyport;
let baselineBytes: number;

beforeAll(async () => {
  scratch = await createScratch();
  await Promise.all([writeBody('warm-up', warmUp), writeBody('big', big)]);
  origin = await createOrigin({ tls: { authority: origins, names: ['api.test'] }, respond });
  const secrets = await scratch.write('secrets.env', `TOKEN=${TOKEN}\n`);
  proxy = await spawnSallyport({
    // The start of the sources leaves free memory behind, so that the growth is that of the transfers. With the bundle, which
    // is smaller when idle, it would contain what the first transfers allocate once.
    program: launcher,
    upstreamCaPem: origins.certificatePem,
    args: ['--secrets-file', secrets],
    proxyConfig: {
      rules: [
        {
          name: 'api',
          match_hosts: ['api.test'],
          headers: [{ name: 'Authorization', type: 'workspace_secret', value: 'Bearer {TOKEN}' }],
        },
      ],
    },
  });
  for (const [, transfer] of transfers) await transfer('warm-up', warmUp);
  baselineBytes = proxy.process.usage().residentBytes;
});

afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  await origin.close();
  await scratch[Symbol.asyncDispose]();
});

type Transfer = (name: string, body: BigBody) => Promise<string>;
const transfers: readonly (readonly [string, Transfer])[] = [
  ['a POST of 100 MB with a Content-Length', (name) => upload('-T "$BODY"', name)],
  ['a POST of 100 MB in chunks', (name) => upload('-T - < "$BODY"', name)],
  ['a response of 100 MB with a Content-Length', (name) => download(`/length/${name}`)],
  ['a response of 100 MB in chunks', (name) => download(`/chunked/${name}`)],
];

it.each(transfers)('forwards %s without buffering it', async (_, transfer) => {
  using memory = sampleResident(proxy.process);
  expect(await transfer('big', big)).toBe(big.sha256);
  expect(memory.peakBytes - baselineBytes).toBeLessThan(MAX_GROWTH_BYTES);
});

/** Returns the hash of what the origin received. */
async function upload(body: string, name: string): Promise<string> {
  const { stdout } = await curl(`-X POST ${body} "$ORIGIN/up"`, name);
  return stdout;
}

/** Returns the hash of what curl received. */
async function download(path: string): Promise<string> {
  const { stdout } = await curl(`"$ORIGIN${path}" | sha256sum`, '');
  return stdout.split(' ')[0] ?? '';
}

async function curl(args: string, body: string): Promise<{ stdout: string }> {
  const env = {
    CA: proxy.caFile,
    BODY: join(scratch.path, body),
    HTTPS_PROXY: `http://127.0.0.1:${proxy.port}`,
    ORIGIN: `https://api.test:${origin.port}`,
  };
  const finished = await runToEnd('bash', ['-c', `set -o pipefail; curl -sSf --cacert "$CA" ${args}`], {
    env,
  });
  expect(finished).toMatchObject({ code: 0, stderr: '' });
  return finished;
}

async function respond(exchange: Exchange): Promise<void> {
  const { target, headers } = exchange.request;
  expect(headers).toContainEqual(['Authorization', `Bearer ${TOKEN}`]);
  if (headers.some(([name]) => name === 'Expect')) await exchange.send('HTTP/1.1 100 Continue\r\n\r\n');
  const { sha256 } = await exchange.readBody();
  const body = target.endsWith('/big') ? big : warmUp;
  if (target === '/up') return exchange.send(response(200, [], sha256));
  const isChunked = target.startsWith('/chunked');
  const framing = isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${body.length}`;
  await exchange.send(`HTTP/1.1 200 OK\r\n${framing}\r\n\r\n`);
  for (const piece of isChunked ? chunked(body.pieces()) : body.pieces()) await exchange.send(piece);
}

async function writeBody(name: string, body: BigBody): Promise<void> {
  const file = createWriteStream(join(scratch.path, name));
  for (const piece of body.pieces()) file.write(piece);
  file.end();
  await once(file, 'close');
}
