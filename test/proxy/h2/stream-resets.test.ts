// Either end may break a stream off, at any moment: the other hears of it, with the code, the connection serves on, and
// there is one record that says who it was.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { createCallbackEndpoint } from '../../support/callback-endpoint.ts';
import type { H2Exchange } from '../../support/h2-exchange.ts';
import type { ErrorName } from '../../support/h2-frames.ts';
import type { H2Stream } from '../../support/h2-stream.ts';
import { H2WireClient } from '../../support/h2-wire-client.ts';
import { WireClient } from '../../support/wire-client.ts';
import { createH2Path, type H2Path } from './h2-path.ts';

type Script = (exchange: H2Exchange) => Promise<unknown>;
const half = 'half.';

function pathOf(script: Script): Promise<H2Path> {
  return createH2Path({
    origin: {
      async respond(exchange) {
        if (exchange.request.path === '/alive') await exchange.response(200, [], 'alive');
        else await script(exchange);
      },
    },
  });
}

async function expectAlive(client: H2WireClient): Promise<void> {
  expect((await client.request(client.fields('/alive'))).text).toBe('alive');
}

function openPost(client: H2WireClient): Promise<H2Stream> {
  return client.open(client.fields('/', [], { ':method': 'POST' }));
}

function arrival(client: H2WireClient, stream: H2Stream): Promise<boolean> {
  return client.peer.until(() => stream.length >= half.length || undefined, 'half a response');
}

type Entry = AsyncDisposable & { readonly port: number; readonly knocked: Promise<void>; open(): void };

