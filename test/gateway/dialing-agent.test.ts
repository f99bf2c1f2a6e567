// Targets that the owner dials: any stream will do, nothing is dialled before it is authorized, and nothing that was dialled stays.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import {
  createServer as createNetServer,
  connect as connectSocket,
  type AddressInfo,
  type Socket,
} from 'node:net';
import { type Duplex, duplexPair } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { refuse } from '../../src/gateway/refusal.ts';
import type { Grant, TargetAddress } from '../../src/gateway/target.ts';
import { createGatewayScene, type GatewayScene, type SceneOptions } from './gateway-scene.ts';
import { WrappedSocket } from './wrapped-socket.ts';

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of stack.splice(0).toReversed()) await one[Symbol.asyncDispose]();
});

type Connect = Extract<TargetAddress, { readonly connect: unknown }>['connect'];

async function gatewayTo(connect: Connect, options: SceneOptions = {}): Promise<GatewayScene> {
  const made = await createGatewayScene({ targets: { 'app.test': { connect } }, ...options });
  stack.push(made);
  return made;
}

/** A target without a socket: each connection is one end of a pair of streams. */
function pairs(handle: (incoming: IncomingMessage, outgoing: ServerResponse) => void) {
  const server = createServer(handle);
  const near: Duplex[] = [];
  const connect = async (): Promise<Duplex> => {
    const [ours, theirs] = duplexPair();
    near.push(ours);
    server.emit('connection', theirs);
    return ours;
  };
  return { connect, near, server };
}

const get = (path = '/'): string => `GET ${path} HTTP/1.1\r\nHost: app.test\r\n\r\n`;

describe('a stream that is no socket', () => {
  it('carries a request and its response, and none is used twice', async () => {
    const { connect, near } = pairs(async (incoming, outgoing) => {
      let length = 0;
      for await (const chunk of incoming) length += (chunk as Buffer).length;
      outgoing.end(`${incoming.method} ${incoming.url} ${length} ${incoming.headers.connection}`);
    });
    const gateway = await gatewayTo(connect);
    await using client = await gateway.connect();
    for (const path of ['/1', '/2']) {
      await client.send(get(path));
      expect((await client.readResponse()).text).toBe(`GET ${path} 0 close`);
    }
    const body = 'x'.repeat(300_000);
    await client.send(`POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    expect((await client.readResponse()).text).toBe('POST / 300000 close');
    expect(near.map(({ destroyed }) => destroyed)).toEqual([true, true, true]);
  });

  it('of a target that never ends it is closed behind the response', async () => {
    const [ours, theirs] = duplexPair();
    const closed = once(ours, 'close');
    theirs.once('data', () => theirs.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'));
    const gateway = await gatewayTo(async () => ours);
    await using client = await gateway.connect();
    await client.send(get());
    expect((await client.readResponse()).text).toBe('ok');
    await closed;
  });

  it('is read no faster than the client reads', async () => {
    const pieces = 2_000;
    const [ours, theirs] = duplexPair();
    const gateway = await gatewayTo(async () => ours);
    await using client = await gateway.connect();
    theirs.resume();
    await client.send(get());
    theirs.write(`HTTP/1.1 200 OK\r\nContent-Length: ${pieces * 65_536}\r\n\r\n`);
    client.socket.pause();
    const piece = Buffer.alloc(65_536);
    const isTaken = async (): Promise<boolean> => {
      for (let turn = 0; theirs.writableNeedDrain && turn < 200; turn += 1)
        await new Promise((resolve) => setImmediate(resolve));
      return !theirs.writableNeedDrain;
    };
    let written = 1;
    // 130 MB would be taken at once by a gateway that holds what nobody reads.
    for (theirs.write(piece); written < pieces && (await isTaken()); written += 1) theirs.write(piece);
    expect(written).toBeLessThan(pieces);
  });

  it('carries a WebSocket and its close', async () => {
    const { connect, server } = pairs(() => undefined);
    const sockets = new WebSocketServer({ server });
    sockets.on('connection', (socket) => socket.on('message', (data) => socket.send(data)));
    const gateway = await gatewayTo(connect);
    const client = new WebSocket(`ws://127.0.0.1:${gateway.port}/ws`, { headers: { Host: 'app.test' } });
    await once(client, 'open');
    client.send('x'.repeat(1_000_000));
    const [data] = (await once(client, 'message')) as [Buffer];
    expect(data).toHaveLength(1_000_000);
    client.close(4001);
    expect((await once(client, 'close'))[0]).toBe(4001);
    expect(await gateway.record(0)).toMatchObject({ status: 101, end: 'complete' });
  });

  it('passes a half-close on after a 101', async () => {
    const server = createNetServer({ allowHalfOpen: true }, (socket) => {
      socket.once('data', () => socket.write(SWITCHED));
      let got = '';
      socket.on('data', (piece: Buffer) => (got += String(piece)));
      socket.on('end', () => socket.end(`got ${got.slice(got.indexOf('\r\n\r\n') + 4)}`));
    });
    const port = await listen(server);
    const gateway = await gatewayTo(async () => {
      const socket = connectSocket({ port, host: '127.0.0.1', allowHalfOpen: true });
      await once(socket, 'connect');
      return new WrappedSocket(socket);
    });
    await using client = await gateway.connect();
    await client.send(UPGRADE);
    expect((await client.readHead()).status).toBe(101);
    await client.send('up');
    client.end();
    expect(await client.readToEnd()).toBe('got up');
  });

  it('that breaks within a response cuts it off, and before one is a 502', async () => {
    const gateway = await gatewayTo(async () => {
      const [ours, theirs] = duplexPair();
      theirs.once('data', (head: Buffer) => {
        if (String(head).includes('/part')) theirs.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc');
        setImmediate(() => ours.destroy(new Error('broken')));
      });
      return ours;
    });
    await using client = await gateway.connect();
    await client.send(get());
    expect((await client.readResponse()).head.status).toBe(502);
    await client.send(get('/part'));
    await expect(client.readResponse()).rejects.toThrow();
    expect(await gateway.record(1)).toMatchObject({ status: 200, end: 'cut' });
  });
});

const UPGRADE = 'GET /ws HTTP/1.1\r\nHost: app.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
const SWITCHED = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';

async function listen(server: ReturnType<typeof createNetServer>): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => sockets.add(socket.on('error', () => undefined)));
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', () => done()));
  stack.push({
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((done) => server.close(done));
    },
  });
  return (server.address() as AddressInfo).port;
}

