// Silence of either side: which limit ends what, and that a stream which is only slow is none of their business.
import { describe, expect, it } from 'vitest';
import type { H2Exchange } from '../../support/h2-exchange.ts';
import { windowFrame } from '../../support/h2-frames.ts';
import { refusalOf } from '../../support/h2-wire-client.ts';
import { createH2Path, type H2Path } from './h2-path.ts';

const SHORT_MS = 300;
type Script = (exchange: H2Exchange) => Promise<unknown>;

function pathOf(timeouts: Readonly<Record<string, number>>, script: Script): Promise<H2Path> {
  return createH2Path({
    origin: { respond: async (exchange) => void (await script(exchange)) },
    proxy: { config: { timeouts } },
  });
}

const ok: Script = ({ response }) => response(200, [], 'ok');

describe('a host that says nothing', { tags: 'long' }, () => {
  const limit = { response_idle_ms: SHORT_MS };

  it('before its response: 504, and its stream is cancelled', async () => {
    await using path = await pathOf(limit, async () => undefined);
    const client = await path.client();
    const response = await client.request(client.fields('/'));
    expect([response.status, refusalOf(response)]).toEqual([504, 'upstream_timeout']);
    expect(await path.origin.streams[0]?.resetOrClosed()).toBe('CANCEL');
    expect(await path.proxy.record(0)).toMatchObject({
      outcome: 'failed',
      reason: 'upstream_timeout',
      status: 504,
    });
  });

  it('in the middle of its response: the stream is reset', async () => {
    await using path = await pathOf(limit, async ({ head, data }) => {
      await head(200);
      await data('half.');
    });
    const client = await path.client();
    expect(await client.request(client.fields('/'))).toMatchObject({ text: 'half.', reset: 'CANCEL' });
    expect(await path.origin.streams[0]?.resetOrClosed()).toBe('CANCEL');
    expect(await path.proxy.record(0)).toMatchObject({
      outcome: 'failed',
      reason: 'upstream_idle',
      status: 200,
    });
  });

  it('on one stream leaves the others of its connection alone', async () => {
    await using path = await pathOf(limit, async (exchange) => {
      if (exchange.request.path !== '/silent') await ok(exchange);
    });
    const client = await path.client();
    const silent = client.request(client.fields('/silent'));
    const small = async (): Promise<'small'> => {
      expect((await client.request(client.fields('/'))).text).toBe('ok');
      return 'small';
    };
    while ((await Promise.race([silent, small()])) === 'small');
    expect((await silent).status).toBe(504);
    expect(path.origin.connections).toHaveLength(1);
  });
});

describe('a client that does not read', { tags: 'long' }, () => {
  it('its response loses that stream', async () => {
    await using path = await pathOf({ client_idle_ms: SHORT_MS }, ({ response }) =>
      response(200, [], Buffer.alloc(1_000_000)),
    );
    const client = await path.client({ isGranting: false });
    const stream = await client.open(client.fields('/'), { isEnd: true });
    expect(await stream.resetOrClosed()).toBe('CANCEL');
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'failed', reason: 'client_stalled' });
    expect(await path.origin.streams[0]?.resetOrClosed()).toBe('CANCEL');
    await client.send(windowFrame(0, 100_000));
    expect((await client.request(client.fields('/', [], { ':method': 'HEAD' }))).status).toBe(200);
  });
});

describe('a client connection without streams', { tags: 'long' }, () => {
  const limit = { client_idle_ms: SHORT_MS };

  it('on which nothing was ever asked is ended, with a record', async () => {
    await using path = await pathOf(limit, ok);
    const client = await path.client();
    expect(await client.goaway()).toMatchObject({ code: 'NO_ERROR', lastStream: 0 });
    await client.closed;
    expect(await path.proxy.record(0)).toMatchObject({
      method: 'CONNECT',
      outcome: 'failed',
      reason: 'client_gone',
    });
  });

  it('whose client sends no preface is ended, with a record', async () => {
    await using path = await pathOf(limit, ok);
    const client = await path.client({ hasPreface: false, isAcknowledging: false });
    await client.closed;
    expect(await path.proxy.record(0)).toMatchObject({
      method: 'CONNECT',
      outcome: 'failed',
      reason: 'client_gone',
    });
  });

  it('whose client sends half a preface is ended', async () => {
    await using path = await pathOf(limit, ok);
    const client = await path.client({ hasPreface: false, isAcknowledging: false });
    await client.send('PRI * HTTP/2.0\r\n');
    await client.closed;
    expect(await path.proxy.record(0)).toMatchObject({ method: 'CONNECT', outcome: 'failed' });
  });

  it('that was silent while its host was is ended too, once that has been given up', async () => {
    const limits = { client_idle_ms: SHORT_MS, response_idle_ms: 3 * SHORT_MS };
    await using path = await pathOf(limits, async ({ head, data }) => {
      await head(200);
      await data('half');
    });
    const client = await path.client();
    const stream = await client.open(client.fields('/'), { isEnd: true });
    expect(await stream.resetOrClosed()).toBe('CANCEL');
    expect(await client.goaway()).toMatchObject({ code: 'NO_ERROR' });
    await client.closed;
    expect(path.proxy.records()).toMatchObject([{ outcome: 'failed', reason: 'upstream_idle' }]);
  });

  it('that had some is ended after the last of them', async () => {
    await using path = await pathOf(limit, ok);
    const client = await path.client();
    await client.request(client.fields('/'));
    expect(await client.goaway()).toMatchObject({ code: 'NO_ERROR' });
    await client.closed;
    expect(path.proxy.records()).toMatchObject([{ outcome: 'injected' }]);
  });
});

describe('a stream on which both sides wait', { tags: 'long' }, () => {
  it('outlives the idle limit of its client, and its connection with it', async () => {
    const gate = Promise.withResolvers<void>();
    await using path = await pathOf({ client_idle_ms: SHORT_MS }, async (exchange) => {
      await exchange.head(200);
      await gate.promise;
      await exchange.data('late', { isEnd: true });
    });
    const client = await path.client();
    const stream = await client.open(client.fields('/', [], { ':method': 'POST' }));
    await client.head(stream);
    // Two clients that say nothing, one after the other, each run into that limit.
    for (let n = 0; n < 2; n += 1) await (await path.client()).closed;
    expect(client.peer.goaways).toEqual([]);
    gate.resolve();
    await stream.data('', { isEnd: true });
    expect((await client.response(stream)).text).toBe('late');
    // And once it is over, its connection is idle like any other.
    await client.closed;
  });
});
