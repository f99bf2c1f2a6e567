// Many clients that disconnect: everything that belongs to them is released within two seconds, and the process keeps
// serving.
// @module-tag long
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createOrigin, type Exchange, type RecordingOrigin, response } from '../support/recording-origin.ts';
import { spawnSallyport, type SpawnedSallyport } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { WireClient } from '../support/wire-client.ts';
import { abandon, type Stage, type Way } from './abandoned-tunnels.ts';
import { lookUntil } from './deadline.ts';

const TUNNELS = 1_000;
const AT_A_TIME = 50;
const WITHIN_MS = 2_000;
const MAX_GROWTH_BYTES = 32 * 1024 * 1024;

const origins = createTestAuthority();
let tlsOrigin: RecordingOrigin;
let plainOrigin: RecordingOrigin;
let proxy: SpawnedSallyport;
let idleDescriptors: number;
let intercepted: Way;
let blind: Way;

beforeAll(async () => {
  tlsOrigin = await createOrigin({ tls: { authority: origins, names: ['api.test'] }, respond });
  plainOrigin = await createOrigin({ respond });
  const headers = [{ name: 'X-Key', type: 'plaintext', value: 'injected' }];
  proxy = await spawnSallyport({
    upstreamCaPem: origins.certificatePem,
    proxyConfig: { rules: [{ name: 'api', match_hosts: ['api.test'], headers }] },
  });
  const ca = await readFile(proxy.caFile, 'utf8');
  intercepted = { proxyPort: proxy.port, authority: `api.test:${tlsOrigin.port}`, ca };
  blind = { proxyPort: proxy.port, authority: `other.test:${plainOrigin.port}`, ca };
  idleDescriptors = proxy.process.usage().descriptors;
});

afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  await tlsOrigin.close();
  await plainOrigin.close();
});

const interceptedStages: readonly Stage[] = [
  'CONNECT sent',
  'tunnel open',
  'half a ClientHello',
  'mid-handshake',
  'request head sent',
  'half a request body',
  'mid-response',
];
const blindStages: readonly Stage[] = ['CONNECT sent', 'tunnel open', 'half a ClientHello'];

describe(`${TUNNELS} clients that disconnect, every other one with RST`, () => {
  it.each(interceptedStages)('leave nothing behind in an intercepted tunnel: %s', (stage) =>
    expectNothingLeft(intercepted, stage),
  );
  it.each(blindStages)('leave nothing behind in a blind tunnel: %s', (stage) =>
    expectNothingLeft(blind, stage),
  );
});

async function expectNothingLeft(way: Way, stage: Stage): Promise<void> {
  await storm(way, stage, 2 * AT_A_TIME);
  const before = await settle(Number.POSITIVE_INFINITY);
  await storm(way, stage, TUNNELS);
  const after = await settle(before.residentBytes + MAX_GROWTH_BYTES);
  expect(after.connections).toBe(0);
  expect(after.descriptors).toBeLessThanOrEqual(idleDescriptors);
  expect(after.residentBytes - before.residentBytes).toBeLessThan(MAX_GROWTH_BYTES);
  await expectToServe();
  expect(proxy.process.stderr).toBe('');
  expect(proxy.process.records.filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([]);
}

async function storm(way: Way, stage: Stage, tunnels: number): Promise<void> {
  let left = tunnels;
  const lane = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await abandon(way, stage, left % 2 === 0 ? 'FIN' : 'RST');
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, lane));
}

type Held = {
  readonly residentBytes: number;
  readonly descriptors: number;
  /** Connections that are still open at the origins. */
  readonly connections: number;
};

function settle(maxResidentBytes: number): Promise<Held> {
  return lookUntil<Held>(
    () => ({
      ...proxy.process.usage(),
      connections: tlsOrigin.openConnections + plainOrigin.openConnections,
    }),
    ({ residentBytes, descriptors, connections }) =>
      connections === 0 && descriptors <= idleDescriptors && residentBytes < maxResidentBytes,
    WITHIN_MS,
  );
}

/** The same process: a restarted one would have another port. */
async function expectToServe(): Promise<void> {
  const { authority, ca } = intercepted;
  await using client = await WireClient.connectThrough(proxy.port, authority, { ca, name: 'api.test' });
  await client.send(`GET /fine HTTP/1.1\r\nHost: ${authority}\r\nConnection: close\r\n\r\n`);
  expect((await client.readResponse()).text).toBe('fine');
  expect(tlsOrigin.requests.at(-1)?.headers).toContainEqual(['X-Key', 'injected']);
}

async function respond({ request, send, reader }: Exchange): Promise<void> {
  if (request.target === '/fine') {
    await send(response(200, [['Connection', 'close']], 'fine'));
    return;
  }
  if (request.target === '/half') await send('HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\nhalf of it');
  await reader.finished;
}
