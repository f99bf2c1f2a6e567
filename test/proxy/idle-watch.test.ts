// An idle timeout is never early, late by two sweeps at most, and begins anew with whatever a socket reads, writes, or gets
// rid of.
import { type Socket, createServer, connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { TLSSocket } from 'node:tls';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { IdleWatch } from '../../src/proxy/idle-watch.ts';

const LIMIT_MS = 1_600;
/** Two sweeps. */
const LATE_MS = 200;

type Counters = {
  bytesRead: number;
  bytesWritten: number;
  writableLength: number;
  _handle: { writeQueueSize: number } | null;
};

function counters(): Counters {
  return { bytesRead: 0, bytesWritten: 0, writableLength: 0, _handle: { writeQueueSize: 0 } };
}

let onIdle = vi.fn<() => void>();

function watching(sockets: readonly Counters[], limitMs: number = LIMIT_MS): IdleWatch {
  onIdle = vi.fn<() => void>();
  return new IdleWatch(sockets as unknown as readonly Socket[], limitMs, onIdle);
}

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] }));
afterEach(() => void vi.useRealTimers());

describe('a silent socket', () => {
  it.each([20, 100, 500, LIMIT_MS, 120_000, 3_600_000])('is reported after %d ms, not before', (limitMs) => {
    const watch = watching([counters()], limitMs);
    vi.advanceTimersByTime(limitMs - 1);
    expect(onIdle).not.toHaveBeenCalled();
    vi.advanceTimersByTime(2 * Math.max(5, limitMs / 16) + 1);
    expect(onIdle).toHaveBeenCalledOnce();
    watch.stop();
  });

  it('is reported again after each further limit', () => {
    const watch = watching([counters()]);
    vi.advanceTimersByTime(3 * (LIMIT_MS + LATE_MS));
    expect(onIdle).toHaveBeenCalledTimes(3);
    watch.stop();
  });

  it('that was closed before the watch began is forgotten', () => {
    watching([Object.assign(counters(), { closed: true })]);
    vi.advanceTimersByTime(2 * LIMIT_MS);
    expect(onIdle).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is reported after two limits during a write over TLS, whose progress cannot be seen', () => {
    const secure = Object.defineProperties(Object.create(TLSSocket.prototype) as Counters, {
      ...Object.getOwnPropertyDescriptors(counters()),
      writableLength: { value: 30_000_000 },
    });
    const watch = watching([secure]);
    vi.advanceTimersByTime(2 * LIMIT_MS - 1);
    expect(onIdle).not.toHaveBeenCalled();
    vi.advanceTimersByTime(LATE_MS);
    expect(onIdle).toHaveBeenCalledOnce();
    watch.stop();
  });

  it('is not reported after the watch has stopped, and no timer is left', () => {
    const [one, other] = [watching([counters()]), watching([counters()])];
    one.stop();
    one.stop();
    expect(vi.getTimerCount()).toBe(1);
    other.stop();
    expect(vi.getTimerCount()).toBe(0);
    vi.advanceTimersByTime(2 * LIMIT_MS);
    expect(onIdle).not.toHaveBeenCalled();
  });

  it('may stop its watch when it is reported', () => {
    const watches: IdleWatch[] = [];
    const onEach = vi.fn<() => void>(() => watches[0]?.stop());
    const socket = counters() as unknown as Socket;
    watches.push(new IdleWatch([socket], LIMIT_MS, onEach), new IdleWatch([socket], LIMIT_MS, onEach));
    vi.advanceTimersByTime(LIMIT_MS + LATE_MS);
    expect(onEach).toHaveBeenCalledTimes(2);
    watches[1]?.stop();
  });

  it('has another limit from a restart on', () => {
    const watch = watching([counters()]);
    vi.advanceTimersByTime(LIMIT_MS - 1);
    watch.restart(LIMIT_MS / 2);
    vi.advanceTimersByTime(LIMIT_MS / 2 - 1);
    expect(onIdle).not.toHaveBeenCalled();
    vi.advanceTimersByTime(LATE_MS / 2 + 1);
    expect(onIdle).toHaveBeenCalledOnce();
    watch.stop();
  });
});

describe('a limit begins anew', () => {
  const rows: readonly (readonly [string, (socket: Counters) => void])[] = [
    ['a read', (socket) => (socket.bytesRead += 1)],
    ['a write', (socket) => (socket.bytesWritten += 1)],
    ['a write that is done', (socket) => (socket.writableLength -= 1)],
    ['a part of a write that is done', ({ _handle }) => _handle && (_handle.writeQueueSize -= 1)],
  ];
  it.each(rows)('with %s', (_, act) => {
    const socket = { ...counters(), writableLength: 10, _handle: { writeQueueSize: 10 } };
    // The other socket of the pair is silent.
    const watch = watching([counters(), socket]);
    for (let i = 0; i < 4; i += 1) {
      vi.advanceTimersByTime(LIMIT_MS - 1);
      act(socket);
    }
    vi.advanceTimersByTime(LIMIT_MS - 1);
    expect(onIdle).not.toHaveBeenCalled();
    vi.advanceTimersByTime(LATE_MS + 1);
    expect(onIdle).toHaveBeenCalledOnce();
    watch.stop();
  });

  it('not with bytes that only wait', () => {
    const watch = watching([{ ...counters(), writableLength: 10, _handle: null }]);
    vi.advanceTimersByTime(LIMIT_MS + LATE_MS);
    expect(onIdle).toHaveBeenCalledOnce();
    watch.stop();
  });
});

it('node:net shows what its handle has still to write', async () => {
  vi.useRealTimers();
  const server = createServer((socket) => void socket.pause()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write(Buffer.alloc(64 * 1024 * 1024));
  const { _handle } = socket as unknown as { readonly _handle: { readonly writeQueueSize: number } };
  expect(_handle.writeQueueSize).toBeGreaterThan(0);
  socket.destroy();
  server.close();
});
