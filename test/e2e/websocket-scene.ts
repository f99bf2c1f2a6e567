// A ws server behind a proxy, in plaintext and with TLS, and every way for a ws client to reach it. One host has a rule, the
// other has none.
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { Agent, createServer, type IncomingMessage } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import type { Duplex } from 'node:stream';
import { type ClientOptions, type ServerOptions, WebSocket, WebSocketServer } from 'ws';
import { createScratch } from '../support/scratch.ts';
import { spawnSallyport, type SpawnedSallyport } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { openTunnel, secureTunnel } from './tunnel.ts';

export const SECRET = 'canary-9c2b4f7d10ea';
export const INJECTED: string = `Bearer ${SECRET}`;

export type Way = {
  readonly title: string;
  readonly host: 'api.test' | 'other.test';
  readonly scheme: 'ws' | 'wss';
  /** `proxy_port`: the absolute form, without CONNECT. */
  readonly by: 'tunnel' | 'proxy_port';
};

export const intercepted: Way = {
  title: 'wss, intercepted',
  host: 'api.test',
  scheme: 'wss',
  by: 'tunnel',
};

export const ways: readonly Way[] = [
  intercepted,
  { title: 'wss in a blind tunnel', host: 'other.test', scheme: 'wss', by: 'tunnel' },
  { title: 'ws in an intercepted tunnel', host: 'api.test', scheme: 'ws', by: 'tunnel' },
  { title: 'ws on the proxy port', host: 'api.test', scheme: 'ws', by: 'proxy_port' },
  { title: 'ws on the proxy port without a rule', host: 'other.test', scheme: 'ws', by: 'proxy_port' },
];

export type Side = 'client' | 'server';
export type Pair = Readonly<Record<Side, WebSocket>> & {
  /** The upgrade request at the server, and the response at the client. */
  readonly request: IncomingMessage;
  readonly response: IncomingMessage;
};

export const sides: readonly [Side, Side][] = [
  ['client', 'server'],
  ['server', 'client'],
];

export type WebSocketScene = AsyncDisposable & {
  readonly proxy: SpawnedSallyport;
  /** The CA that a client of an interception must trust. */
  readonly proxyCa: string;
  readonly server: WebSocketServer;
  authorityOf(way: Way): string;
  /** A client that has sent its upgrade request, or will. */
  dial(way: Way, path: string, protocols?: readonly string[], options?: ClientOptions): Promise<WebSocket>;
  open(way: Way, protocols?: readonly string[], options?: ClientOptions): Promise<Pair>;
};

type Accepted = { readonly socket: WebSocket; readonly request: IncomingMessage };

/** `respond` may respond to an upgrade instead of the ws server; it returns whether it did. */
export async function createWebSocketScene(
  options: ServerOptions = {},
  response: (request: IncomingMessage, socket: Duplex) => boolean = () => false,
): Promise<WebSocketScene> {
  const origins = createTestAuthority();
  const servers = {
    ws: createServer(),
    wss: createSecureServer({ SNICallback: (name, done) => done(null, origins.contextFor(name)) }),
  };
  const server = new WebSocketServer({ maxPayload: 2_000_000, ...options, noServer: true });
  const accepted = new Map<string, (accepted: Accepted) => void>();
  for (const one of Object.values(servers)) {
    one.on('upgrade', (request, socket, head) => {
      if (response(request, socket)) return;
      server.handleUpgrade(request, socket, head, (webSocket) => {
        server.emit('connection', webSocket, request);
        accepted.get(String(request.url))?.({ socket: webSocket, request });
      });
    });
  }
  const ports = { ws: await listen(servers.ws), wss: await listen(servers.wss) };
  await using scratch = await createScratch();
  const headers = [{ name: 'Authorization', type: 'workspace_secret', value: 'Bearer {TOKEN}' }];
  const proxy = await spawnSallyport({
    upstreamCaPem: origins.certificatePem,
    proxyConfig: { rules: [{ name: 'api', match_hosts: ['api.test'], headers }] },
    args: ['--secrets-file', await scratch.write('secrets.env', `TOKEN=${SECRET}\n`)],
    env: { SALLYPORT_INJECT_CLEARTEXT: `api.test:${ports.ws}` },
  });
  const proxyCa = await readFile(proxy.caFile, 'utf8');
  const authorityOf = ({ host, scheme }: Way): string => `${host}:${ports[scheme]}`;
  let opened = 0;

  const dial: WebSocketScene['dial'] = async (way, path, protocols = [], clientOptions = {}) => {
    const authority = authorityOf(way);
    const url = `${way.scheme}://${authority}${path}`;
    if (way.by === 'proxy_port') {
      const agent = new Agent({ proxyEnv: { HTTP_PROXY: `http://127.0.0.1:${proxy.port}` } });
      return new WebSocket(url, [...protocols], { ...clientOptions, agent });
    }
    const raw = await openTunnel(proxy.port, authority);
    const ca = way.host === 'api.test' ? proxyCa : origins.certificatePem;
    const socket = way.scheme === 'wss' ? await secureTunnel(raw, way.host, ca) : raw.resume();
    return new WebSocket(url, [...protocols], { ...clientOptions, createConnection: () => socket });
  };

  return {
    proxy,
    proxyCa,
    server,
    authorityOf,
    dial,
    async open(way, protocols, clientOptions) {
      opened += 1;
      const path = `/socket/${opened}`;
      const arriving = new Promise<Accepted>((resolve) => accepted.set(path, resolve));
      const client = await dial(way, path, protocols, clientOptions);
      const responded = once(client, 'upgrade');
      if (client.readyState !== WebSocket.OPEN) await once(client, 'open');
      const { socket, request } = await arriving;
      accepted.delete(path);
      return { client, server: socket, request, response: (await responded)[0] };
    },
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      for (const socket of server.clients) socket.terminate();
      for (const one of Object.values(servers)) {
        one.closeAllConnections();
        await new Promise((resolve) => one.close(resolve));
      }
    },
  };
}

/** Every value of a field as received, not merged by Node. */
export function valuesOf({ rawHeaders }: IncomingMessage, name: string): readonly string[] {
  return rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === name);
}

/** The next messages of a socket, texts as strings. */
export function received(socket: WebSocket, count: number): Promise<readonly (string | Buffer)[]> {
  const { promise, resolve, reject } = Promise.withResolvers<readonly (string | Buffer)[]>();
  const messages: (string | Buffer)[] = [];
  socket.on('message', (bytes: Buffer, isBinary) => {
    messages.push(isBinary ? bytes : String(bytes));
    if (messages.length === count) resolve(messages);
  });
  socket.once('close', (code) => reject(new Error(`closed with ${code} after ${messages.length} messages`)));
  return promise;
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}
