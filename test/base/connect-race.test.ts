// The race of the addresses of one host (RFC 8305), on sockets that do what a row says, and on real ones.
import { EventEmitter, once } from 'node:events';
import { type AddressInfo, type Socket, connect, createServer } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ConnectRace } from '../../src/base/connect-race.ts';

type Address = { readonly address: string; readonly family: 4 | 6 };

const address = (text: string): Address => ({ address: text, family: text.includes(':') ? 6 : 4 });

class ScriptedSocket extends EventEmitter {
  readonly to: string;
  isDestroyed = false;
  probedAfterMs: number | undefined;

  constructor(to: string) {
    super();
    this.to = to;
  }

  destroy(): this {
    this.isDestroyed = true;
    return this;
  }

  setKeepAlive(isOn: boolean, delayMs: number): this {
    this.probedAfterMs = isOn ? delayMs : undefined;
    return this;
  }

  fail(code: string): void {
    this.emit('error', Object.assign(new Error(code), { code }));
    this.emit('close');
  }
}

function scene(addresses: readonly string[], maxOpen = Number.POSITIVE_INFINITY) {
  const sockets: ScriptedSocket[] = [];
  const failed: string[] = [];
  const ends: string[] = [];
  const race = new ConnectRace<Address, Socket>({
    addresses: addresses.map(address),
    open: (to) => {
      if (sockets.length >= maxOpen) return undefined;
      const socket = new ScriptedSocket(to.address);
      sockets.push(socket);
      // The race uses events, destroy() and setKeepAlive() only.
      return socket as unknown as Socket;
    },
    onFailed: (to) => failed.push(to.address),
    onEnd: (result) => {
      if (result instanceof Error) ends.push(result.code ?? result.message);
      else ends.push((result as unknown as ScriptedSocket).to);
    },
  });
  race.start();
  const opened = (): string[] => sockets.map(({ to }) => to);
  const alive = (): string[] => sockets.filter(({ isDestroyed }) => !isDestroyed).map(({ to }) => to);
  return { race, sockets, failed, ends, opened, alive };
}

