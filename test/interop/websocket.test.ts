// WebSocket clients through the proxy: the credential is in the upgrade, and after the 101 the bytes are forwarded. Two of
// them do not support HTTP/2; that of Node offers it, and must get its WebSocket from a host that supports it too.
import { createServer, type IncomingMessage } from 'node:http';
import { createSecureServer } from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import type { SecureContext } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import { createScratch } from '../support/scratch.ts';
import { spawnSallyport, type SpawnedSallyport } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { type ClientName, isInstalled, runClient, titleOf } from './client-programs.ts';
import { INJECTED, SECRET } from './interop-scene.ts';

const authority = createTestAuthority();
const SNICallback = (name: string, done: (error: null, context: SecureContext) => void): void =>
  done(null, authority.contextFor(name));
const servers = {
  wss: createHttpsServer({ SNICallback }),
  ws: createServer(),
  both: createSecureServer({ SNICallback, allowHTTP1: true }),
};
const sockets = new WebSocketServer({ noServer: true });
const upgrades: IncomingMessage[] = [];
/** The negotiated protocol of each connection to the host that supports both. */
const negotiated: (string | false | null)[] = [];
const ports = new Map<string, number>();
let sallyport: SpawnedSallyport;

beforeAll(async () => {
  sockets.on('connection', (socket) => {
    socket.on('message', (message, isBinary) => socket.send(message, { binary: isBinary }));
  });
  servers.both.on('secureConnection', ({ alpnProtocol }) => negotiated.push(alpnProtocol));
  for (const [name, server] of Object.entries(servers)) {
    server.on('upgrade', (request: IncomingMessage, socket, head) => {
      upgrades.push(request);
      sockets.handleUpgrade(request, socket, head, (webSocket) => sockets.emit('connection', webSocket));
    });
    ports.set(name, await listen(server));
  }
  await using scratch = await createScratch();
  const secrets = await scratch.write('secrets.env', `TOKEN=${SECRET}\n`);
  const headers = [{ name: 'Authorization', type: 'workspace_secret', value: 'Bearer {TOKEN}' }];
  sallyport = await spawnSallyport({
    proxyConfig: { rules: [{ name: 'good', match_hosts: ['good.test'], headers }] },
    upstreamCaPem: authority.certificatePem,
    args: ['--secrets-file', secrets],
    env: { SALLYPORT_INJECT_CLEARTEXT: `good.test:${ports.get('ws')}` },
  });
});
afterAll(async () => {
  await sallyport[Symbol.asyncDispose]();
  for (const server of Object.values(servers)) server.close();
});

// Node also offers HTTP/2, finds no extended CONNECT in the settings (RFC 8441), and connects again with HTTP/1.1.
const libraries: readonly [ClientName, protocols: readonly string[]][] = [
  ['ws', ['http/1.1']],
  ['node-websocket', ['h2', 'http/1.1']],
  ['python-websockets', ['http/1.1']],
];

describe.each(libraries.map((one) => [titleOf(one[0]), ...one] as const))('%s', (_title, name, protocols) => {
  it.runIf(isInstalled(name)).each([
    ['by TLS', 'wss://good.test', 'wss'],
    ['in plaintext', 'ws://good.test', 'ws'],
    ['with a host that supports HTTP/2 too', 'wss://good.test', 'both'],
  ])('speaks %s, through an interception', async (_, url, server) => {
    const before = upgrades.length;
    negotiated.length = 0;
    const proxy = { url: `http://127.0.0.1:${sallyport.port}`, caFile: sallyport.caFile };
    const { code, stdout, stderr } = await runClient(name, [`${url}:${ports.get(server)}/socket`], proxy);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).toEqual({ code: 1000, first: 'one', bytes: 70_000 });
    expect(upgrades.slice(before).map(credentialsOf)).toEqual([[INJECTED]]);
    if (server === 'both') expect(negotiated).toEqual(protocols);
  });
});

function credentialsOf({ rawHeaders }: IncomingMessage): readonly string[] {
  return rawHeaders.filter((_, i) => rawHeaders[i - 1]?.toLowerCase() === 'authorization' && i % 2 === 1);
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}
