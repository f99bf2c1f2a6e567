// Limits, timeouts and the end of a gateway, with real sockets. Timeouts are short; what is waited for is always an event.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import {
  createOrigin,
  type OriginOptions,
  type RecordingOrigin,
  response,
} from '../support/recording-origin.ts';
import { refuse } from '../../src/gateway/refusal.ts';
import type { GatewayRequest } from '../../src/gateway/target.ts';
import { createGatewayScene, type GatewayScene, type SceneOptions } from './gateway-scene.ts';

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of stack.splice(0).toReversed()) await one[Symbol.asyncDispose]();
});

async function scene(
  options: SceneOptions = {},
  respond: OriginOptions['respond'] = ({ send }) => send(response(200, [], 'ok')),
): Promise<GatewayScene & { readonly origin: RecordingOrigin }> {
  const origin = await createOrigin({ respond });
  stack.push(origin);
  const targets = { 'app.test': { host: '127.0.0.1', port: origin.port } };
  const made = await createGatewayScene({ targets, ...options });
  stack.push(made);
  return Object.assign(made, { origin });
}

const GET = 'GET / HTTP/1.1\r\nHost: app.test\r\n\r\n';
const POST = 'POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 10\r\n\r\n12345';
/** Never responds. */
const silent: OriginOptions['respond'] = ({ reader }) => reader.readToEnd().then(() => undefined);

describe('timeouts', () => {
  it.each([
    ['a head that does not end', { headMs: 30 }, 'GET / HT', 408, 'request_timeout'],
    ['a body that does not end', { clientIdleMs: 30 }, POST, 408, 'request_timeout'],
    ['a target that does not respond', { responseIdleMs: 30 }, GET, 504, 'target_timeout'],
  ])('%s', async (_, limits, bytes, status, refusal) => {
    const gateway = await scene({ limits }, silent);
    await using client = await gateway.connect();
    await client.send(bytes);
    const { head, text } = await client.readResponse();
    expect([head.status, JSON.parse(text).code]).toEqual([status, refusal]);
    expect(await gateway.record(0)).toMatchObject({ status, refusal });
  });

  it('a decision that takes too long', async () => {
    const gateway = await scene({
      limits: { responseIdleMs: 30 },
      authorize: () => new Promise(() => undefined),
    });
    await using client = await gateway.connect();
    await client.send(GET);
    expect((await client.readResponse()).head.status).toBe(504);
  });

  it.each(['findTarget', 'authorize'] as const)('a decision has a deadline of its own: %s', async (part) => {
    const signal = Promise.withResolvers<AbortSignal>();
    const late = Promise.withResolvers<undefined>();
    const asked: string[] = [];
    const owner = {
      findTarget: () => ({ name: 'app', address: { host: '127.0.0.1', port: 1 } }),
      authorize: () => {
        asked.push('authorize');
        return {};
      },
    };
    const hang = async (request: GatewayRequest): Promise<undefined> => {
      signal.resolve(request.signal);
      return await late.promise;
    };
    const gateway = await scene({ ...owner, [part]: hang, limits: { decideMs: 30 } });
    await using client = await gateway.connect();
    // A body that arrives piece by piece does not prolong it.
    await client.send(POST);
    const { head, text } = await client.readResponse();
    expect([head.status, JSON.parse(text).code]).toEqual([504, 'decision_timeout']);
    expect(new Map(head.headers).get('Retry-After')).toBe('1');
    expect(await gateway.record(0)).toMatchObject({
      status: 504,
      refusal: 'decision_timeout',
      method: 'POST',
    });
    expect((await signal.promise).aborted).toBe(true);
    // A late decision changes nothing, and is not followed by another question.
    late.resolve(undefined);
    await using next = await gateway.connect();
    await next.send(GET);
    await gateway.record(1);
    expect(gateway.records).toHaveLength(2);
    if (part === 'findTarget') expect(asked).toEqual([]);
    expect(gateway.origin.connections).toBe(0);
  });

  it('a client that leaves ends its decision', async () => {
    const asked = Promise.withResolvers<AbortSignal>();
    const gateway = await scene({
      findTarget: ({ signal }) => {
        asked.resolve(signal);
        return new Promise(() => undefined);
      },
      limits: { maxDeciding: 1 },
    });
    const client = await gateway.connect();
    await client.send(GET);
    const signal = await asked.promise;
    const aborted = once(signal, 'abort');
    client.reset();
    await aborted;
    expect(await gateway.record(0)).toMatchObject({ end: 'left', status: undefined });
    // Its place is free.
    await using next = await gateway.connect();
    await next.send(GET);
    const again = await gateway.connect();
    await again.send(GET);
    expect((await again.readResponse()).head.status).toBe(503);
    await again[Symbol.asyncDispose]();
  });

  it('an idle connection is closed', async () => {
    const gateway = await scene({ limits: { keepAliveMs: 30 } });
    await using client = await gateway.connect();
    expect(await client.finished).toBe('end');
  });

  it('a response that stops is cut off', async () => {
    const gateway = await scene({ limits: { responseIdleMs: 50 } }, async ({ send, reader }) => {
      await send('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345');
      await reader.readToEnd();
    });
    await using client = await gateway.connect();
    await client.send(GET);
    expect((await client.readHead()).status).toBe(200);
    expect(await client.readToEnd().catch(() => 'cut')).toMatch(/^12345$|^cut$/);
    expect(await gateway.record(0)).toMatchObject({ end: 'cut', status: 200 });
  });

  it('a client that left behind its FIN is waited for only a moment', async () => {
    const gateway = await scene({ limits: { finWaitMs: 30 } }, silent);
    await using client = await gateway.connect();
    await client.send(GET);
    await gateway.origin.request(0);
    client.end();
    expect(await gateway.record(0)).toMatchObject({ end: 'left' });
  });

  it('a client that does not read its response loses its connection', async () => {
    const gateway = await scene({ limits: { clientIdleMs: 50 } }, ({ send }) =>
      send(response(200, [], Buffer.alloc(32 * 1024 * 1024))),
    );
    const socket = connect(gateway.port, '127.0.0.1').pause();
    socket.on('error', () => undefined);
    socket.write(GET);
    expect(await gateway.record(0)).toMatchObject({ end: 'left', status: 200 });
    socket.destroy();
  });
});

