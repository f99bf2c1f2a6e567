// Streamed responses: each event reaches the client before the origin sends the next one, and only the response timeout
// limits a silence in the middle.
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createOrigin, type Exchange, type RecordingOrigin } from '../support/recording-origin.ts';
import { spawnSallyport, type SpawnedSallyport } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { WireClient } from '../support/wire-client.ts';

const EVENTS = 20;
// Short enough to expire in a test, long enough for handshakes on a busy machine.
const SHORT_MS = '1000';
const shortTimeouts: Readonly<Record<string, string>> = Object.fromEntries(
  [
    'HEAD',
    'DNS',
    'CONNECT',
    'SNIFF',
    'HANDSHAKE',
    'CLIENT_IDLE',
    'TUNNEL_IDLE',
    'HALF_CLOSED',
    'CONTINUE',
  ].map((name) => [`SALLYPORT_TIMEOUTS_${name}_MS`, SHORT_MS]),
);

const origins = createTestAuthority();
let tlsOrigin: RecordingOrigin;
let plainOrigin: RecordingOrigin;
let proxy: SpawnedSallyport;
let proxyCa: string;
/** The events that the client has seen; the script of the origin waits for them. */
let confirmed: (() => void)[] = [];

beforeAll(async () => {
  tlsOrigin = await createOrigin({ tls: { authority: origins, names: ['api.test', 'other.test'] }, respond });
  plainOrigin = await createOrigin({ respond });
  const headers = [{ name: 'X-Key', type: 'plaintext', value: 'injected' }];
  proxy = await spawnSallyport({
    upstreamCaPem: origins.certificatePem,
    proxyConfig: { rules: [{ name: 'api', match_hosts: ['api.test'], headers }] },
    env: shortTimeouts,
  });
  proxyCa = await readFile(proxy.caFile, 'utf8');
});

afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  await tlsOrigin.close();
  await plainOrigin.close();
});

type Open = () => Promise<readonly [client: WireClient, target: string, host: string]>;
const ways: readonly (readonly [string, Open])[] = [
  ['an intercepted host', () => openTls('api.test', proxyCa)],
  ['a blind tunnel', () => openTls('other.test', origins.certificatePem)],
  ['plain http', openPlain],
];

describe.each(ways)('%s', (_, open) => {
  it.each(['chunks', 'until-close', 'length'])('delivers event by event with %s', async (framing) => {
    confirmed = [];
    const [client, target, host] = await open();
    await using _client = client;
    await client.send(`GET ${target}${framing} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    expect((await client.readHead()).status).toBe(200);
    for (let i = 0; i < EVENTS; i += 1) {
      expect(await client.readThrough(`event ${i}\n\n`)).toContain(`data: event ${i}\n\n`);
      // The origin may not be waiting yet.
      while (!confirmed[i]) await new Promise((resolve) => setImmediate(resolve));
      confirmed[i]?.();
    }
  });
});

it.each(['silent', 'silent-in-the-middle'])('outlives every timeout except its own: %s', async (script) => {
  confirmed = [];
  const [client, target, host] = await openTls('api.test', proxyCa);
  await using _client = client;
  const arrived = tlsOrigin.request(tlsOrigin.requests.length);
  await client.send(`GET ${target}${script} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  await arrived;
  // Each of these is silent until a timeout ends it, one after the other: the silence is longer than all of them.
  for (const silent of [idleClient, idleTunnel]) await silent();
  confirmed[0]?.();
  expect((await client.readResponse()).text).toBe('late');
});

async function idleClient(): Promise<void> {
  await using client = await WireClient.connect(proxy.port);
  await client.finished;
}

async function idleTunnel(): Promise<void> {
  await using client = await WireClient.connect(proxy.port);
  await client.openTunnel(`other.test:${plainOrigin.port}`);
  await client.finished;
}

async function openTls(name: string, ca: string): Promise<readonly [WireClient, string, string]> {
  const authority = `${name}:${tlsOrigin.port}`;
  return [await WireClient.connectThrough(proxy.port, authority, { ca, name }), '/', authority];
}

async function openPlain(): Promise<readonly [WireClient, string, string]> {
  const authority = `other.test:${plainOrigin.port}`;
  return [await WireClient.connect(proxy.port), `http://${authority}/`, authority];
}

async function respond({ request, send, end }: Exchange): Promise<void> {
  const script = request.target.slice(1);
  if (script.startsWith('silent')) return respondLate(script, send);
  const events = Array.from({ length: EVENTS }, (_, i) => `data: event ${i}\n\n`);
  const framing = {
    chunks: 'Transfer-Encoding: chunked\r\n',
    length: `Content-Length: ${events.join('').length}\r\n`,
  }[script];
  await send(`HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n${framing ?? ''}\r\n`);
  for (const event of events) {
    await send(script === 'chunks' ? `${event.length.toString(16)}\r\n${event}\r\n` : event);
    await confirmation();
  }
  if (script === 'chunks') await send('0\r\n\r\n');
  if (script === 'until-close') end();
}

async function respondLate(script: string, send: Exchange['send']): Promise<void> {
  const head = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n';
  if (script === 'silent') {
    await confirmation();
    return send(`${head}late`);
  }
  await send(`${head}la`);
  await confirmation();
  return send('te');
}

function confirmation(): Promise<void> {
  return new Promise((resolve) => void confirmed.push(resolve));
}
