// The gate before each stream: what a callback returns, once for all that wait for it, and rules that change while a
// stream waits or runs.
import { describe, expect, it } from 'vitest';
import {
  type CallbackResponse,
  type CallbackEndpoint,
  createCallbackEndpoint,
} from '../../support/callback-endpoint.ts';
import type { H2Exchange } from '../../support/h2-exchange.ts';
import { pingFrame } from '../../support/h2-frames.ts';
import { refusalOf } from '../../support/h2-wire-client.ts';
import { jsonResponse } from '../../support/recording-origin.ts';
import { apiRule, secret } from '../data-path.ts';
import { createH2Path, type H2Path } from './h2-path.ts';

const headers = { Authorization: 'Bearer of-the-callback' };

async function createScene(
  response: CallbackResponse,
): Promise<AsyncDisposable & { path: H2Path; endpoint: CallbackEndpoint }> {
  const endpoint = await createCallbackEndpoint(response);
  const callbacks = [{ match_hosts: ['api.test'], url: endpoint.url, ttl_seconds: 60 }];
  const path = await createH2Path({ proxy: { proxyConfig: { callbacks } } });
  return {
    path,
    endpoint,
    async [Symbol.asyncDispose]() {
      await path[Symbol.asyncDispose]();
      await endpoint[Symbol.asyncDispose]();
    },
  };
}

/** A response that waits for `open`; `asked` resolves with the first call. */
function createGate(): { response: CallbackResponse; open(): void; readonly asked: Promise<void> } {
  const [asked, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  return {
    asked: asked.promise,
    open: gate.resolve,
    async response(exchange) {
      asked.resolve();
      await gate.promise;
      await exchange.send(jsonResponse({ headers }));
    },
  };
}

describe('a callback', () => {
  it('is asked once for a hundred streams, and each gets its response', async () => {
    const gate = createGate();
    await using scene = await createScene(gate.response);
    const { path, endpoint } = scene;
    const client = await path.client();
    const streams = [];
    for (let n = 0; n < 100; n += 1) streams.push(await client.open(client.fields(`/${n}`), { isEnd: true }));
    await gate.asked;
    // All of them are there: what is behind them on the connection has been read.
    await client.send(pingFrame());
    await client.frame(({ type }) => type === 'PING');
    expect(path.origin.streams).toHaveLength(0);
    gate.open();
    for (const stream of streams) expect((await client.response(stream)).status).toBe(200);
    expect(endpoint.calls).toHaveLength(1);
    expect(path.origin.streams).toHaveLength(100);
    for (const stream of path.origin.streams)
      expect([stream.values('authorization'), stream.neverIndexed]).toEqual([
        [headers.Authorization],
        ['authorization'],
      ]);
    const records = path.proxy.records().filter(({ outcome }) => outcome === 'injected');
    expect(records).toHaveLength(100);
    expect(await client.request(client.fields('/later'))).toMatchObject({ status: 200 });
    expect(path.proxy.records().at(-1)).toMatchObject({ callback_cached: true });
    expect(endpoint.calls).toHaveLength(1);
  });

  it('that fails refuses all that waited for it: 502, and the host gets nothing', async () => {
    await using scene = await createScene(async (exchange) => exchange.reset());
    const { path } = scene;
    const client = await path.client();
    const responses = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        client.request(client.fields(`/${n}`, [], { ':method': 'POST' }), { body: 'x' }),
      ),
    );
    for (const response of responses)
      expect([response.status, refusalOf(response), response.reset]).toEqual([
        502,
        'callback_failed',
        undefined,
      ]);
    expect(path.origin.streams).toHaveLength(0);
    expect(path.proxy.records()).toHaveLength(20);
  });

  it('lets a body wait for it, of which no more is taken than a window', async () => {
    const gate = createGate();
    await using scene = await createScene(gate.response);
    const { path } = scene;
    const client = await path.client();
    const body = Buffer.alloc(1 << 20, 'body');
    const stream = await client.open(client.fields('/', [], { ':method': 'POST' }));
    let hasLeft = false;
    void stream.data(body, { isEnd: true }).then(() => (hasLeft = true));
    await gate.asked;
    await client.peer.until(() => stream.window === 0 || undefined, 'a window that is used up');
    const bystander = await path.client();
    await bystander.request(bystander.fields('/', [], { ':scheme': 'http' }));
    expect([stream.window, hasLeft, path.origin.streams.length]).toEqual([0, false, 0]);
    gate.open();
    expect((await client.response(stream)).status).toBe(200);
    expect(path.origin.streams[0]?.body.length).toBe(body.length);
  });
});

describe('rules that change', () => {
  it('while a stream waits for its callback: what is in force when it leaves counts', async () => {
    const gate = createGate();
    await using scene = await createScene(gate.response);
    const { path } = scene;
    const client = await path.client();
    const stream = await client.open(client.fields('/'), { isEnd: true });
    await gate.asked;
    path.proxy.apply({ rules: [apiRule] });
    gate.open();
    expect((await client.response(stream)).status).toBe(200);
    expect(path.origin.streams[0]?.values('authorization')).toEqual([`Bearer ${secret}`]);
    expect(path.proxy.records()).toMatchObject([{ outcome: 'injected', revision: 2, rule: 'api' }]);
  });

  it('hold for the next stream of the same connection, and what runs ends as it began', async () => {
    const gate = Promise.withResolvers<void>();
    const respond = async ({ request, head, data }: H2Exchange): Promise<void> => {
      await head(200);
      if (request.path === '/slow') await gate.promise;
      await data('done', { isEnd: true });
    };
    await using path = await createH2Path({ origin: { respond } });
    const client = await path.client();
    const slow = await client.open(client.fields('/slow'), { isEnd: true });
    await client.head(slow);
    path.proxy.apply({ rules: [] });
    expect((await client.request(client.fields('/next'))).text).toBe('done');
    path.proxy.apply({ rules: [apiRule], access_control: { default_policy: 'deny' } });
    gate.resolve();
    expect((await client.response(slow)).text).toBe('done');
    expect(path.origin.streams.map((stream) => stream.values('authorization'))).toEqual([
      [`Bearer ${secret}`],
      [],
    ]);
    const reported = path.proxy
      .records()
      .map(({ path: at, revision, outcome }) => ({ at, revision, outcome }));
    expect(reported).toEqual([
      { at: '/next', revision: 2, outcome: 'forwarded' },
      { at: '/slow', revision: 1, outcome: 'injected' },
    ]);
  });
});