describe('a race of addresses', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
  afterEach(() => void vi.useRealTimers());

  it('alternates the families, beginning with the first, a quarter of a second apart', () => {
    const { opened } = scene(['192.0.2.1', '192.0.2.2', '192.0.2.3', '2001:db8::1']);
    expect(opened()).toEqual(['192.0.2.1']);
    vi.advanceTimersByTime(249);
    expect(opened()).toEqual(['192.0.2.1']);
    vi.advanceTimersByTime(1);
    expect(opened()).toEqual(['192.0.2.1', '2001:db8::1']);
    vi.advanceTimersByTime(10_000);
    expect(opened()).toEqual(['192.0.2.1', '2001:db8::1', '192.0.2.2', '192.0.2.3']);
  });

  it('keeps the earlier attempts: a slow first address wins although later ones were refused', () => {
    const { sockets, ends, alive, failed } = scene(['192.0.2.1', '2001:db8::1']);
    vi.advanceTimersByTime(250);
    sockets[1]?.fail('ENETUNREACH');
    vi.advanceTimersByTime(3_000);
    expect([alive(), ends, failed]).toEqual([['192.0.2.1'], [], ['2001:db8::1']]);
    sockets[0]?.emit('connect');
    expect([ends, alive()]).toEqual([['192.0.2.1'], ['192.0.2.1']]);
    expect(sockets[0]?.probedAfterMs).toBe(30_000);
  });

  it('starts the next attempt at once when one fails', () => {
    const { sockets, opened, ends } = scene(['192.0.2.1', '192.0.2.2', '192.0.2.3']);
    sockets[0]?.fail('ECONNREFUSED');
    expect(opened()).toEqual(['192.0.2.1', '192.0.2.2']);
    vi.advanceTimersByTime(250);
    expect(opened()).toEqual(['192.0.2.1', '192.0.2.2', '192.0.2.3']);
    expect(ends).toEqual([]);
  });

  it('ends with the first that connects, destroys the others and reports them not as failed', () => {
    const { sockets, failed, ends, alive } = scene(['192.0.2.1', '192.0.2.2', '192.0.2.3']);
    vi.advanceTimersByTime(250);
    sockets[1]?.emit('connect');
    sockets[0]?.emit('connect');
    sockets[0]?.fail('ECONNRESET');
    vi.advanceTimersByTime(10_000);
    expect([ends, alive(), failed]).toEqual([['192.0.2.2'], ['192.0.2.2'], []]);
    expect(sockets).toHaveLength(2);
  });

  it('does not take back its winner when that one fails later', () => {
    const { sockets, failed, ends } = scene(['192.0.2.1', '192.0.2.2']);
    sockets[0]?.emit('connect');
    // Whoever gets the socket listens for its errors.
    sockets[0]?.on('error', () => {}).fail('ECONNRESET');
    expect([ends, failed, sockets.length]).toEqual([['192.0.2.1'], [], 1]);
  });

  it('ends with the first error when every address has failed, and reports each', () => {
    const { sockets, failed, ends } = scene(['192.0.2.1', '2001:db8::1']);
    sockets[0]?.fail('ECONNREFUSED');
    sockets[1]?.fail('ENETUNREACH');
    expect([ends, failed]).toEqual([['ECONNREFUSED'], ['192.0.2.1', '2001:db8::1']]);
  });

  it('opens no further connection when it may not, and goes on with those that it has', () => {
    const { sockets, ends } = scene(['192.0.2.1', '192.0.2.2'], 1);
    vi.advanceTimersByTime(250);
    expect(ends).toEqual([]);
    sockets[0]?.fail('ECONNREFUSED');
    expect(ends).toEqual(['ECONNREFUSED']);
  });

  it('throws at its start what its first attempt throws', () => {
    const bug = new TypeError('no such option');
    const onEnd = vi.fn<() => void>();
    const open = (): Socket => {
      throw bug;
    };
    const addresses = [address('192.0.2.1'), address('192.0.2.2')];
    const race = new ConnectRace<Address, Socket>({ addresses, open, onFailed: () => {}, onEnd });
    expect(() => race.start()).toThrow(bug);
    vi.advanceTimersByTime(10_000);
    expect(onEnd).not.toHaveBeenCalled();
  });

  it('survives an attempt that cannot be started', () => {
    const ends: unknown[] = [];
    const first = new ScriptedSocket('192.0.2.1');
    const bug = new TypeError('no such option');
    const race = new ConnectRace<Address, Socket>({
      addresses: [address('192.0.2.1'), address('192.0.2.2')],
      open: (to) => {
        if (to.address !== '192.0.2.1') throw bug;
        return first as unknown as Socket;
      },
      onFailed: () => {},
      onEnd: (result) => void ends.push(result),
    });
    race.start();
    vi.advanceTimersByTime(250);
    expect(ends).toEqual([]);
    first.emit('connect');
    expect(ends).toEqual([first]);
  });

  it('that is stopped destroys its attempts and reports nothing', () => {
    const { race, sockets, failed, ends, alive } = scene(['192.0.2.1', '192.0.2.2']);
    vi.advanceTimersByTime(250);
    race.stop();
    sockets[0]?.fail('ECONNRESET');
    vi.advanceTimersByTime(10_000);
    expect([alive(), failed, ends, sockets.length]).toEqual([[], [], [], 2]);
  });

  it('that is over its deadline reports the addresses that have not responded', () => {
    const { race, failed, ends, alive } = scene(['192.0.2.1', '192.0.2.2', '192.0.2.3']);
    vi.advanceTimersByTime(250);
    race.expire();
    expect([alive(), failed, ends]).toEqual([[], ['192.0.2.1', '192.0.2.2'], []]);
  });
});

it('a race of real sockets connects past an address that refuses', async () => {
  const server = createServer((socket) => socket.on('error', () => {}));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const ended = Promise.withResolvers<Socket | Error>();
  const failed: string[] = [];
  new ConnectRace<Address, Socket>({
    addresses: [address('127.0.0.2'), address('127.0.0.1')],
    open: (to) => connect({ host: to.address, port }),
    onFailed: (to) => failed.push(to.address),
    onEnd: ended.resolve,
  }).start();
  const winner = await ended.promise;
  if (winner instanceof Error) throw winner;
  expect([winner.remoteAddress, failed]).toEqual(['127.0.0.1', ['127.0.0.2']]);
  winner.destroy();
  server.close();
  await once(server, 'close');
});
