// Each direction of a stream flows and ends by itself: messages pass while both are open, either may end first, and an
// response that is whole before its request is.
import { describe, expect, it } from 'vitest';
import type { H2Exchange } from '../../support/h2-exchange.ts';
import { windowFrame } from '../../support/h2-frames.ts';
import type { H2Stream } from '../../support/h2-stream.ts';
import type { H2WireClient } from '../../support/h2-wire-client.ts';
import { createH2Path, type H2Path } from './h2-path.ts';

type Script = (exchange: H2Exchange) => Promise<unknown>;
const MESSAGES = 50;
const large = Buffer.alloc(1 << 20, 'upload ');

function pathOf(script: Script, origin: object = {}): Promise<H2Path> {
  return createH2Path({ origin: { ...origin, respond: async (exchange) => void (await script(exchange)) } });
}

function openPost(client: H2WireClient): Promise<H2Stream> {
  return client.open(client.fields('/', [], { ':method': 'POST' }));
}

/** Waits until so many bytes of the response are there. */
function arrival(client: H2WireClient, stream: H2Stream, bytes: number): Promise<boolean> {
  return client.peer.until(() => stream.length >= bytes || undefined, `${bytes} bytes`);
}

describe('both directions', () => {
  it('carry message by message: none waits for the next', async () => {
    await using path = await pathOf(async ({ request, connection, head, data }) => {
      await head(200, [['content-type', 'application/grpc']]);
      for (let i = 1; i <= MESSAGES; i += 1) {
        await connection.peer?.until(() => request.body.length >= 5 * i || undefined, 'a message');
        await data('reply');
      }
      await request.ended();
      await data('', { isEnd: true });
    });
    const client = await path.client();
    const stream = await openPost(client);
    await client.head(stream);
    for (let i = 1; i <= MESSAGES; i += 1) {
      await stream.data('hello');
      await arrival(client, stream, 5 * i);
    }
    await stream.data('', { isEnd: true });
    expect(await client.response(stream)).toMatchObject({ length: 5 * MESSAGES, reset: undefined });
    const bytes = { bytes_up: 5 * MESSAGES, bytes_down: 5 * MESSAGES };
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'injected', status: 200, ...bytes });
  });

  it('the request’s head passes before its body, and the response’s before its own', async () => {
    await using path = await pathOf(async ({ head }) => head(200));
    const client = await path.client();
    const stream = await openPost(client);
    expect((await client.head(stream)).status).toBe(200);
    expect(path.origin.streams[0]?.body.length).toBe(0);
    expect(stream.length).toBe(0);
  });

  it('a request that has ended gets its response piece by piece', async () => {
    const next: (() => void)[] = [];
    await using path = await pathOf(async ({ request, head, data }) => {
      await request.ended();
      await head(200);
      for (let i = 0; i < 5; i += 1) {
        await data('event');
        await new Promise<void>((resolve) => next.push(resolve));
      }
      await data('', { isEnd: true });
    });
    const client = await path.client();
    const stream = await openPost(client);
    await stream.data('all of it', { isEnd: true });
    for (let i = 1; i <= 5; i += 1) {
      await arrival(client, stream, 5 * i);
      next.shift()?.();
    }
    expect((await client.response(stream)).text).toBe('event'.repeat(5));
  });

  it('a response that has ended lets the rest of its request pass', async () => {
    await using path = await pathOf(({ response }) => response(200, [], 'early'));
    const client = await path.client();
    const stream = await openPost(client);
    expect((await client.response(stream)).text).toBe('early');
    await stream.data('late', { isEnd: true });
    const [request] = path.origin.streams;
    expect(await request?.ended()).toBe(true);
    expect(request?.body.content.toString()).toBe('late');
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'injected', bytes_up: 4, bytes_down: 5 });
  });
});