describe('dialling', () => {
  it.each([
    ['a target that is not found', { findTarget: (): undefined => undefined }, 404],
    ['a caller who is refused', { authorize: () => refuse('unauthenticated') }, 401],
    ['a grant that has ended already', { authorize: (): Grant => ({ signal: AbortSignal.abort() }) }, 403],
  ])('is not begun for %s', async (_, options, status) => {
    let dialled = 0;
    const gateway = await gatewayTo(async () => {
      dialled += 1;
      return refuse('internal_error');
    }, options);
    await using client = await gateway.connect();
    await client.send(get());
    expect((await client.readResponse()).head.status).toBe(status);
    expect(dialled).toBe(0);
  });

  it.each([
    ['that fails is a 502', async () => Promise.reject(new Error('secret')), 502, 'target_unreachable'],
    [
      'that is refused is that refusal',
      async () => refuse('target_unavailable', { retryAfterMs: 1000 }),
      503,
      'target_unavailable',
    ],
    ['that hangs is a 504', () => new Promise<never>(() => undefined), 504, 'target_timeout'],
  ] as const)('%s', async (_, connect, status, code) => {
    const gateway = await gatewayTo(connect, { limits: { connectMs: 30 } });
    await using client = await gateway.connect();
    for (const index of [0, 1]) {
      await client.send(get());
      const { head, text } = await client.readResponse();
      expect([head.status, JSON.parse(text).code, text.includes('secret')]).toEqual([status, code, false]);
      expect(await gateway.record(index)).toMatchObject({ status, refusal: code });
    }
  });

  it.each([
    ['a GET', get()],
    ['an upgrade', UPGRADE],
  ])('is given up when the client leaves, and what arrives later is destroyed: %s', async (_, bytes) => {
    const aborted = Promise.withResolvers<void>();
    const dialled = Promise.withResolvers<void>();
    const late = Promise.withResolvers<Duplex>();
    const gateway = await gatewayTo((signal) => {
      signal.addEventListener('abort', () => aborted.resolve());
      dialled.resolve();
      return late.promise;
    });
    await using client = await gateway.connect();
    await client.send(bytes);
    await dialled.promise;
    client.reset();
    await aborted.promise;
    const [ours, theirs] = duplexPair();
    const closed = once(ours, 'close');
    let got = 0;
    theirs.on('data', () => (got += 1));
    late.resolve(ours);
    await closed;
    expect(got).toBe(0);
    expect(await gateway.record(0)).toMatchObject({ end: 'left' });
  });

  it('is given up when the gateway closes', async () => {
    const aborted = Promise.withResolvers<void>();
    const dialled = Promise.withResolvers<void>();
    const gateway = await gatewayTo((signal) => {
      signal.addEventListener('abort', () => aborted.resolve());
      dialled.resolve();
      return new Promise(() => undefined);
    });
    await using client = await gateway.connect();
    await client.send(get());
    await dialled.promise;
    await gateway.gateway.close(0);
    await aborted.promise;
  });
});
