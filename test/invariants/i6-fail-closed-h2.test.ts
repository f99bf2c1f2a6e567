// I6 over HTTP/2: after any doubt or internal failure, no stream is opened at the origin and nothing is cached. The other
// streams continue, and the next request is decided anew. Internal failures are injected into the parts that handle a stream.
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { type CallbackResponse, createCallbackEndpoint } from '../support/callback-endpoint.ts';
import { echoStream } from '../support/h2-exchange.ts';
import { type H2Response, type H2WireClient, refusalOf } from '../support/h2-wire-client.ts';
import { jsonResponse } from '../support/recording-origin.ts';
import type { BreakablePart } from './breakable-parts.ts';
import { INJECTED, SECRET, bearerRule } from './credential-scene.ts';
import { type H2Scene, bytesAt, createH2Scene } from './h2-scene.ts';

// The error quotes the secret, which must not leak.
const { broken, breakable } = await vi.hoisted(async () => {
  const { createBreakableParts } = await import('./breakable-parts.ts');
  return createBreakableParts(() => 'quoted: sesame>>open??now~~42~');
});
vi.mock('../../src/policy/compile.ts', async (original) => breakable.compile(await original()));
vi.mock('../../src/callback/resolver.ts', async (original) => breakable.resolver(await original()));
vi.mock('../../src/proxy/h2/header-block.ts', async (original) => breakable.headerBlock(await original()));
vi.mock('../../src/proxy/gate/request-plan.ts', async (original) => breakable.plan(await original()));
vi.mock('../../src/proxy/mask/mask.ts', async (original) => breakable.mask(await original()));
vi.mock('../../src/tls/leaf-cache.ts', async (original) => breakable.leafCache(await original()));

beforeEach(() => broken.clear());

function ask(client: H2WireClient, path = '/'): Promise<H2Response> {
  return client.request(client.fields(path, [], { ':method': 'POST' }), { body: 'body' });
}

async function askAlone(scene: H2Scene, name?: string): Promise<H2Response> {
  await using client = await scene.client(name);
  return await ask(client);
}

function expectServed(scene: H2Scene, response: H2Response): void {
  expect(response.status).toBe(200);
  expect(scene.origin.streams.at(-1)?.values('authorization')).toEqual([INJECTED]);
}

