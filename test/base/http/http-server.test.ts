// The parts of the server that neither the admin API nor the platform's API uses yet are tested here: bodies and responses
// that stream. Everything else is tested through both of them.
import { describe, expect, it } from 'vitest';
import { EndedEarly, type HttpResponse } from '../../../src/base/http/http-response.ts';
import { type Exchange, HttpServer } from '../../../src/base/http/http-server.ts';
import { createLog } from '../../../src/base/log.ts';
import { WireClient } from '../../support/wire-client.ts';

const LIMITS = { headBytes: 16_384, headMs: 5000, requestMs: 5000, keepAliveMs: 5000 };
const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

type Scene = AsyncDisposable & {
  readonly server: HttpServer;
  readonly lines: readonly string[];
  connect(): Promise<WireClient>;
};

async function openScene(
  handle: (exchange: Exchange) => Promise<HttpResponse>,
  limits: Partial<typeof LIMITS> = {},
): Promise<Scene> {
  const lines: string[] = [];
  const server = new HttpServer({
    limits: { ...LIMITS, ...limits },
    log: createLog('info', { write: (line) => void lines.push(line) }),
    handle,
    reject: () => ({ status: 400 }),
  });
  const { listener } = server;
  await new Promise<void>((resolve) => listener.listen({ host: '127.0.0.1', port: 0 }, resolve));
  const { port } = listener.address() as { port: number };
  return {
    server,
    lines,
    connect: () => WireClient.connect(port),
    [Symbol.asyncDispose]: () => server.close(0, 'end'),
  };
}

const stream = (body: AsyncIterable<Uint8Array>): HttpResponse => ({ status: 200, body });

describe('a streamed response', () => {
  it('is sent piece by piece, while the request body still arrives', async () => {
    await using scene = await openScene(async ({ body }) => stream(body));
    await using client = await scene.connect();
    await client.send('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n');
    await client.readHead();
    await expect.poll(() => client.transcript).toContain('2\r\nab');
    await client.send('2\r\ncd\r\n0\r\n\r\n');
    expect(String((await client.readBody()).content)).toBe('abcd');
    // When the head was sent, nobody knew that the request would be read to its end.
    expect(await client.finished).toBe('end');
  });

  it('waits for a client that reads slowly', async () => {
    let produced = 0;
    const piece = Buffer.alloc(65_536);
    async function* produce(): AsyncGenerator<Uint8Array> {
      for (; produced < 1000; produced += 1) yield piece;
    }
    await using scene = await openScene(async () => stream(produce()));
    await using client = await scene.connect();
    await client.send(GET);
    // Without back-pressure all pieces are produced before the first byte is sent.
    await client.readHead();
    expect(produced).toBeLessThan(1000);
    expect((await client.readBody()).length).toBe(65_536_000);
  });

  it('ends, and its producer with it, for a client that stops reading or leaves', async () => {
    for (const leave of [false, true]) {
      const returned = Promise.withResolvers<void>();
      async function* produce(): AsyncGenerator<Uint8Array> {
        try {
          for (;;) yield Buffer.alloc(65_536);
        } finally {
          returned.resolve();
        }
      }
      await using scene = await openScene(
        async () => stream(produce()),
        leave ? {} : { requestMs: 200, headMs: 200 },
      );
      await using client = await scene.connect();
      client.socket.pause();
      await client.send(GET);
      if (leave) client.reset();
      await returned.promise;
      await scene.server.settled();
    }
  });

  it('whose producer fails is cut off and logged', async () => {
    async function* produce(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('ab');
      throw new RangeError('canary');
    }
    await using scene = await openScene(async () => stream(produce()));
    await using client = await scene.connect();
    await client.send(GET);
    await client.finished;
    expect(client.transcript).not.toContain('0\r\n\r\n');
    expect(scene.lines.map((line) => JSON.parse(line).error)).toEqual(['RangeError']);
  });

  it('that is ended early on purpose is cut off, and no failure is logged', async () => {
    async function* produce(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('ab');
      throw new EndedEarly('a test');
    }
    await using scene = await openScene(async () => stream(produce()));
    await using client = await scene.connect();
    await client.send(GET);
    await client.finished;
    expect(client.transcript).not.toContain('0\r\n\r\n');
    expect(scene.lines).toEqual([]);
  });

  it('to HEAD has no body and does not start its producer', async () => {
    let isStarted = false;
    async function* produce(): AsyncGenerator<Uint8Array> {
      isStarted = true;
      yield Buffer.from('ab');
    }
    await using scene = await openScene(async () => stream(produce()));
    await using client = await scene.connect();
    await client.send(GET.replace('GET', 'HEAD'));
    expect((await client.readHead()).status).toBe(200);
    await client.send(GET.replace('GET', 'HEAD'));
    expect([(await client.readHead()).status, isStarted]).toEqual([200, false]);
  });
});

