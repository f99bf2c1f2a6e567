// Names to addresses: how many at a time, for how long, and what is remembered. The lookup is a script.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Lookup, type ResolvedAddress, createResolver } from '../../../src/proxy/upstream/resolver.ts';

type Asked = {
  readonly host: string;
  resolve(addresses: readonly ResolvedAddress[]): void;
  reject(error: Error): void;
};

const one: readonly ResolvedAddress[] = [{ address: '203.0.113.7', family: 4 }];

function script(): { lookup: Lookup; asked: Asked[] } {
  const asked: Asked[] = [];
  return {
    asked,
    lookup: (host) => {
      const { promise, resolve, reject } = Promise.withResolvers<readonly ResolvedAddress[]>();
      asked.push({ host, resolve, reject });
      return promise;
    },
  };
}

const settled = (): Promise<void> => vi.advanceTimersByTimeAsync(0).then(() => undefined);

describe('the resolver', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it.each(['localhost', 'a.localhost', 'deep.er.localhost'])(
    'resolves %s itself, without a lookup',
    async (host) => {
      const { lookup, asked } = script();
      const resolver = createResolver({ timeoutMs: 5_000, maxLookups: 8, lookup });
      expect(await resolver.resolve(host)).toEqual([
        { address: '127.0.0.1', family: 4 },
        { address: '::1', family: 6 },
      ]);
      expect(asked).toEqual([]);
    },
  );

  it('asks once for a name that many wait for', async () => {
    const { lookup, asked } = script();
    const resolver = createResolver({ timeoutMs: 5_000, maxLookups: 8, lookup });
    const responses = Promise.all(Array.from({ length: 50 }, () => resolver.resolve('a.test')));
    await settled();
    expect(asked.map(({ host }) => host)).toEqual(['a.test']);
    asked[0]?.resolve(one);
    expect(new Set(await responses)).toEqual(new Set([one]));
  });

  it('has at most eight lookups under way, and starts the next in the order of asking', async () => {
    const { lookup, asked } = script();
    const resolver = createResolver({ timeoutMs: 5_000, maxLookups: 8, lookup });
    const responses = Array.from({ length: 12 }, (_, i) => resolver.resolve(`n${i}.test`));
    await settled();
    expect(asked).toHaveLength(8);
    asked[3]?.resolve(one);
    asked[5]?.reject(new Error('SERVFAIL'));
    await settled();
    expect(asked.slice(8).map(({ host }) => host)).toEqual(['n8.test', 'n9.test']);
    for (const ask of asked) ask.resolve(one);
    await settled();
    for (const ask of asked) ask.resolve(one);
    const all = await Promise.all(responses);
    expect(all.filter((response) => response === 'dns_failed')).toHaveLength(1);
    expect(asked).toHaveLength(12);
  });

  it('gives up after its deadline, also while it waits for its turn', async () => {
    const { lookup, asked } = script();
    const resolver = createResolver({ timeoutMs: 5_000, maxLookups: 1, lookup });
    const running = resolver.resolve('silent.test');
    const waiting = resolver.resolve('next.test');
    await vi.advanceTimersByTimeAsync(4_999);
    expect(await Promise.race([running, waiting, 'pending'])).toBe('pending');
    await vi.advanceTimersByTimeAsync(1);
    expect(await running).toBe('upstream_timeout');
    expect(await waiting).toBe('upstream_timeout');
    expect(asked.map(({ host }) => host)).toEqual(['silent.test']);
  });

  it('does not ask for names that nobody waits for any more', async () => {
    const { lookup, asked } = script();
    const resolver = createResolver({ timeoutMs: 5_000, maxLookups: 1, lookup });
    const late = [resolver.resolve('silent.test'), resolver.resolve('given-up.test')];
    await vi.advanceTimersByTimeAsync(5_000);
    await Promise.all(late);
    const next = resolver.resolve('wanted.test');
    asked[0]?.resolve(one);
    await settled();
    expect(asked.map(({ host }) => host)).toEqual(['silent.test', 'wanted.test']);
    asked[1]?.resolve(one);
    expect(await next).toEqual(one);
  });

  it('keeps a late response for whoever asks next', async () => {
    const { lookup, asked } = script();
    const resolver = createResolver({ timeoutMs: 5_000, maxLookups: 8, lookup });
    const early = resolver.resolve('slow.test');
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await early).toBe('upstream_timeout');
    asked[0]?.resolve(one);
    await settled();
    expect(await resolver.resolve('slow.test')).toEqual(one);
    expect(asked).toHaveLength(1);
  });

  it('remembers a response for half a minute, and a failure not at all', async () => {
    const { lookup, asked } = script();
    const resolver = createResolver({ timeoutMs: 5_000, maxLookups: 8, lookup });
    const failing = resolver.resolve('a.test');
    asked[0]?.reject(new Error('ENOTFOUND'));
    expect(await failing).toBe('dns_failed');
    const first = resolver.resolve('a.test');
    asked[1]?.resolve(one);
    await first;
    await vi.advanceTimersByTimeAsync(29_999);
    expect(await resolver.resolve('a.test')).toEqual(one);
    expect(asked).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(1);
    const again = resolver.resolve('a.test');
    await settled();
    expect(asked).toHaveLength(3);
    asked[2]?.resolve(one);
    await again;
  });

  it('forgets an address that could not be connected to, and asks again when none is left', async () => {
    const { lookup, asked } = script();
    const resolver = createResolver({ timeoutMs: 5_000, maxLookups: 8, lookup });
    const two: readonly ResolvedAddress[] = [...one, { address: '2001:db8::7', family: 6 }];
    const first = resolver.resolve('a.test');
    asked[0]?.resolve(two);
    const held = await first;
    await vi.advanceTimersByTimeAsync(20_000);
    resolver.forget('a.test', '203.0.113.7');
    resolver.forget('other.test', '2001:db8::7');
    expect(await resolver.resolve('a.test')).toEqual(two.slice(1));
    // A list that somebody holds does not change.
    expect(held).toEqual(two);
    // The rest of the response is as old as it was.
    await vi.advanceTimersByTimeAsync(10_000);
    const again = resolver.resolve('a.test');
    await settled();
    asked[1]?.resolve(one);
    expect(await again).toEqual(one);
    resolver.forget('a.test', '203.0.113.7');
    const last = resolver.resolve('a.test');
    await settled();
    expect(asked).toHaveLength(3);
    asked[2]?.resolve(two);
    expect(await last).toEqual(two);
  });

  it('uses at most sixteen addresses', async () => {
    const { lookup, asked } = script();
    const resolver = createResolver({ timeoutMs: 5_000, maxLookups: 8, lookup });
    const many = Array.from(
      { length: 300 },
      (_, i): ResolvedAddress => ({ address: `203.0.113.${i % 256}`, family: 4 }),
    );
    const found = resolver.resolve('many.test');
    asked[0]?.resolve(many);
    expect(await found).toEqual(many.slice(0, 16));
  });

  it('takes an empty response for a failure', async () => {
    const { lookup, asked } = script();
    const resolver = createResolver({ timeoutMs: 5_000, maxLookups: 8, lookup });
    const found = resolver.resolve('none.test');
    asked[0]?.resolve([]);
    expect(await found).toBe('dns_failed');
  });

  it('takes a lookup that throws at once for a failure', async () => {
    const resolver = createResolver({
      timeoutMs: 5_000,
      maxLookups: 1,
      lookup: () => {
        throw new Error('EINVAL');
      },
    });
    expect(await resolver.resolve('a.test')).toBe('dns_failed');
    expect(await resolver.resolve('b.test')).toBe('dns_failed');
  });

  it('asks the system without one of its own: localhost by its hosts file', async () => {
    vi.useRealTimers();
    const resolver = createResolver({ timeoutMs: 5_000, maxLookups: 8 });
    const found = await resolver.resolve('127.0.0.1');
    expect(found).toEqual([{ address: '127.0.0.1', family: 4 }]);
  });
});