describe('I6 fail closed: callbacks of a stream', () => {
  const good = { headers: { Authorization: INJECTED } };
  const leaky = (value: unknown): CallbackResponse => jsonResponse({ headers: value });
  const rows: readonly (readonly [why: string, response: CallbackResponse])[] = [
    ['invalid JSON', Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{"')],
    ['a line break in a value', leaky({ Authorization: `x\r\nX-Evil: ${SECRET}` })],
    ['a pseudo-field', leaky({ ...good.headers, ':authority': 'evil.test' })],
    ['an invalid name', leaky({ ...good.headers, 'X A': 'x' })],
    ['a reset', async (exchange) => exchange.reset()],
  ];
  it.each(rows)(
    'I6 fail closed: over h2, a callback that returns %s fails the request',
    async (_, response) => {
      await using callback = await createCallbackEndpoint(response);
      await using scene = await createH2Scene({
        rules: [],
        callbacks: [{ match_hosts: ['api.test'], url: callback.url, ttl_seconds: 60 }],
      });
      await using client = await scene.client();
      const refused = await ask(client);
      expect([refused.status, JSON.parse(refused.text)]).toEqual([
        502,
        { error: 'callback_failed', message: 'callback resolution failed' },
      ]);
      expect(bytesAt(scene)).toBe('');
      // Nothing was cached: the next stream calls again and gets the current value.
      callback.respondWith(good);
      expectServed(scene, await ask(client));
      expect(callback.calls).toHaveLength(2);
    },
  );

  it('I6 fail closed: over h2, a callback that is silent until its deadline fails the request', async () => {
    await using callback = await createCallbackEndpoint(() => new Promise(() => {}));
    await using scene = await createH2Scene({
      rules: [],
      callbacks: [{ match_hosts: ['api.test'], url: callback.url, ttl_seconds: 60 }],
      config: () => ({ callback: { timeout_ms: 50 } }),
    });
    expect(refusalOf(await askAlone(scene))).toBe('callback_failed');
    expect(bytesAt(scene)).toBe('');
  });
});

describe('I6 fail closed: internal failures over HTTP/2', () => {
  const parts: readonly (readonly [BreakablePart, string])[] = [
    ['decide', 'the decision throws'],
    ['secretsFor', 'the masks are not available'],
    ['list', 'the header list cannot be read'],
    ['plan', 'the plan throws'],
    ['outgoing', 'the header list cannot be written'],
    ['resolve', 'the callback resolver throws'],
    ['resolveLater', 'the callback resolver rejects'],
  ];
  const cases = parts.flatMap(([part, why]) =>
    [false, true].map((isWarm) => [why, isWarm ? 'a warm' : 'a fresh', part, isWarm] as const),
  );
  it.each(cases)(
    'I6 fail closed: if %s on %s session, nothing is sent and the next request is served',
    async (...row) => {
      const [, , part, isWarm] = row;
      await using callback = await createCallbackEndpoint({ headers: { Authorization: INJECTED } });
      const isCallback = part === 'resolve' || part === 'resolveLater';
      await using scene = await createH2Scene({
        rules: isCallback ? [] : [bearerRule('api.test')],
        callbacks: isCallback ? [{ match_hosts: ['api.test'], url: callback.url, ttl_seconds: 60 }] : [],
      });
      await using client = await scene.client();
      if (isWarm) expectServed(scene, await ask(client));
      const before = bytesAt(scene);
      broken.add(part);
      const failed = await ask(client);
      expect([failed.status, refusalOf(failed)]).toEqual([500, 'internal_error']);
      expect(JSON.stringify([failed, scene.proxy.lines])).not.toContain('quoted');
      expect(bytesAt(scene)).toBe(before);
      broken.clear();
      expectServed(scene, await ask(client));
      expect(JSON.stringify(scene.proxy.lines)).not.toContain(SECRET);
    },
  );

  it.each<readonly [BreakablePart, string]>([
    ['leaf', 'no leaf can be created for an HTTP/2 client'],
    ['coverOf', 'the cover throws before the host is probed for its protocol'],
  ])('I6 fail closed: %s: %s', async (part) => {
    await using scene = await createH2Scene();
    await using wire = await scene.wire();
    expect((await wire.openTunnel(scene.at())).status).toBe(200);
    broken.add(part);
    const tls = { ca: scene.proxy.caPem, name: 'api.test', alpn: ['h2'] };
    await expect(wire.startTls(tls)).rejects.toThrow(/internal error/);
    expect(bytesAt(scene)).toBe('');
    broken.clear();
    expectServed(scene, await askAlone(scene));
  });

  it.each(['a head', 'an interim head', 'trailers'])(
    'I6 fail closed: %s that cannot be masked is not relayed, and other streams continue',
    async (what) => {
      const gate = Promise.withResolvers<void>();
      await using scene = await createH2Scene({
        async respond(exchange) {
          const { request, interim, head, data, trailers } = exchange;
          if (request.path === '/beside') {
            await gate.promise;
            return echoStream(exchange);
          }
          if (what === 'an interim head') await interim(103, [['x-echo', INJECTED]]);
          await head(200, [['x-echo', what === 'trailers' ? 'nothing' : INJECTED]]);
          await data('body');
          if (what === 'trailers') broken.add('mask');
          await trailers([['x-echo', INJECTED]]);
        },
      });
      await using client = await scene.client();
      const beside = ask(client, '/beside');
      await scene.origin.stream(0);
      if (what !== 'trailers') broken.add('mask');
      const failed = await ask(client);
      if (what === 'trailers') expect([failed.reset, failed.trailers]).toEqual(['INTERNAL_ERROR', undefined]);
      else expect([failed.status, refusalOf(failed)]).toEqual([500, 'internal_error']);
      expect(JSON.stringify([failed.headers, failed.interim, failed.trailers])).not.toContain(SECRET);
      broken.clear();
      gate.resolve();
      expect((await beside).status).toBe(200);
    },
  );
});

describe('I6 fail closed: records, names and hosts, over HTTP/2', () => {
  it.each([[['h2']], [['h2', 'http/1.1']]])(
    'I6 fail closed: while the record sink is blocked, no stream is opened and no host is probed (%j)',
    async (alpn) => {
      await using scene = await createH2Scene({
        names: ['api.test', 'late.test'],
        rules: [bearerRule('*.test')],
      });
      await using inside = await scene.client();
      await using late = await scene.wire();
      const before = scene.origin.connections.length;
      expect((await late.openTunnel(scene.at('late.test'))).status).toBe(200);
      scene.proxy.blockSink(true);
      await late.startTls({ ca: scene.proxy.caPem, name: 'late.test', alpn });
      const refused = await ask(inside);
      expect([refused.status, refusalOf(refused)]).toEqual([503, 'record_sink_blocked']);
      expect([bytesAt(scene), scene.origin.connections.length]).toEqual(['', before]);
      scene.proxy.blockSink(false);
      expectServed(scene, await ask(inside));
    },
  );

  it('I6 fail closed: a name that cannot be resolved or has a forbidden address, on a stream', async () => {
    await using scene = await createH2Scene({
      rules: [bearerRule('*.test')],
      resolve: {
        'lost.test': new Error('no such name'),
        'void.test': [],
        'meta.test': ['127.0.0.1', '169.254.169.254'],
      },
    });
    for (const [name, code] of [
      ['lost.test', 'dns_failed'],
      ['void.test', 'dns_failed'],
      ['meta.test', 'address_denied'],
    ] as const) {
      await using client = await scene.client(name);
      // One refusal of the dial before the handshake, and one of the stream's own dial.
      expect([refusalOf(await ask(client)), refusalOf(await ask(client))]).toEqual([code, code]);
    }
    expect(scene.origin.connections).toEqual([]);
  });
});
