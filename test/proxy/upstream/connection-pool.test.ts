// The pool: which idle connection a request may have, for how long one is kept, and what never enters. Sockets are
// stand-ins and the clock is ours.
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { refuse } from '../../../src/proxy/refusal.ts';
import {
  UpstreamConnection,
  type UpstreamOwner,
  ConnectionPool,
} from '../../../src/proxy/upstream/connection-pool.ts';
import type { DialTarget } from '../../../src/proxy/upstream/dial.ts';
import { type ConnectionQuota, createConnectionQuota } from '../../../src/proxy/upstream/connection-quota.ts';

const key = '1 https://a.test:443';
const owner: UpstreamOwner = {
  onUpstreamData: () => {},
  onUpstreamDrain: () => {},
  onUpstreamEnd: () => {},
  onUpstreamTimeout: () => {},
  onUpstreamClose: () => {},
  onBug: () => {},
};

type PoolLimits = { maxIdle?: number; maxIdlePerHost?: number; quota?: ConnectionQuota };

function createPool(limits: PoolLimits = {}): ConnectionPool {
  const dialler = { dial: async () => socket() };
  const own = { maxIdle: 100, maxIdlePerHost: 100, quota: createConnectionQuota(100) };
  return new ConnectionPool({ dialler, responseIdleMs: 600_000, ...own, ...limits });
}

function socket(): Socket {
  const duplex = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done(), allowHalfOpen: true });
  // All of a socket that the pool asks for besides what every stream has.
  return Object.assign(duplex, { setTimeout: () => duplex }) as unknown as Socket;
}

/** A connection that served client 1 once and lies idle in the pool. */
function pooled(pool: ConnectionPool, at: string = key, clientId = 1): UpstreamConnection {
  const connection = new UpstreamConnection(socket(), at, 600_000);
  connection.own(owner, clientId);
  pool.give(connection);
  return connection;
}

const get = { key, clientId: 2, isIdempotent: true, isRetryable: true };
const post = { key, clientId: 2, isIdempotent: false, isRetryable: false };

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] }));
afterEach(() => void vi.useRealTimers());

