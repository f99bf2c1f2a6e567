// One sidecar with two sandboxes, each with its own listener, in front of one origin and one callback endpoint that serve both.
// The scene stores who got what; crossings.ts judges it. `isShared`: one sandbox stands for both, so that everything crosses.
import { type IncomingMessage, createServer } from 'node:http';
import { type Http2ServerRequest, type Http2ServerResponse, createSecureServer } from 'node:http2';
import type { AddressInfo, Server } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { type TestAuthority, createTestAuthority } from '../support/test-authority.ts';
import { type TestSidecar, createTestSidecar } from '../support/test-sidecar.ts';

export const boxNames = ['A', 'B'] as const;
export type BoxName = (typeof boxNames)[number];

/** A request that arrived at the origin. Its nonce begins with the name of its box. */
export type Arrival = {
  readonly nonce: string;
  readonly key: string | undefined;
  readonly token: string | undefined;
  readonly connection: string;
};

export type TwoBoxes = AsyncDisposable & {
  readonly proxy: TestSidecar;
  readonly originPort: number;
  readonly boxes: Readonly<
    Record<BoxName, { readonly id: string; readonly port: number; readonly caPem: string }>
  >;
  readonly arrivals: readonly Arrival[];
  /** Of the origin, in order: whether the handshake continued a session. */
  readonly handshakes: readonly boolean[];
  /** What the origin received after each upgrade, by the nonce of its request. */
  readonly upgraded: ReadonlyMap<string, string>;
  readonly callbackCalls: number;
  /** Applies the rules of the box again, as a new revision. */
  renew(box: BoxName): Promise<void>;
};

const origins: TestAuthority = createTestAuthority();
export const RULE_HOST = 'rule.test';
export const CALLBACK_HOSTS: readonly string[] = Array.from({ length: 12 }, (_, i) => `h${i}.callback.test`);

export async function createTwoBoxes({ isShared = false } = {}): Promise<TwoBoxes> {
  const arrivals: Arrival[] = [];
  const handshakes: boolean[] = [];
  const upgraded = new Map<string, string>();
  const origin = createOriginServer({ arrivals, handshakes, upgraded });
  const originPort = await listening(origin);
  let callbackCalls = 0;
  const endpoint = createServer((request, response) => {
    callbackCalls += 1;
    const body = JSON.stringify({ headers: { 'X-Token': `token-${callbackCalls}` } });
    request.resume().on('end', () => response.setHeader('Content-Type', 'application/json').end(body));
  });
  const url = `http://127.0.0.1:${await listening(endpoint)}/`;
  const proxy = await createTestSidecar({ admin: true, origins });
  const revisions = { A: 0, B: 0 };
  const documentOf = (box: BoxName): object => ({
    rules: [
      {
        match_hosts: [RULE_HOST],
        headers: [{ name: 'X-Key', type: 'opaque', value: `key-${box}-${(revisions[box] += 1)}` }],
      },
    ],
    // The same text in both, so that nothing but the sandbox tells them apart.
    callbacks: [{ match_hosts: ['*.callback.test'], url, ttl_seconds: 3600 }],
  });
  const create = async (box: BoxName, id: string) => {
    const document = { id, listen: '127.0.0.1:0', proxy_config: documentOf(box) };
    const { status, body, text } = await proxy.admin('POST', '/v1/sandboxes', document);
    if (status !== 201) throw new Error(`the response was ${status} ${text}`);
    return { id, port: Number(new URL(String(body['proxy'])).port), caPem: proxy.caPem };
  };
  const first = await create('A', 'box-a');
  const boxes = { A: first, B: isShared ? first : await create('B', 'box-b') };
  return {
    proxy,
    originPort,
    boxes,
    arrivals,
    handshakes,
    upgraded,
    get callbackCalls() {
      return callbackCalls;
    },
    async renew(box) {
      const path = `/v1/sandboxes/${boxes[box].id}/proxy_config`;
      const { status } = await proxy.admin('PUT', path, documentOf(isShared ? 'A' : box));
      if (status !== 200) throw new Error(`the response was ${status}`);
    },
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      for (const server of [origin, endpoint]) server.close();
      endpoint.closeAllConnections();
    },
  };
}

type OriginRecord = {
  readonly arrivals: Arrival[];
  readonly handshakes: boolean[];
  readonly upgraded: Map<string, string>;
};

/** HTTP/2 and HTTP/1.1, as ALPN chooses. The response repeats the nonce; the path `/last/…` ends its connection. */
function createOriginServer({ arrivals, handshakes, upgraded }: OriginRecord): Server {
  const connections = new WeakMap<object, string>();
  let connectionCount = 0;
  const server = createSecureServer({
    allowHTTP1: true,
    SNICallback: (name, done) => done(null, origins.contextFor(name)),
  });
  const nameOf = (connection: object): string => {
    const known = connections.get(connection) ?? `connection ${(connectionCount += 1)}`;
    connections.set(connection, known);
    return known;
  };
  server.on('secureConnection', (socket: TLSSocket) => {
    handshakes.push(socket.isSessionReused());
    nameOf(socket);
    socket.on('error', () => socket.destroy());
  });
  server.on('session', (session) => session.on('error', () => session.destroy()));
  const note = (request: IncomingMessage | Http2ServerRequest): string => {
    const { url = '', headers } = request;
    const nonce = /[AB]-\d+$/.exec(url)?.[0] ?? url;
    const isH2 = 'stream' in request && request.stream !== undefined;
    const connection = nameOf(isH2 ? (request.stream.session ?? request.stream) : request.socket);
    arrivals.push({ nonce, key: textOf(headers['x-key']), token: textOf(headers['x-token']), connection });
    return nonce;
  };
  const respond = (request: Http2ServerRequest, response: Http2ServerResponse): void => {
    const nonce = note(request);
    request.on('error', () => undefined).resume();
    response.on('error', () => undefined);
    if (request.url.startsWith('/last/')) response.setHeader('Connection', 'close');
    response.setHeader('X-Nonce', nonce);
    response.end(nonce);
  };
  server.on('request', respond as never);
  server.on('upgrade', (request: IncomingMessage, socket: TLSSocket) => {
    const nonce = note(request);
    upgraded.set(nonce, '');
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    socket.on('data', (data: Buffer) => {
      upgraded.set(nonce, `${upgraded.get(nonce)}${data.toString('latin1')}`);
      socket.end(`${nonce}\n`);
    });
  });
  return server;
}

function textOf(value: string | readonly string[] | undefined): string | undefined {
  return value === undefined ? undefined : String(value);
}

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}
