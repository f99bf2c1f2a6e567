// WebSockets through the gateway: with the clients and servers of ws, and on raw sockets for what those do not do.
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { createOrigin, response } from '../support/recording-origin.ts';
import { createGatewayScene, type GatewayScene, type SceneOptions } from './gateway-scene.ts';

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of stack.splice(0).toReversed()) await one[Symbol.asyncDispose]();
});

async function gatewayTo(port: number, options: SceneOptions = {}): Promise<GatewayScene> {
  const targets = { 'app.test': { host: '127.0.0.1', port } };
  const made = await createGatewayScene({ targets, ...options });
  stack.push(made);
  return made;
}

async function webSocketServer(): Promise<{ server: WebSocketServer; port: number }> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  stack.push({
    async [Symbol.asyncDispose]() {
      for (const one of server.clients) one.terminate();
      await new Promise<void>((done) => server.close(() => done()));
    },
  });
  return { server, port: (server.address() as AddressInfo).port };
}

/** A target that switches protocols, and then does what the test says. */
async function rawTarget(onUpgraded: (socket: Socket) => void, head = HEAD_101): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('data', () => {
      socket.write(head);
      onUpgraded(socket);
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', () => done()));
  stack.push({
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((done) => server.close(() => done()));
    },
  });
  return (server.address() as AddressInfo).port;
}

const HEAD_101 =
  'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-A: 1\r\n\r\n';
const UPGRADE = 'GET /ws?q=1 HTTP/1.1\r\nHost: app.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';

const dial = (gateway: GatewayScene): WebSocket =>
  new WebSocket(`ws://127.0.0.1:${gateway.port}/ws`, { headers: { Host: 'app.test' } });

describe('a WebSocket', () => {
  it('carries messages of all sizes both ways, and its close', async () => {
    const { server, port } = await webSocketServer();
    server.on('connection', (socket) => {
      socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }));
    });
    const gateway = await gatewayTo(port);
    const client = dial(gateway);
    await once(client, 'open');
    for (const size of [0, 1, 125, 65_536, 5_000_000]) {
      client.send(Buffer.alloc(size, 7));
      const [data] = (await once(client, 'message')) as [Buffer];
      expect(data).toHaveLength(size);
    }
    client.close(4001, 'enough');
    expect((await once(client, 'close'))[0]).toBe(4001);
    expect(await gateway.record(0)).toMatchObject({
      status: 101,
      target: 'app.test',
      end: 'complete',
      method: 'GET',
    });
    expect(gateway.records[0]?.bytesUp).toBeGreaterThan(5_000_000);
  });

  it('that the target declines gets its response, and the connection serves on', async () => {
    const origin = await createOrigin({
      respond: ({ request, send }) => send(response(request.target === '/ws?q=1' ? 401 : 200, [], 'body')),
    });
    stack.push(origin);
    const gateway = await gatewayTo(origin.port);
    await using client = await gateway.connect();
    await client.send(UPGRADE);
    expect(await client.readResponse()).toMatchObject({ head: { status: 401 }, text: 'body' });
    await client.send('GET / HTTP/1.1\r\nHost: app.test\r\n\r\n');
    expect((await client.readResponse()).head.status).toBe(200);
    expect(origin.requests[0]?.head).toMatch(/connection: upgrade\r\nupgrade: websocket/i);
  });

  it('to a target that is away is a 502', async () => {
    const gateway = await gatewayTo(1);
    const client = dial(gateway);
    const [error] = (await once(client, 'error')) as [Error];
    expect(error.message).toContain('502');
  });

  it('that the owner does not authorize sends nothing to the target', async () => {
    const { server, port } = await webSocketServer();
    const gateway = await gatewayTo(port, { findTarget: () => undefined });
    const [error] = (await once(dial(gateway), 'error')) as [Error];
    expect([error.message, server.clients.size]).toEqual(['Unexpected server response: 404', 0]);
  });
});

describe('after a 101', () => {
  it('bytes that came with it pass, and each side ends by itself', async () => {
    const port = await rawTarget((socket) => {
      socket.write('first');
      const pieces: Buffer[] = [];
      socket.on('data', (piece: Buffer) => pieces.push(piece));
      // Responds only once the client has ended its half.
      socket.on('end', () => socket.end(`got ${String(Buffer.concat(pieces))}`));
    });
    const gateway = await gatewayTo(port);
    await using client = await gateway.connect();
    await client.send(UPGRADE);
    const head = await client.readHead();
    expect([head.status, new Map(head.headers)]).toEqual([
      101,
      new Map([
        ['X-A', '1'],
        ['Connection', 'Upgrade'],
        ['Upgrade', 'websocket'],
      ]),
    ]);
    await client.send('up');
    client.end();
    expect(await client.readToEnd()).toBe('firstgot up');
    expect(await gateway.record(0)).toMatchObject({ end: 'complete', bytesUp: 2, bytesDown: 11 });
  });

  it('a target that ends its half still gets what the client sends', async () => {
    const ended = Promise.withResolvers<string>();
    const port = await rawTarget((socket) => {
      let got = '';
      socket.on('data', (piece: Buffer) => (got += String(piece)));
      socket.on('end', () => ended.resolve(got));
      socket.end('bye');
    });
    const gateway = await gatewayTo(port);
    await using client = await gateway.connect();
    await client.send(UPGRADE);
    await client.readHead();
    expect(await client.readToEnd()).toBe('bye');
    await client.send('late');
    client.end();
    expect(await ended.promise).toBe('late');
  });

  it.each([
    ['the target resets', 'cut'],
    ['the client resets', 'left'],
  ])('the other side is reset too: %s', async (who, end) => {
    const closed = Promise.withResolvers<void>();
    const opened = Promise.withResolvers<Socket>();
    const port = await rawTarget((socket) => {
      socket.on('close', () => closed.resolve());
      opened.resolve(socket);
    });
    const gateway = await gatewayTo(port);
    await using client = await gateway.connect();
    await client.send(UPGRADE);
    await client.readHead();
    const socket = await opened.promise;
    if (who === 'the target resets') {
      socket.resetAndDestroy();
      expect(await client.finished).toBe('ECONNRESET');
    } else client.reset();
    await closed.promise;
    expect(await gateway.record(0)).toMatchObject({ status: 101, end });
  });

  it.each([
    ['silent in both directions', { upgradedIdleMs: 40 }, false],
    ['half closed and silent', { halfClosedMs: 40 }, true],
  ])('a connection that is %s is closed', async (_, limits, endsHalf) => {
    const port = await rawTarget(() => undefined);
    const gateway = await gatewayTo(port, { limits });
    await using client = await gateway.connect();
    await client.send(UPGRADE);
    await client.readHead();
    if (endsHalf) client.end();
    expect(await client.finished).toBe('ECONNRESET');
    expect(await gateway.record(0)).toMatchObject({ status: 101, end: 'cut' });
  });

  it('the end of the gateway closes it after the deadline', async () => {
    const port = await rawTarget(() => undefined);
    const gateway = await gatewayTo(port);
    await using client = await gateway.connect();
    await client.send(UPGRADE);
    await client.readHead();
    await gateway.gateway.close(10);
    expect(await client.finished).toBe('ECONNRESET');
  });

  it('a target that switches to another protocol is a 502', async () => {
    const port = await rawTarget(() => undefined, HEAD_101.replace('websocket', 'h2c'));
    const gateway = await gatewayTo(port);
    await using client = await gateway.connect();
    await client.send(UPGRADE);
    expect((await client.readResponse()).head.status).toBe(502);
  });
});