describe('pipelined requests', () => {
  it('leave the first its response, which ends the connection, and are not handled', async () => {
    const handled: string[] = [];
    const arrived = Promise.withResolvers<void>();
    await using scene = await openScene(async ({ head, socket }) => {
      handled.push(head.target);
      // The others arrive while the first is handled: Node emits them in the same turn.
      if (handled.length === 1) setImmediate(arrived.resolve);
      await arrived.promise;
      return { status: 200, body: `${head.target} of ${socket.remoteAddress}` };
    });
    await using client = await scene.connect();
    const texts = ['/1', '/2', '/3'].map((target) => GET.replace('/', target));
    await client.send(texts.join(''));
    const { head, text } = await client.readResponse();
    expect([head.status, text]).toEqual([200, '/1 of 127.0.0.1']);
    expect(head.headers).toContainEqual(['Connection', 'close']);
    expect(await client.finished).toBe('end');
    expect(handled).toEqual(['/1']);
  });

  it('end the connection after a response whose head was sent before they came', async () => {
    const more = Promise.withResolvers<void>();
    async function* produce(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('ab');
      await more.promise;
      yield Buffer.from('cd');
    }
    const received = Promise.withResolvers<void>();
    let requests = 0;
    await using scene = await openScene(async () => stream(produce()));
    scene.server.listener.on('request', () => {
      requests += 1;
      if (requests === 2) received.resolve();
    });
    await using client = await scene.connect();
    await client.send(GET);
    await client.readHead();
    await client.send(GET);
    await received.promise;
    more.resolve();
    expect(String((await client.readBody()).content)).toBe('abcd');
    expect(await client.finished).toBe('end');
  });

  it('cut the connection off when there are many', async () => {
    const never = Promise.withResolvers<never>();
    await using scene = await openScene(() => never.promise);
    await using client = await scene.connect();
    await client.send(GET.repeat(18));
    await client.finished;
    expect(client.transcript).toBe('');
    never.reject(new Error('over'));
  });
});

describe('the signals of an exchange', () => {
  it('report that the client left, and that the server drains', async () => {
    const seen: string[] = [];
    const open = Promise.withResolvers<Exchange>();
    async function* untilDrained({ draining }: Exchange): AsyncGenerator<Uint8Array> {
      yield Buffer.from('a');
      await new Promise((resolve) => draining.addEventListener('abort', resolve));
      yield Buffer.from('z');
    }
    await using scene = await openScene(async (exchange) => {
      exchange.left().addEventListener('abort', () => seen.push('left'));
      void exchange.closed.then((status) => seen.push(`closed ${status}`));
      if (exchange.head.method === 'POST') {
        await new Promise((resolve) => exchange.left().addEventListener('abort', resolve));
        return { status: 200 };
      }
      open.resolve(exchange);
      return stream(untilDrained(exchange));
    });
    await using leaver = await scene.connect();
    await leaver.send(GET.replace('GET', 'POST'));
    await expect.poll(() => scene.server.running).toBe(1);
    leaver.reset();
    await expect.poll(() => seen).toEqual(['left', 'closed undefined']);
    await using client = await scene.connect();
    await client.send(GET);
    await client.readHead();
    await open.promise;
    const closed = scene.server.close(60_000, 'end');
    expect(String((await client.readBody()).content)).toBe('az');
    await closed;
    expect(seen.slice(2)).toEqual(['closed 200']);
  });
});
