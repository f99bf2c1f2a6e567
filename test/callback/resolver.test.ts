import { describe, expect, it } from 'vitest';
import type { CallbackOutcome, CallbackResolver } from '../../src/callback/resolver.ts';
import { createCallbackResolver } from '../../src/callback/resolver.ts';
import type { CompiledCallback } from '../../src/policy/policy.ts';
import { type CallbackEndpoint, createCallbackEndpoint } from '../support/callback-endpoint.ts';
import { jsonResponse } from '../support/recording-origin.ts';
import { authorityOf, compiledCallback, vetLoopback } from './compiled-callback.ts';

const response = { headers: { Authorization: 'Bearer token' } };

type Setup = AsyncDisposable & {
  readonly endpoint: CallbackEndpoint;
  readonly resolver: CallbackResolver;
  readonly clock: { time: number };
  ask(authority: string, parts?: Partial<CompiledCallback>): Promise<CallbackOutcome>;
};

async function setUp(
  options: { maxEntries?: number; maxCachedBytes?: number; maxInFlight?: number } = {},
): Promise<Setup> {
  const endpoint = await createCallbackEndpoint(response);
  const clock = { time: 1_000 };
  const resolver = createCallbackResolver({
    sandbox: 'default',
    vet: vetLoopback,
    trust: undefined,
    now: () => clock.time,
    ...options,
  });
  return {
    endpoint,
    resolver,
    clock,
    ask: async (authority, parts) =>
      await resolver.resolve(compiledCallback(endpoint.url, parts), authorityOf(authority)),
    async [Symbol.asyncDispose]() {
      await resolver.close();
      await endpoint[Symbol.asyncDispose]();
    },
  };
}

/** A response that waits for the test to release it. */
function gate() {
  const open = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  return {
    reached: reached.promise,
    open: open.resolve,
    response: async ({ send }: { send(bytes: Buffer): Promise<void> }): Promise<void> => {
      reached.resolve();
      await open.promise;
      await send(jsonResponse(response));
    },
  };
}

describe('cache', () => {
  it('a hit returns synchronously, with the same frozen headers each time', async () => {
    await using setup = await setUp();
    const first = await setup.ask('api.test:443');
    const callback = compiledCallback(setup.endpoint.url);
    const hit = setup.resolver.resolve(callback, authorityOf('api.test:443'));
    expect(hit).not.toBeInstanceOf(Promise);
    expect(hit).toMatchObject({ ok: true, cached: true });
    expect(first).toMatchObject({ ok: true, cached: false });
    expect(setup.resolver.resolve(callback, authorityOf('api.test:443'))).toBe(hit);
    if (!first.ok || hit instanceof Promise || !hit.ok) throw new Error('expected headers');
    expect(hit.headers).toBe(first.headers);
    expect(Object.isFrozen(hit) && Object.isFrozen(hit.headers)).toBe(true);
    expect(setup.endpoint.calls).toHaveLength(1);
  });

  it('an empty set of headers is a result, and cached', async () => {
    await using setup = await setUp();
    setup.endpoint.respondWith({ headers: {} });
    expect(await setup.ask('api.test:443')).toEqual({ ok: true, headers: [], cached: false });
    expect(await setup.ask('api.test:443')).toEqual({ ok: true, headers: [], cached: true });
  });

  const ages: readonly { ttlSeconds: number; ageMs: number; calls: number }[] = [
    { ttlSeconds: 60, ageMs: 59_900, calls: 1 },
    { ttlSeconds: 60, ageMs: 60_000, calls: 2 },
    { ttlSeconds: 3_600, ageMs: 3_599_999, calls: 1 },
    { ttlSeconds: 3_600, ageMs: 3_600_000, calls: 2 },
  ];

  it.each(ages)(
    'a ttl of $ttlSeconds s makes $calls calls in $ageMs ms',
    async ({ ttlSeconds, ageMs, calls }) => {
      await using setup = await setUp();
      await setup.ask('api.test:443', { ttlSeconds });
      setup.clock.time += ageMs;
      await setup.ask('api.test:443', { ttlSeconds });
      expect(setup.endpoint.calls).toHaveLength(calls);
    },
  );

  const keys: readonly [string, string, Partial<CompiledCallback>, number][] = [
    ['the same destination in another spelling', 'API.Test.:443', {}, 1],
    ['another port', 'api.test:8443', {}, 2],
    ['another host', 'api2.test:443', {}, 2],
    ['another callback, or the same with another secret', 'api.test:443', { id: 'other' }, 2],
  ];

  it.each(keys)('%s', async (_, authority, parts, calls) => {
    await using setup = await setUp();
    await setup.ask('api.test:443');
    await setup.ask(authority, parts);
    expect(setup.endpoint.calls).toHaveLength(calls);
  });

  it('holds at most as many entries as it may; the least recently used leaves', async () => {
    await using setup = await setUp({ maxEntries: 2 });
    for (const host of ['a', 'b', 'a', 'c']) await setup.ask(`${host}.test:443`);
    expect(setup.endpoint.calls).toHaveLength(3);
    await setup.ask('a.test:443');
    expect(setup.endpoint.calls).toHaveLength(3);
    await setup.ask('b.test:443');
    expect(setup.endpoint.calls).toHaveLength(4);
  });

  it.each([
    ['few large responses', { a: 'v'.repeat(400), b: 'v'.repeat(400) }, 2, 2],
    ['fewer with a credential inside, which is hidden too', { a: `Bearer ${'v'.repeat(1_000)}` }, 1, 1],
    ['more small ones, which cost more than their bytes', { a: 'v' }, 10, 19],
  ])('is bounded in bytes too: %s', async (_, headers, least, most) => {
    await using setup = await setUp({ maxCachedBytes: 40_000 });
    setup.endpoint.respondWith({ headers });
    const hosts = Array.from({ length: 60 }, (_unused, i) => `h${i}.test:443`);
    for (const host of hosts) await setup.ask(host);
    const callback = compiledCallback(setup.endpoint.url);
    const isKept = (host: string): boolean =>
      !(setup.resolver.resolve(callback, authorityOf(host)) instanceof Promise);
    const kept = hosts.map(isKept).lastIndexOf(false);
    expect(hosts.length - 1 - kept).toBeGreaterThanOrEqual(least);
    expect(hosts.length - 1 - kept).toBeLessThanOrEqual(most);
  });
});

