// Streams that wait, and what may change meanwhile: the rules, the host's windows, the patience of another stream that
// waits for the same.
import { describe, expect, it } from 'vitest';
import { createCallbackEndpoint } from '../../support/callback-endpoint.ts';
import type { H2Exchange } from '../../support/h2-exchange.ts';
import { windowFrame } from '../../support/h2-frames.ts';
import { refusalOf } from '../../support/h2-wire-client.ts';
import { jsonResponse } from '../../support/recording-origin.ts';
import { apiRule, secret } from '../data-path.ts';
import { createH2Path } from './h2-path.ts';
import { ticks } from './session-ticks.ts';

describe('rules that are replaced while a callback is awaited and another stream keeps the session', () => {
  const TTL_SECONDS = 60;
  const revoked = 'Bearer revoked-meanwhile';

  it.each([
    ['none', {}, 200, []],
    ['another', { rules: [apiRule] }, 200, [`Bearer ${secret}`]],
    ['that deny its host', { access_control: { deny_list: ['api.test'] } }, 403, undefined],
  ] as const)('by %s: it is judged anew, and nothing revoked leaves', async (_, document, status, sent) => {
    let nowMs = 0;
    const [asked, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await using endpoint = await createCallbackEndpoint({ headers: { Authorization: 'Bearer first' } });
    const callbacks = [{ match_hosts: ['api.test'], url: endpoint.url, ttl_seconds: TTL_SECONDS }];
    const held = Promise.withResolvers<void>();
    const respond = async ({ request, response }: H2Exchange): Promise<void> => {
      if (request.path === '/held') await held.promise;
      await response(200);
    };
    await using path = await createH2Path({
      origin: { respond },
      proxy: { proxyConfig: { callbacks }, now: () => nowMs },
    });
    const client = await path.client();
    const keeping = client.request(client.fields('/held'));
    await path.origin.stream(0);
    nowMs += 2 * TTL_SECONDS * 1_000;
    endpoint.respondWith(async (exchange) => {
      asked.resolve();
      await gate.promise;
      await exchange.send(jsonResponse({ headers: { Authorization: revoked } }));
    });
    const stream = await client.open(client.fields('/waiting'), { isEnd: true });
    await asked.promise;
    expect(path.proxy.apply(document)).toMatchObject({ ok: true });
    gate.resolve();
    const response = await client.response(stream);
    expect([response.status, refusalOf(response)]).toEqual([status, sent ? undefined : 'access_denied']);
    expect(await path.proxy.record(0)).toMatchObject({ path: '/waiting', revision: 2, protocol: 'h2' });
    held.resolve();
    expect((await keeping).status).toBe(200);
    const arrived = path.origin.streams.slice(1);
    expect(arrived.map((one) => one.values('authorization'))).toEqual(sent ? [sent] : []);
    for (const { connection } of arrived) expect(connection).toBe(1);
    for (const { transcript } of path.origin.connections) expect(transcript()).not.toContain(revoked);
  });
});

describe('uploads to a host that does not read for a while', () => {
  const SHUT_MS = 30_000;
  const body = Buffer.alloc(200_000, 'a body. ');

  it.each([4, 100])('%i at once are no flood: all get responses when it reads', async (count) => {
    await using path = await createH2Path({
      origin: { settings: { initial_window_size: 0 }, isGranting: false },
    });
    const client = await path.client();
    const post = client.fields('/', [], { ':method': 'POST' });
    const responses = Promise.all(Array.from({ length: count }, () => client.request(post, { body })));
    await path.origin.stream(count - 1);
    const isShut = (): boolean => [...client.peer.streams.values()].every(({ window }) => window === 0);
    await expect.poll(isShut, { timeout: SHUT_MS }).toBe(true);
    // As often as the client is looked at in a second.
    await ticks(4);
    const peer = path.origin.connections[0]?.peer;
    const open = path.origin.streams.map(({ id }) => windowFrame(id, 2 * body.length));
    await peer?.send(windowFrame(0, 2 * count * body.length), ...open);
    expect(new Set((await responses).map(({ status }) => status))).toEqual(new Set([200]));
    expect(path.origin.streams.map((stream) => stream.body.length)).toEqual(
      Array.from({ length: count }, () => body.length),
    );
    expect(client.peer.goaways).toEqual([]);
    expect(path.proxy.records().map(({ outcome }) => outcome)).toEqual(
      Array.from({ length: count }, () => 'injected'),
    );
  });
});

describe('a lookup that two requests wait for', () => {
  it('goes on for the second where the first is cancelled', async () => {
    const found = Promise.withResolvers<readonly string[]>();
    // A lookup that fails is not remembered, so that the next request has to ask again.
    const names: Record<string, Error | Promise<readonly string[]>> = { 'api.test': new Error('not yet') };
    await using path = await createH2Path({ proxy: { names } });
    const client = await path.client();
    expect((await client.request(client.fields('/'))).status).toBe(502);
    names['api.test'] = found.promise;
    const lookups = path.proxy.lookups.length;
    const first = await client.open(client.fields('/first'), { isEnd: true });
    await expect.poll(() => path.proxy.lookups.length).toBe(lookups + 1);
    await first.reset('CANCEL');
    expect(await path.proxy.record(1)).toMatchObject({ path: '/first', reason: 'client_gone' });
    const second = client.request(client.fields('/second'));
    // Behind it in line: what came before was taken.
    await client.request(client.fields('/refused', [], { ':authority': 'other.test' }));
    found.resolve(['127.0.0.1']);
    expect((await second).status).toBe(200);
    expect(path.origin.streams.map((stream) => stream.path)).toEqual(['/second']);
  });
});