describe('a response of a host that wants no more of the request', () => {
  it('is complete, and the client is asked to stop', async () => {
    await using path = await pathOf(async ({ connection, request, response, reset }) => {
      await connection.peer?.until(() => request.body.length > 0 || undefined, 'a beginning');
      await response(413, [], 'too large');
      await reset('NO_ERROR');
    });
    const client = await path.client();
    const stream = await openPost(client);
    const isTaken = stream.data(Buffer.concat(Array.from({ length: 32 }, () => large)), { isEnd: true });
    expect(await stream.resetOrClosed()).toBe('NO_ERROR');
    expect(stream.isEnded).toBe(true);
    expect(await client.response(stream)).toMatchObject({ status: 413, text: 'too large' });
    expect(await isTaken).toBe(false);
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'injected', status: 413 });
    expect(path.origin.streams[0]?.isEnded).toBe(false);
    expect(path.origin.streams[0]?.body.length).toBeLessThan(2 * large.length);
    // Its connection goes on.
    const again = await openPost(client);
    await again.data('x', { isEnd: true });
    expect((await client.response(again)).status).toBe(413);
  });

  it('reaches a client whose upload waits for a window', async () => {
    await using path = await pathOf(
      async ({ connection, request, response, reset }) => {
        await connection.peer?.until(() => request.body.length === 65_535 || undefined, 'a full window');
        await response(413, [], 'too large');
        await reset('NO_ERROR');
      },
      { isGranting: false },
    );
    const client = await path.client();
    const stream = await openPost(client);
    const isTaken = stream.data(large, { isEnd: true });
    expect(await stream.resetOrClosed()).toBe('NO_ERROR');
    expect(stream.isEnded).toBe(true);
    expect(await client.response(stream)).toMatchObject({ status: 413, text: 'too large' });
    expect(await isTaken).toBe(false);
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'injected', status: 413 });
  });

  it('is whole with its trailers, however slowly the client reads', async () => {
    const sent = Promise.withResolvers<void>();
    await using path = await pathOf(async ({ head, data, trailers, reset }) => {
      await head(200);
      await data(Buffer.alloc(200_000));
      await trailers([['x-sum', '1']]);
      await reset('NO_ERROR');
      sent.resolve();
    });
    const client = await path.client({ isGranting: false });
    const stream = await openPost(client);
    await arrival(client, stream, 65_535);
    await sent.promise;
    await client.send(windowFrame(0, 200_000), windowFrame(stream.id, 200_000));
    expect(await client.response(stream)).toMatchObject({ length: 200_000, trailers: [['x-sum', '1']] });
    expect(await stream.resetOrClosed()).toBe('NO_ERROR');
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'injected', bytes_down: 200_000 });
  });
});

describe('a host that leaves once it has said everything', () => {
  it.each<readonly [string, Script]>([
    ['FIN', async ({ connection }) => connection.end()],
    ['GOAWAY and FIN', async ({ connection, goaway }) => (await goaway(), connection.end())],
  ])(
    'by %s: its response is whole, for a client that reads and for one that reads later',
    async (_, leave) => {
      for (const isGranting of [true, false]) {
        const hasLeft = Promise.withResolvers<void>();
        await using path = await pathOf(async (exchange) => {
          await exchange.response(200, [], Buffer.alloc(200_000));
          await leave(exchange);
          hasLeft.resolve();
        });
        const client = await path.client({ isGranting });
        const stream = await client.open(client.fields('/'), { isEnd: true });
        await hasLeft.promise;
        await arrival(client, stream, 65_535);
        if (!isGranting) await client.send(windowFrame(0, 200_000), windowFrame(stream.id, 200_000));
        expect(await client.response(stream)).toMatchObject({
          status: 200,
          length: 200_000,
          reset: undefined,
        });
        expect(await path.proxy.record(0)).toMatchObject({ outcome: 'injected', bytes_down: 200_000 });
      }
    },
  );
});

describe('a refusal', () => {
  it('is complete before the client is asked to stop, whether the upstream or the proxy wrote it', async () => {
    await using path = await pathOf(async () => undefined, { isGranting: false });
    const client = await path.client();
    for (const pseudo of [{ ':authority': 'other.test' }, { ':scheme': 'http' }]) {
      const stream = await client.open(client.fields('/', [], { ':method': 'POST', ...pseudo }));
      void stream.data(large);
      expect(await stream.resetOrClosed()).toBe('NO_ERROR');
      expect(stream.isEnded).toBe(true);
      expect(JSON.parse(stream.content.toString())).toHaveProperty('error');
    }
  });

  it('of a host that is silent in the middle of a body ends the stream', async () => {
    await using path = await createH2Path({
      origin: { respond: () => undefined, isGranting: false },
      proxy: { config: { timeouts: { response_idle_ms: 300 } } },
    });
    const client = await path.client();
    const stream = await openPost(client);
    void stream.data(large);
    expect(await stream.resetOrClosed()).toBe('NO_ERROR');
    expect(stream.isEnded).toBe(true);
    expect(await client.response(stream)).toMatchObject({ status: 504 });
    expect(await path.origin.streams[0]?.resetOrClosed()).toBe('CANCEL');
  });
});