describe('limits', () => {
  it.each([
    ['a head', { maxHeadBytes: 200 }, `GET / HTTP/1.1\r\nX: ${'a'.repeat(300)}`, 431, 'head_too_large'],
    ['fields', { maxFields: 2 }, 'GET / HTTP/1.1\r\nA: 1\r\nB: 1\r\nC: 1\r\n\r\n', 431, 'head_too_large'],
    ['a target', { maxTargetBytes: 20 }, `GET /${'a'.repeat(30)} HTTP/1.1\r\n\r\n`, 414, 'uri_too_long'],
  ])('of %s', async (_, limits, bytes, status, code) => {
    const gateway = await scene({ limits });
    await using client = await gateway.connect();
    await client.send(bytes);
    const { head, text } = await client.readResponse();
    expect([head.status, JSON.parse(text).code]).toEqual([status, code]);
    expect(await client.finished).toBe('end');
  });

  it('a head of exactly the limit passes, whatever the gateway adds to it', async () => {
    const gateway = await scene();
    await using client = await gateway.connect();
    const rest = 16_384 - GET.length - 'X: \r\n'.length;
    await client.send(GET.replace('\r\n\r\n', `\r\nX: ${'a'.repeat(rest)}\r\n\r\n`));
    expect((await client.readResponse()).head.status).toBe(200);
  });

  it.each([{ maxConnections: 1 }, { maxConnectionsPerAddress: 1 }])('of connections: %j', async (limits) => {
    const gateway = await scene({ limits });
    await using first = await gateway.connect();
    await first.send(GET);
    await first.readResponse();
    await using second = await gateway.connect();
    const { head, text } = await second.readResponse();
    expect([head.status, JSON.parse(text).code]).toEqual([503, 'too_many_connections']);
    expect(new Map(head.headers).get('Retry-After')).toBe('1');
    await first.send(GET);
    expect((await first.readResponse()).head.status).toBe(200);
  });

  it('of requests that wait to be decided', async () => {
    const proceed = Promise.withResolvers<undefined>();
    const waits = Promise.withResolvers<void>();
    const gateway = await scene({
      limits: { maxDeciding: 1 },
      authorize: async ({ target }) => {
        if (target === '/') {
          waits.resolve();
          await proceed.promise;
        }
        return {};
      },
    });
    await using first = await gateway.connect();
    await first.send(GET);
    await waits.promise;
    await using second = await gateway.connect();
    await second.send(GET);
    const { head, text } = await second.readResponse();
    expect([head.status, JSON.parse(text).code]).toEqual([503, 'overloaded']);
    expect(new Map(head.headers).get('Retry-After')).toBe('1');
    expect(await gateway.record(0)).toMatchObject({ status: 503, refusal: 'overloaded', end: 'complete' });
    proceed.resolve(undefined);
    expect((await first.readResponse()).head.status).toBe(200);
    await second.send(GET);
    expect((await second.readResponse()).head.status).toBe(200);
  });

  it('a place is free again when its connection has closed', async () => {
    const gateway = await scene({ limits: { maxConnectionsPerAddress: 1 } });
    const accepted = once(gateway.gateway.listener, 'connection') as Promise<[Socket]>;
    const first = await gateway.connect();
    const [served] = await accepted;
    const closed = once(served, 'close');
    await first[Symbol.asyncDispose]();
    await closed;
    await using second = await gateway.connect();
    await second.send(GET);
    expect((await second.readResponse()).head.status).toBe(200);
    expect(gateway.gateway.connections).toBe(1);
  });
});

