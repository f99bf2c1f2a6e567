// Clients that have to wait because their host does not read, and that disconnect while they wait: the proxy does not read
// their sockets then, and must still release everything.
import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createOrigin, type Exchange, type RecordingOrigin } from '../support/recording-origin.ts';
import { spawnSallyport, type SpawnedSallyport } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { WireClient } from '../support/wire-client.ts';
import { lookUntil } from './deadline.ts';

const CLIENTS = 10;
const WITHIN_MS = 2_000;
const STALLED_MS = 30_000;
// Consecutive checks without a byte sent: a quarter of a second, longer than a busy machine delays a process.
const QUIET_LOOKS = 10;
const PIECE: Buffer = Buffer.alloc(65_536, 'x');

const origins = createTestAuthority();
let tlsOrigin: RecordingOrigin;
let plainOrigin: RecordingOrigin;
let proxy: SpawnedSallyport;
let ca: string;
let idleDescriptors: number;

beforeAll(async () => {
  tlsOrigin = await createOrigin({ tls: { authority: origins, names: ['api.test'] }, respond: neverRead });
  plainOrigin = await createOrigin({ respond: neverRead });
  const headers = [{ name: 'X-Key', type: 'plaintext', value: 'injected' }];
  proxy = await spawnSallyport({
    upstreamCaPem: origins.certificatePem,
    proxyConfig: { rules: [{ name: 'api', match_hosts: ['api.test'], headers }] },
  });
  ca = await readFile(proxy.caFile, 'utf8');
  idleDescriptors = proxy.process.usage().descriptors;
});

afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  await tlsOrigin.close();
  await plainOrigin.close();
});

const ways: readonly (readonly [string, () => Promise<WireClient>])[] = [
  ['an intercepted host', uploadIntercepted],
  ['a plain http host', uploadPlain],
  ['a blind tunnel', uploadBlind],
];

it.each(ways)('a reset is noticed while %s makes the client wait', async (_, upload) => {
  const clients = await Promise.all(Array.from({ length: CLIENTS }, upload));
  await untilStalled(clients.map((client) => client.socket));
  expect(proxy.process.usage().descriptors).toBe(idleDescriptors + 2 * CLIENTS);
  for (const client of clients) client.reset();
  const left = await lookUntil(
    () => proxy.process.usage().descriptors,
    (descriptors) => descriptors <= idleDescriptors,
    WITHIN_MS,
  );
  expect(left).toBeLessThanOrEqual(idleDescriptors);
  expect(proxy.process.stderr).toBe('');
});

async function uploadIntercepted(): Promise<WireClient> {
  const authority = `api.test:${tlsOrigin.port}`;
  const client = await WireClient.connectThrough(proxy.port, authority, { ca, name: 'api.test' });
  await client.send(`POST / HTTP/1.1\r\nHost: ${authority}\r\nContent-Length: 9000000000\r\n\r\n`);
  return client;
}

async function uploadPlain(): Promise<WireClient> {
  const authority = `other.test:${plainOrigin.port}`;
  const client = await WireClient.connect(proxy.port);
  await client.send(
    `POST http://${authority}/ HTTP/1.1\r\nHost: ${authority}\r\nContent-Length: 9000000000\r\n\r\n`,
  );
  return client;
}

async function uploadBlind(): Promise<WireClient> {
  const client = await WireClient.connect(proxy.port);
  await client.openTunnel(`other.test:${plainOrigin.port}`);
  await client.send('POST / HTTP/1.1\r\nContent-Length: 9000000000\r\n\r\n');
  return client;
}

/** Writes to every socket until none accepts any more. */
async function untilStalled(sockets: readonly Socket[]): Promise<void> {
  let taken = 0;
  for (const socket of sockets) {
    const next = (error?: Error | null): void => {
      if (error) return;
      taken += PIECE.length;
      socket.write(PIECE, next);
    };
    next();
  }
  let before = -1;
  let quiet = 0;
  const look = (): number => {
    quiet = taken === before ? quiet + 1 : 0;
    before = taken;
    return quiet;
  };
  expect(await lookUntil(look, (looks) => looks >= QUIET_LOOKS, STALLED_MS)).toBe(QUIET_LOOKS);
}

/** Does not read its socket after the head, until the test ends. */
async function neverRead({ socket }: Exchange): Promise<void> {
  socket.removeAllListeners('data').pause();
  await new Promise((resolve) => socket.once('close', resolve));
}