describe('an idle connection', () => {
  it('serves the next request for its key, once', () => {
    const pool = createPool();
    const connection = pooled(pool);
    expect(pool.idleCount).toBe(1);
    expect(pool.take(get)).toBe(connection);
    expect(pool.take(get)).toBeUndefined();
    expect(pool.idleCount).toBe(0);
  });

  it.each([
    ['another port', '1 https://a.test:8443'],
    ['another scheme', '1 http://a.test:443'],
    ['another host', '1 https://b.test:443'],
    ['another revision', '2 https://a.test:443'],
  ])('does not serve %s', (_, other) => {
    const pool = createPool();
    pooled(pool);
    expect(pool.take({ ...get, key: other })).toBeUndefined();
  });

  it('that was used last is taken first', () => {
    const pool = createPool();
    const [older, newer] = [pooled(pool), pooled(pool)];
    expect(pool.take(get)).toBe(newer);
    expect(pool.take(get)).toBe(older);
  });

  it('serves a request that may be repeated until its limit of 4 s', () => {
    const pool = createPool();
    pooled(pool);
    vi.advanceTimersByTime(3_999);
    expect(pool.take(get)).toBeDefined();
    const late = pooled(pool);
    vi.advanceTimersByTime(4_000);
    expect(pool.take(get)).toBeUndefined();
    expect(late.socket.destroyed).toBe(true);
  });

  it('serves a request that may not be repeated for 2 s, and its own client for as long as any', () => {
    const pool = createPool();
    pooled(pool);
    vi.advanceTimersByTime(1_999);
    expect(pool.take(post)).toBeDefined();
    const own = pooled(pool, key, 2);
    vi.advanceTimersByTime(2_000);
    expect(pool.take({ ...post, clientId: 3 })).toBeUndefined();
    expect(pool.idleCount).toBe(1);
    expect(pool.take(post)).toBe(own);
  });

  it('that is too old for a request does not hide one that is not', () => {
    const pool = createPool();
    const own = pooled(pool, key, 2);
    pooled(pool, key, 1);
    vi.advanceTimersByTime(2_000);
    expect(pool.take(post)).toBe(own);
  });

  it.each([
    ['1 s: not at all', 1, 0],
    ['2 s: 1 s', 2, 1_000],
    ['5 s: 4 s', 5, 4_000],
    ['30 s: 29 s', 30, 29_000],
    ['an hour: a minute', 3_600, 60_000],
    ['0: not at all', 0, 0],
  ])('of a host that promises %s', (_, seconds, limitMs) => {
    const connection = new UpstreamConnection(socket(), key, 600_000);
    connection.allowIdle(seconds);
    expect(connection.idleLimitMs).toBe(limitMs);
  });

  it('keeps what its host promised when a later response says nothing', () => {
    const connection = new UpstreamConnection(socket(), key, 600_000);
    connection.allowIdle(30);
    connection.allowIdle(undefined);
    expect(connection.idleLimitMs).toBe(29_000);
  });

  it('of a host that kept an earlier one serves longer, but only requests that can be sent again', () => {
    const pool = createPool();
    pooled(pool);
    vi.advanceTimersByTime(4_500);
    const second = pooled(pool, key, 2);
    vi.advanceTimersByTime(7_400);
    expect(pool.take(post)).toBeUndefined();
    expect(pool.take({ ...get, isRetryable: false })).toBeUndefined();
    expect(pool.take(get)).toBe(second);
    pooled(pool, '2 https://a.test:443', 2);
    vi.advanceTimersByTime(8_500);
    const third = pooled(pool, key, 2);
    vi.advanceTimersByTime(7_900);
    expect(pool.take(post)).toBe(third);
  });

  it.each([
    ['by a FIN', (one: UpstreamConnection) => one.socket.push(null)],
    ['by a reset', (one: UpstreamConnection) => one.socket.destroy(new Error('ECONNRESET'))],
  ])('of a host that closed an earlier one %s serves for a second less', async (_, close) => {
    const pool = createPool();
    const first = pooled(pool);
    vi.advanceTimersByTime(3_000);
    close(first);
    await new Promise((resolve) => first.socket.once('close', resolve));
    pooled(pool);
    vi.advanceTimersByTime(2_000);
    expect(pool.take(get)).toBeUndefined();
  });

  it('that was closed by us teaches nothing', async () => {
    const pool = createPool();
    const first = pooled(pool);
    vi.advanceTimersByTime(1_500);
    pool.keepOnly('1 ');
    pool.keepOnly('2 ');
    await new Promise((resolve) => first.socket.once('close', resolve));
    pool.keepOnly('1 ');
    pooled(pool);
    vi.advanceTimersByTime(3_900);
    expect(pool.take(get)).toBeDefined();
  });

  it('is swept away after its time without anybody asking', () => {
    const pool = createPool();
    const connection = pooled(pool);
    vi.advanceTimersByTime(4_500);
    expect(connection.socket.destroyed).toBe(true);
    expect(pool.idleCount).toBe(0);
  });

  it('that receives a byte is destroyed: no request asked for it', async () => {
    const pool = createPool();
    const connection = pooled(pool);
    connection.socket.push('HTTP/1.1 200 OK\r\n\r\n');
    await new Promise((resolve) => connection.socket.once('close', resolve));
    expect(pool.take(get)).toBeUndefined();
    expect(pool.idleCount).toBe(0);
  });

  it('that its host closes is destroyed', async () => {
    const pool = createPool();
    const connection = pooled(pool);
    connection.socket.push(null);
    await new Promise((resolve) => connection.socket.once('close', resolve));
    expect(pool.take(get)).toBeUndefined();
  });

  it('that breaks harms nobody', async () => {
    const pool = createPool();
    const connection = pooled(pool);
    connection.socket.destroy(new Error('ECONNRESET'));
    await new Promise((resolve) => connection.socket.once('close', resolve));
    expect(pool.take(get)).toBeUndefined();
  });
});

describe('a connection is not kept', () => {
  it('when it is destroyed already', () => {
    const pool = createPool();
    const connection = new UpstreamConnection(socket(), key, 600_000);
    connection.socket.destroy();
    pool.give(connection);
    expect(pool.idleCount).toBe(0);
  });

  it('when bytes of ours still wait to be written', () => {
    const pool = createPool();
    const connection = new UpstreamConnection(socket(), key, 600_000);
    connection.socket.cork();
    connection.socket.write('rest of a request');
    pool.give(connection);
    expect([pool.idleCount, connection.socket.destroyed]).toEqual([0, true]);
  });

  it('when the pool is full, or full for its host', () => {
    const all = createPool({ maxIdle: 2 });
    const kept = [pooled(all), pooled(all, '1 https://b.test:443')];
    expect(pooled(all, '1 https://c.test:443').socket.destroyed).toBe(true);
    expect(kept.map((one) => one.socket.destroyed)).toEqual([false, false]);
    const host = createPool({ maxIdlePerHost: 1 });
    pooled(host);
    expect(pooled(host).socket.destroyed).toBe(true);
    expect(pooled(host, '1 https://b.test:443').socket.destroyed).toBe(false);
  });

  it('when it belongs to an older revision', () => {
    const pool = createPool();
    const old = pooled(pool, '1 https://a.test:443');
    const running = new UpstreamConnection(socket(), '1 https://a.test:443', 600_000);
    pool.keepOnly('2 ');
    expect([old.socket.destroyed, pool.idleCount]).toEqual([true, 0]);
    pool.give(running);
    expect([running.socket.destroyed, pool.idleCount]).toEqual([true, 0]);
    expect(pooled(pool, '2 https://a.test:443').socket.destroyed).toBe(false);
    expect(pooled(pool, '21 https://a.test:443').socket.destroyed).toBe(true);
  });

  it('when the pool is closed', () => {
    const pool = createPool();
    const idle = pooled(pool);
    pool.close();
    expect(idle.socket.destroyed).toBe(true);
    expect(pooled(pool).socket.destroyed).toBe(true);
  });
});