describe('the end of a gateway', () => {
  it('running requests end, with Connection: close; idle connections close, and no other is served', async () => {
    const proceed = Promise.withResolvers<void>();
    const gateway = await scene({}, async ({ send }) => {
      await proceed.promise;
      await send(response(200, [], 'late'));
    });
    await using idle = await gateway.connect();
    await idle.send('GET / HTTP/1.1\r\nHost: other.test\r\n\r\n');
    await idle.readResponse();
    await using busy = await gateway.connect();
    await busy.send(GET);
    await gateway.origin.request(0);
    const closed = gateway.gateway.close(60_000);
    expect(await idle.finished).toBe('end');
    proceed.resolve();
    const { head, text } = await busy.readResponse();
    expect([text, new Map(head.headers).get('Connection')]).toEqual(['late', 'close']);
    busy.end();
    await closed;
    await expect(gateway.connect()).rejects.toThrow('ECONNREFUSED');
  });

  it('what does not end is cut after the deadline', async () => {
    const gateway = await scene({}, silent);
    await using client = await gateway.connect();
    await client.send(GET);
    await gateway.origin.request(0);
    await gateway.gateway.close(10);
    expect(await client.finished).toBe('ECONNRESET');
    expect(await gateway.record(0)).toMatchObject({ status: undefined, end: 'cut' });
  });
});

describe('a bug ends its own connection, with a record, and nothing else', () => {
  it('of an owner whose refusal cannot be written', async () => {
    let isFirst = true;
    const gateway = await scene({
      authorize: () => {
        if (!isFirst) return {};
        isFirst = false;
        return refuse('unauthenticated', { challenge: 'Bearer\r\nX-Evil: 1' });
      },
    });
    await using other = await gateway.connect();
    await using client = await gateway.connect();
    await client.send(GET);
    expect(await client.finished).toBe('ECONNRESET');
    expect(await gateway.record(0)).toMatchObject({ method: 'GET', status: undefined, end: 'cut' });
    expect(gateway.errors).toHaveLength(1);
    await other.send(GET);
    expect((await other.readResponse()).head.status).toBe(200);
  });

  it('of an owner whose target has no address', async () => {
    const gateway = await scene({ findTarget: () => ({ name: 'app' }) as never });
    await using client = await gateway.connect();
    await client.send(GET);
    expect(await client.finished).toBe('ECONNRESET');
    expect(await gateway.record(0)).toMatchObject({ method: 'GET', status: undefined, end: 'cut' });
  });
});

it('errors of an owner in its onRecord are logged, and change nothing', async () => {
  const gateway = await scene();
  Object.defineProperty(gateway.records, 'push', {
    value: () => {
      throw new Error('full');
    },
  });
  await using client = await gateway.connect();
  for (const _ of [1, 2]) {
    await client.send(GET);
    expect((await client.readResponse()).head.status).toBe(200);
  }
  expect(gateway.errors).toHaveLength(2);
});
