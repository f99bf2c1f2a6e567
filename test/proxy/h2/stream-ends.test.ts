// Who else may end a stream: the process that stops, the sandbox that is removed, the limit of streams, the record that
// cannot be written.
import { describe, expect, it } from 'vitest';
import type { H2Exchange } from '../../support/h2-exchange.ts';
import { H2WireClient, refusalOf } from '../../support/h2-wire-client.ts';
import { WireClient } from '../../support/wire-client.ts';
import { apiRule } from '../data-path.ts';
import { createH2Path, type H2Path } from './h2-path.ts';
import { countTicks } from './session-ticks.ts';

/** Responds to `/slow` when `gate` is open. */
function slowPath(
  gate: Promise<void>,
  config: Readonly<Record<string, unknown>> = {},
  admin = false,
): Promise<H2Path> {
  return createH2Path({
    origin: {
      async respond({ request, response, head, data }: H2Exchange) {
        if (request.path !== '/slow') return void (await response(200, [], 'ok'));
        await head(200);
        await data('be');
        await gate;
        await data('hind', { isEnd: true });
      },
    },
    proxy: { config, admin },
  });
}

describe('on the way down', () => {
  it('streams that run end, and others are refused by GOAWAY', async () => {
    const gate = Promise.withResolvers<void>();
    await using path = await slowPath(gate.promise, { timeouts: { drain_ms: 30_000 } });
    const client = await path.client();
    const slow = await client.open(client.fields('/slow'), { isEnd: true });
    await client.head(slow);
    const closing = path.proxy.sidecar.close();
    const { code, lastStream } = await client.goaway();
    expect([code, lastStream]).toEqual(['NO_ERROR', slow.id]);
    await client.open(client.fields('/new'), { isEnd: true });
    gate.resolve();
    expect(await client.response(slow)).toMatchObject({ text: 'behind', reset: undefined });
    await client.closed;
    await closing;
    expect(path.origin.streams.map((stream) => stream.path)).toEqual(['/slow']);
    expect(path.proxy.records()).toMatchObject([{ outcome: 'injected', status: 200 }]);
  });

  it('a connection without streams ends at once', async () => {
    await using path = await slowPath(Promise.resolve());
    const [idle, used] = [await path.client(), await path.client()];
    await used.request(used.fields('/'));
    await path.proxy.sidecar.close();
    for (const client of [idle, used]) {
      expect(await client.goaway()).toMatchObject({ code: 'NO_ERROR' });
      await client.closed;
    }
    expect(path.proxy.records()).toHaveLength(2);
    expect(path.proxy.records()).toContainEqual(
      expect.objectContaining({ method: 'CONNECT', reason: 'shutting_down' }),
    );
  });

  it('what runs at the deadline is cut, and recorded as our doing', async () => {
    await using path = await slowPath(new Promise(() => {}), { timeouts: { drain_ms: 20 } });
    const client = await path.client();
    const streams = [];
    for (let n = 0; n < 5; n += 1) streams.push(await client.open(client.fields('/slow'), { isEnd: true }));
    for (const stream of streams) await client.head(stream);
    await path.proxy.sidecar.close();
    await client.closed;
    expect(streams.map(({ isEnded }) => isEnded)).toEqual(Array(5).fill(false));
    expect(path.proxy.records()).toHaveLength(5);
    for (const record of path.proxy.records())
      expect(record).toMatchObject({ outcome: 'failed', reason: 'shutting_down', status: 200 });
    for (const stream of path.origin.streams) await stream.resetOrClosed();
  });
});

describe('a host that is leaving', () => {
  it('ends what runs, however long that takes', async () => {
    const gate = Promise.withResolvers<void>();
    await using path = await slowPath(gate.promise, { timeouts: { client_idle_ms: 1_500 } });
    const client = await path.client();
    const slow = await client.open(client.fields('/slow'), { isEnd: true });
    await client.head(slow);
    await path.origin.connections[0]?.goaway(path.origin.streams[0]?.id ?? 0);
    // A client that says nothing is let wait longer than idle sessions are looked through.
    await (await path.client()).closed;
    gate.resolve();
    expect(await client.response(slow)).toMatchObject({ text: 'behind', reset: undefined });
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'injected', status: 200 });
  });
});