/** Lets the first connection through to `port`; later ones wait until it is opened. */
async function createEntry(port: number): Promise<Entry> {
  const [knocked, opened] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const sockets = new Set<Socket>();
  let count = 0;
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => undefined));
    count += 1;
    if (count > 1) knocked.resolve();
    void (count > 1 ? opened.promise : Promise.resolve()).then(() => {
      const inner = connect(port, '127.0.0.1').on('error', () => undefined);
      sockets.add(inner);
      socket.pipe(inner).pipe(socket);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    knocked: knocked.promise,
    open: opened.resolve,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

const codes: readonly ErrorName[] = ['CANCEL', 'NO_ERROR', 'INTERNAL_ERROR', 'REFUSED_STREAM'];

describe.each(codes)('a client that resets its stream with %s', (code) => {
  it('while the callback has not responded: the host hears of nothing', async () => {
    const asked = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    await using endpoint = await createCallbackEndpoint(async (exchange) => {
      asked.resolve();
      await gate.promise;
      await exchange.send('HTTP/1.1 200 OK\r\nContent-Length: 29\r\n\r\n{"headers":{"X-Token":"abc"}}');
    });
    const callbacks = [{ match_hosts: ['api.test'], url: endpoint.url, ttl_seconds: 60 }];
    await using path = await createH2Path({ proxy: { proxyConfig: { callbacks } } });
    const client = await path.client();
    const stream = await openPost(client);
    await stream.data(half);
    await asked.promise;
    await stream.reset(code);
    expect(await path.proxy.record(0)).toMatchObject({
      outcome: 'failed',
      reason: 'client_gone',
      cause: code,
    });
    gate.resolve();
    await client.request(client.fields('/alive'));
    expect(path.origin.streams).toHaveLength(1);
    expect(endpoint.calls).toHaveLength(1);
  });

  it('while its host is dialled: the host hears of nothing', async () => {
    await using path = await pathOf(({ response }) => response(200));
    await using entry = await createEntry(path.origin.port);
    const authority = `api.test:${entry.port}`;
    const wire = await WireClient.connectThrough(path.proxy.port, authority, {
      ca: path.proxy.caPem,
      name: 'api.test',
      alpn: ['h2'],
    });
    const client = await H2WireClient.over(wire, authority);
    await expectAlive(client);
    // From here on another connection is needed, and the listener is closed.
    path.proxy.apply({ rules: [] });
    const stream = await openPost(client);
    await stream.data(half);
    await entry.knocked;
    await stream.reset(code);
    const expected = { outcome: 'failed', reason: 'client_gone', cause: code };
    expect(await path.proxy.record(1)).toMatchObject(expected);
    entry.open();
    await expectAlive(client);
    expect(path.origin.streams).toHaveLength(2);
    await wire[Symbol.asyncDispose]();
  });

  it('before the response’s head: the host’s is cancelled', async () => {
    await using path = await pathOf(async () => undefined);
    const client = await path.client();
    const stream = await openPost(client);
    await stream.data(half);
    const request = await path.origin.stream(0);
    await stream.reset(code);
    expect(await request.resetOrClosed()).toBe('CANCEL');
    expect(request.isEnded).toBe(false);
    expect(await path.proxy.record(0)).toMatchObject({
      outcome: 'failed',
      reason: 'client_gone',
      cause: code,
    });
    await expectAlive(client);
    expect(path.origin.streams[1]?.connection).toBe(0);
  });

  it('in the middle of the response: the host’s is cancelled', async () => {
    const large = Buffer.alloc(10 << 20);
    await using path = await pathOf(async ({ head, data }) => {
      await head(200);
      await data(large, { isEnd: true });
    });
    const client = await path.client();
    const stream = await client.open(client.fields('/'), { isEnd: true });
    await arrival(client, stream);
    await stream.reset(code);
    expect(await path.origin.streams[0]?.resetOrClosed()).toBe('CANCEL');
    const expected = { outcome: 'failed', status: 200, reason: 'client_gone', cause: code };
    expect(await path.proxy.record(0)).toMatchObject(expected);
    await expectAlive(client);
  });

  it('behind the end of the response: the exchange was whole', async () => {
    await using path = await pathOf(({ response }) => response(200, [], half));
    const client = await path.client();
    const stream = await client.open(client.fields('/'), { isEnd: true });
    await client.response(stream);
    await stream.reset(code);
    await expectAlive(client);
    expect(path.proxy.records()).toMatchObject([{ outcome: 'injected' }, { outcome: 'injected' }]);
  });
});

describe('a client that leaves', () => {
  it.each<readonly [string, (client: H2WireClient) => unknown]>([
    ['FIN', (client) => client.wire.end()],
    ['RST of TCP', (client) => client.wire.reset()],
    ['GOAWAY and FIN', async (client) => (await client.send(), client.wire.end())],
  ])('by %s: each of its streams is cancelled and has its record', async (_, leave) => {
    await using path = await pathOf(({ head }) => head(200));
    const client = await path.client();
    const streams = await Promise.all(Array.from({ length: 20 }, () => openPost(client)));
    for (const stream of streams) await client.head(stream);
    await leave(client);
    const ends = await Promise.all(path.origin.streams.map((stream) => stream.resetOrClosed()));
    expect(new Set(ends)).toEqual(new Set(['CANCEL']));
    await path.proxy.record(19);
    const records = path.proxy.records();
    expect(records).toHaveLength(20);
    for (const record of records) expect(record).toMatchObject({ outcome: 'failed', reason: 'client_gone' });
  });
});

const hostCodes: readonly ErrorName[] = ['CANCEL', 'INTERNAL_ERROR', 'PROTOCOL_ERROR', 'ENHANCE_YOUR_CALM'];

describe.each(hostCodes)('a host that resets its stream with %s', (code) => {
  const expected = { outcome: 'failed', reason: 'upstream_reset', cause: code };

  it('before its response, with the request half sent', async () => {
    await using path = await pathOf(async ({ request, connection, reset }) => {
      await connection.peer?.until(() => request.body.length > 0 || undefined, 'a body');
      await reset(code);
    });
    const client = await path.client();
    const stream = await openPost(client);
    await stream.data(half);
    expect(await stream.resetOrClosed()).toBe(code);
    expect(await path.proxy.record(0)).toMatchObject(expected);
    await expectAlive(client);
  });

  it('after interim heads', async () => {
    await using path = await pathOf(async ({ interim, reset }) => {
      await interim(103, [['link', '</a>']]);
      await reset(code);
    });
    const client = await path.client();
    const response = await client.request(client.fields('/'));
    expect([response.interim.length, response.reset]).toEqual([1, code]);
    expect(await path.proxy.record(0)).toMatchObject(expected);
  });

  it('in the middle of its response: what had come is passed on', async () => {
    const gate = Promise.withResolvers<void>();
    await using path = await pathOf(async ({ head, data, reset }) => {
      await head(200);
      await data(half);
      await gate.promise;
      await reset(code);
    });
    const client = await path.client();
    const stream = await client.open(client.fields('/'), { isEnd: true });
    await arrival(client, stream);
    gate.resolve();
    const response = await client.response(stream);
    expect([response.text, response.reset, stream.isEnded]).toEqual([half, code, false]);
    expect(await path.proxy.record(0)).toMatchObject({ ...expected, status: 200, bytes_down: half.length });
    await expectAlive(client);
  });

  it('while both sides are open', async () => {
    const gate = Promise.withResolvers<void>();
    await using path = await pathOf(async ({ head, reset }) => {
      await head(200);
      await gate.promise;
      await reset(code);
    });
    const client = await path.client();
    const stream = await openPost(client);
    await client.head(stream);
    await stream.data(half);
    gate.resolve();
    expect(await stream.resetOrClosed()).toBe(code);
    expect(await path.proxy.record(0)).toMatchObject({ ...expected, status: 200, bytes_up: half.length });
    await expectAlive(client);
  });
});