describe('the events of a connection', () => {
  it('go to its owner of the moment alone', async () => {
    const pool = createPool();
    const refresh: string[] = [];
    const listening = (name: string): UpstreamOwner => ({
      ...owner,
      onUpstreamData: (chunk) => void refresh.push(`${name} ${chunk.toString()}`),
      onUpstreamClose: (code) => void refresh.push(`${name} closed ${code}`),
    });
    const connection = new UpstreamConnection(socket(), key, 600_000);
    connection.own(listening('first'), 1);
    connection.socket.push('a');
    await new Promise(setImmediate);
    pool.give(connection);
    expect(pool.take(get)).toBe(connection);
    connection.own(listening('second'), 2);
    expect([connection.uses, connection.lastClient]).toEqual([2, 2]);
    connection.socket.push('b');
    await new Promise(setImmediate);
    connection.socket.destroy(Object.assign(new Error('gone'), { code: 'ECONNRESET' }));
    await new Promise((resolve) => connection.socket.once('close', resolve));
    expect(refresh).toEqual(['first a', 'second b', 'second closed ECONNRESET']);
  });

  it('reach nobody after it was discarded', async () => {
    const connection = new UpstreamConnection(socket(), key, 600_000);
    const onUpstreamClose = vi.fn();
    connection.own({ ...owner, onUpstreamClose }, 1);
    connection.discard();
    await new Promise((resolve) => connection.socket.once('close', resolve));
    expect(onUpstreamClose).not.toHaveBeenCalled();
  });

  it('are nobody’s of ours after it was handed over', () => {
    const connection = new UpstreamConnection(socket(), key, 600_000);
    const bare = socket();
    const handed = connection.detach();
    for (const event of ['data', 'drain', 'end', 'timeout', 'error', 'close'])
      expect([event, handed.listenerCount(event)]).toEqual([event, bare.listenerCount(event)]);
    expect(handed.isPaused()).toBe(true);
  });
});

describe('the idle connections of all sandboxes', () => {
  it.each<[string, (pool: ConnectionPool) => void]>([
    ['is taken', (pool) => void pool.take(get)],
    ['is too old', () => vi.advanceTimersByTime(5_000)],
    ['is of rules that were replaced', (pool) => pool.keepOnly('2 ')],
    ['is of a sandbox that is removed', (pool) => pool.close()],
  ])('keep to one limit, whoever they belong to; there is a place again when one %s', (_, free) => {
    const quota = createConnectionQuota(2);
    const [one, other] = [createPool({ quota }), createPool({ quota })];
    pooled(one);
    pooled(other);
    expect(pooled(other).socket.destroyed).toBe(true);
    free(one);
    const [first, , third] = Array.from({ length: 3 }, () => pooled(other).socket.destroyed);
    expect([first, third]).toEqual([false, true]);
  });
});

describe('a fresh connection', () => {
  const target = {} as DialTarget; // the stand-in dialler does not look at it

  it('belongs to the key it was opened for', async () => {
    const opened = await createPool().open(key, target, new AbortController().signal);
    expect(opened).toMatchObject({ key, uses: 0 });
  });

  it('is the refusal of the dialler where there is none', async () => {
    const refusal = refuse('dns_failed');
    const pool = new ConnectionPool({
      dialler: { dial: async () => refusal },
      responseIdleMs: 1,
      quota: createConnectionQuota(1),
      maxIdle: 1,
      maxIdlePerHost: 1,
    });
    expect(await pool.open(key, target, new AbortController().signal)).toBe(refusal);
  });
});