describe('single flight', () => {
  it('a thousand first requests make one call and share its outcome', async () => {
    await using setup = await setUp();
    const asked = Array.from({ length: 1_000 }, () => setup.ask('api.test:443'));
    const outcomes = new Set(await Promise.all(asked));
    expect(setup.endpoint.calls).toEqual([
      expect.objectContaining({ body: { host: 'api.test', port: 443 } }),
    ]);
    expect(outcomes.size).toBe(1);
  });

  it('a failure reaches all who waited and is not cached; the next request calls again', async () => {
    await using setup = await setUp();
    setup.endpoint.respondWith(jsonResponse(response, 500));
    const asked = Array.from({ length: 1_000 }, () => setup.ask('api.test:443'));
    expect(new Set(await Promise.all(asked))).toEqual(
      new Set([{ ok: false, reason: 'status 500, application/json' }]),
    );
    expect(setup.endpoint.calls).toHaveLength(1);
    setup.endpoint.respondWith(response);
    expect(await setup.ask('api.test:443')).toMatchObject({ ok: true, cached: false });
    expect(setup.endpoint.calls).toHaveLength(2);
  });

  it('beyond the cap, another destination is refused at once and those under way end well', async () => {
    await using setup = await setUp({ maxInFlight: 2 });
    const held = gate();
    setup.endpoint.respondWith(held.response);
    const underway = [setup.ask('a.test:443'), setup.ask('b.test:443')];
    expect(await setup.ask('c.test:443')).toEqual({ ok: false, reason: 'too many callbacks in flight' });
    const joined = setup.ask('a.test:443');
    held.open();
    expect((await Promise.all([...underway, joined])).every(({ ok }) => ok)).toBe(true);
    expect(await setup.ask('c.test:443')).toMatchObject({ ok: true });
  });
});

describe('forget', () => {
  it('empties the cache', async () => {
    await using setup = await setUp();
    await setup.ask('api.test:443');
    setup.resolver.forget();
    expect(await setup.ask('api.test:443')).toMatchObject({ cached: false });
    expect(setup.endpoint.calls).toHaveLength(2);
  });

  it('a call under way serves those who joined it, nobody who comes later, and is not cached', async () => {
    await using setup = await setUp();
    const held = gate();
    setup.endpoint.respondWith(held.response);
    const before = setup.ask('api.test:443');
    await held.reached;
    setup.resolver.forget();
    setup.endpoint.respondWith({ headers: { Authorization: 'Bearer rotated' } });
    const after = await setup.ask('api.test:443');
    held.open();
    const late = await before;
    if (!after.ok || !late.ok) throw new Error('expected headers');
    expect(late.headers).not.toBe(after.headers);
    const kept = await setup.ask('api.test:443');
    expect(kept.ok && kept.headers).toBe(after.headers);
    expect(setup.endpoint.calls).toHaveLength(2);
  });
});

describe('close', () => {
  it('fails the calls under way and those to come, and forgets', async () => {
    await using setup = await setUp();
    await setup.ask('kept.test:443');
    const held = gate();
    setup.endpoint.respondWith(held.response);
    const underway = setup.ask('api.test:443');
    await held.reached;
    await setup.resolver.close();
    const shutting = { ok: false, reason: 'the proxy is shutting down' };
    expect(await underway).toEqual(shutting);
    expect(await setup.ask('kept.test:443')).toEqual(shutting);
    held.open();
  });
});