describe('the limit of streams', () => {
  it('is passed to the client and applies to concurrent streams', async () => {
    const gate = Promise.withResolvers<void>();
    await using path = await slowPath(gate.promise, { limits: { max_streams: 2 } });
    const client = await path.client();
    const running = [];
    for (let n = 0; n < 2; n += 1) running.push(await client.open(client.fields('/slow'), { isEnd: true }));
    for (const stream of running) await client.head(stream);
    expect(client.peer.remote.max_concurrent_streams).toBe(2);
    gate.resolve();
    for (const stream of running) expect((await client.response(stream)).text).toBe('behind');
    for (let n = 0; n < 5; n += 1) expect((await client.request(client.fields('/'))).text).toBe('ok');
  });

  it('costs who goes beyond it his connection, and nobody else', async () => {
    await using path = await slowPath(new Promise(() => {}), { limits: { max_streams: 2 } });
    const [client, other] = [await path.client(), await path.client()];
    for (let n = 0; n < 2; n += 1)
      await client.head(await client.open(client.fields('/slow'), { isEnd: true }));
    await client.open(client.fields('/beyond'), { isEnd: true });
    expect(await client.goaway()).toMatchObject({ code: 'PROTOCOL_ERROR' });
    await client.closed;
    expect((await other.request(other.fields('/'))).text).toBe('ok');
    expect(path.origin.streams.map((stream) => stream.path)).not.toContain('/beyond');
    for (const stream of path.origin.streams.slice(0, 2)) expect(await stream.resetOrClosed()).toBe('CANCEL');
  });
});

describe('records that cannot be written', () => {
  it('refuse new streams, and let those end that run', async () => {
    const gate = Promise.withResolvers<void>();
    await using path = await slowPath(gate.promise);
    const client = await path.client();
    const slow = await client.open(client.fields('/slow'), { isEnd: true });
    await client.head(slow);
    path.proxy.blockSink(true);
    const response = await client.request(client.fields('/', [], { ':method': 'POST' }), { body: 'body' });
    expect([response.status, refusalOf(response)]).toEqual([503, 'record_sink_blocked']);
    gate.resolve();
    expect((await client.response(slow)).text).toBe('behind');
    path.proxy.blockSink(false);
    expect((await client.request(client.fields('/'))).text).toBe('ok');
    expect(path.origin.streams.map((stream) => stream.path)).toEqual(['/slow', '/']);
  });
});

describe('a sandbox that is removed', () => {
  it('takes its streams along, each with its record, and nobody else’s', async () => {
    const token = 'token-of-the-box-5d41402abc4b2a76';
    const rules = [{ ...apiRule, headers: [{ name: 'X-Key', type: 'plaintext', value: 'of-box' }] }];
    const gate = Promise.withResolvers<void>();
    await using path = await slowPath(gate.promise, {}, true);
    await path.proxy.admin('POST', '/v1/sandboxes', { id: 'box', token, proxy_config: { rules } });
    const others = await path.client();
    const running = await others.open(others.fields('/slow'), { isEnd: true });
    await others.head(running);
    await using wire = await WireClient.connect(path.proxy.port);
    await wire.openTunnel(path.authority, [`Proxy-Authorization: Bearer ${token}`]);
    await wire.startTls({ ca: path.proxy.caPem, name: 'api.test', alpn: ['h2'] });
    const client = await H2WireClient.over(wire, path.authority);
    const streams = [];
    for (let n = 0; n < 3; n += 1) streams.push(await client.open(client.fields('/slow'), { isEnd: true }));
    for (const stream of streams) await client.head(stream);
    expect((await path.proxy.admin('DELETE', '/v1/sandboxes/box')).status).toBe(204);
    await client.closed;
    expect(streams.map(({ isEnded }) => isEnded)).toEqual([false, false, false]);
    const expected = { sandbox: 'box', outcome: 'failed', reason: 'shutting_down', status: 200 };
    expect(path.proxy.records()).toMatchObject([expected, expected, expected]);
    for (const stream of path.origin.streams.slice(1)) expect(await stream.ended()).toBe(true);
    gate.resolve();
    expect((await others.response(running)).text).toBe('behind');
  });
});

describe('a host that sends all announced bytes and no end', () => {
  it('lets the last bytes wait for the end between two ticks, and no longer', async () => {
    using counted = countTicks();
    await using path = await createH2Path({
      origin: {
        async respond({ head, data }: H2Exchange) {
          await head(200, [['content-length', '4']]);
          await data('last');
        },
      },
    });
    const client = await path.client();
    const stream = await client.open(client.fields('/'), { isEnd: true });
    const before = counted.count;
    await client.head(stream);
    expect(counted.count - before).toBeGreaterThanOrEqual(2);
  });
});
