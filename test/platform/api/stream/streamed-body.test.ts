// Streamed responses over a socket: when their bytes leave, how they end, and what they cost while nothing happens.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import type { Streaming } from '../../../../src/platform/api/route.ts';
import type { ServerEvent } from '../../../../src/platform/api/stream/event-stream.ts';
import { bytesRoute, eventsRoute, get, openStreams } from './stream-scene.ts';

function untilAborted(signal: AbortSignal): Promise<unknown> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', resolve));
}

/** An event, then nothing until the signal aborts. */
async function* greet(signal: AbortSignal): AsyncGenerator<ServerEvent> {
  yield { event: 'hello', data: 1, id: '0' };
  await untilAborted(signal);
}

describe('a stream of events', () => {
  it('sends its head at once, and each event while the next one is still to come', async () => {
    const held = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
    async function* produce(): AsyncGenerator<ServerEvent> {
      for (const [id, { promise }] of held.entries()) {
        await promise;
        yield { data: id, id: String(id) };
      }
    }
    await using scene = await openStreams([eventsRoute(produce)]);
    await using client = await scene.connect();
    await client.send(get('/events'));
    const head = await client.readHead();
    expect(head.status).toBe(200);
    expect(head.headers).toEqual(
      expect.arrayContaining([
        ['Content-Type', 'text/event-stream'],
        ['Cache-Control', 'no-store'],
        ['X-Accel-Buffering', 'no'],
      ]),
    );
    held[0].resolve();
    expect(await client.readThrough('\n\n')).toContain('data: 0\nid: 0\n\n');
    held[1].resolve();
    expect(await client.readThrough('\n\n')).toContain('data: 1\nid: 1\n\n');
    // The last chunk: the client knows that the stream is whole.
    expect(await client.readThrough('0\r\n\r\n')).toBe('\r\n0\r\n\r\n');
  });

  it('knows what a client that reconnects has seen', async () => {
    async function* produce({ lastEventId }: { readonly lastEventId: string | undefined }) {
      yield { data: lastEventId ?? null };
    }
    await using scene = await openStreams([eventsRoute(produce)]);
    await using client = await scene.connect();
    for (const [fields, data] of [
      [['Last-Event-ID: 41'], '"41"'],
      [[], 'null'],
    ] as const) {
      await client.send(get('/events', ...fields));
      expect((await client.readResponse()).text).toBe(`data: ${data}\n\n`);
    }
  });

  it('ends when the server drains, with the id from which its client goes on', async () => {
    const scene = await openStreams([eventsRoute(({ signal }) => greet(signal))]);
    await using client = await scene.connect();
    await client.send(get('/events'));
    await client.readHead();
    await client.readThrough('id: 0\n\n');
    const closing = scene[Symbol.asyncDispose]();
    const rest = await client.readToEnd();
    expect(rest).toContain('event: reconnect\ndata: {"last_event_id":"0"}\nid: 0\n\n');
    expect(rest.endsWith('0\r\n\r\n')).toBe(true);
    await closing;
  });

  it('is cut when the server drains, where its clients know no other way to reconnect', async () => {
    const scene = await openStreams([eventsRoute(({ signal }) => greet(signal), { onDrain: 'cut' })]);
    await using client = await scene.connect();
    await client.send(get('/events'));
    await client.readThrough('id: 0\n\n');
    const closing = scene[Symbol.asyncDispose]();
    // Neither an event nor the last chunk: the stream is not whole.
    expect(await client.readToEnd()).toBe('\r\n');
    await closing;
    expect(scene.lines.join('')).not.toContain('request failed');
  });

  it('goes on, where another process continues it, from the id that the drain named', async () => {
    async function* produce({ signal, lastEventId }: Streaming): AsyncGenerator<ServerEvent> {
      const first = Number(lastEventId ?? -1) + 1;
      for (const id of [first, first + 1]) yield { data: id, id: String(id) };
      await untilAborted(signal);
    }
    const first = await openStreams([eventsRoute(produce)]);
    await using second = await openStreams([eventsRoute(produce)]);
    await using client = await first.connect();
    await client.send(get('/events'));
    await client.readThrough('id: 1\n\n');
    const closing = first[Symbol.asyncDispose]();
    const [, lastId = ''] = /event: reconnect\n.*\nid: (.*)\n\n/.exec(await client.readToEnd()) ?? [];
    await closing;
    await using again = await second.connect();
    await again.send(get('/events', `Last-Event-ID: ${lastId}`));
    // Nothing is missing and nothing comes twice.
    expect(await again.readThrough('id: 3\n\n')).toMatch(/data: 2\nid: 2\n\n[^]*data: 3\nid: 3\n\n$/);
    again.reset();
  });

  it('ends, and its producer with it, when its client leaves', async () => {
    const ended = Promise.withResolvers<void>();
    async function* produce({ signal }: { readonly signal: AbortSignal }): AsyncGenerator<ServerEvent> {
      try {
        yield* greet(signal);
      } finally {
        ended.resolve();
      }
    }
    await using scene = await openStreams([eventsRoute(produce)]);
    await using client = await scene.connect();
    await client.send(get('/events'));
    await client.readThrough('id: 0\n\n');
    expect([scene.server.streams, scene.server.running]).toEqual([1, 1]);
    client.reset();
    await ended.promise;
    expect([scene.server.streams, scene.server.running]).toEqual([0, 0]);
  });

  it('whose producer fails tells its client that it failed and the operator why', async () => {
    async function* produce(): AsyncGenerator<ServerEvent> {
      yield { data: 1 };
      throw new RangeError('canary');
    }
    await using scene = await openStreams([eventsRoute(produce)]);
    await using client = await scene.connect();
    await client.send(get('/events'));
    const { text } = await client.readResponse();
    expect(text).toContain('event: error\ndata: {"error":"internal_error"');
    expect(text).not.toContain('canary');
    expect(scene.lines.map((line) => JSON.parse(line)).map(({ msg, error }) => [msg, error])).toContainEqual([
      'request failed',
      'RangeError',
    ]);
  });

  it('to HEAD has no body, and its producer is not started', async () => {
    let isStarted = false;
    const produce = ({ signal }: { readonly signal: AbortSignal }): AsyncIterable<ServerEvent> => {
      isStarted = true;
      return greet(signal);
    };
    await using scene = await openStreams([eventsRoute(produce)]);
    await using client = await scene.connect();
    await client.send(get('/events').replace('GET', 'HEAD'));
    expect((await client.readHead()).status).toBe(200);
    expect(isStarted).toBe(false);
  });

  it('over the limit is a 429 that says when to come back, and other requests are served', async () => {
    const scene = await openStreams([eventsRoute(({ signal }) => greet(signal))], { streams: 1 });
    await using first = await scene.connect();
    await first.send(get('/events'));
    await first.readThrough('id: 0\n\n');
    await using second = await scene.connect();
    await second.send(get('/events'));
    const { head, text } = await second.readResponse();
    expect([head.status, JSON.parse(text).code]).toEqual([429, 'too_many']);
    expect(head.headers).toContainEqual(['Retry-After', '5']);
    await second.send(get('/unknown'));
    expect((await second.readResponse()).head.status).toBe(404);
    await scene[Symbol.asyncDispose]();
  });

  it('uses up no connection of other clients', async () => {
    const limits = { connections: 1, streams: 2 };
    const scene = await openStreams([eventsRoute(({ signal }) => greet(signal))], limits);
    for (let count = 0; count < 2; count += 1) {
      const client = await scene.connect();
      await client.send(get('/events'));
      await client.readThrough('id: 0\n\n');
    }
    await using client = await scene.connect();
    await client.send(get('/unknown'));
    expect((await client.readResponse()).head.status).toBe(404);
    await using another = await scene.connect();
    await another.finished;
    expect(another.transcript).toBe('');
    await scene[Symbol.asyncDispose]();
  });

  it('takes at most 40 KB while nothing happens, its client included', async () => {
    const COUNT = 500;
    await using scene = await openStreams([eventsRoute(({ signal }) => greet(signal))], {
      connectionsPerAddress: COUNT + 1,
    });
    const open = async (): Promise<Socket> => {
      const socket = connect(scene.port, '127.0.0.1');
      socket.write(get('/events'));
      await once(socket, 'readable');
      return socket;
    };
    const sockets = [await open()];
    const before = usedBytes();
    for (let at = 0; at < COUNT; at += 1) sockets.push(await open());
    expect(scene.server.streams).toBe(COUNT + 1);
    const each = (usedBytes() - before) / COUNT;
    for (const socket of sockets) socket.destroy();
    expect(each).toBeLessThan(40_000);
  });
});

/** What is in use after a garbage collection, in the heap and outside of it. */
function usedBytes(): number {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

describe('a stream of bytes', () => {
  it('is produced no faster than its client reads', async () => {
    let produced = 0;
    async function* produce(): AsyncGenerator<Uint8Array> {
      for (; produced < 500; produced += 1) yield Buffer.alloc(65_536);
    }
    await using scene = await openStreams([bytesRoute(produce)]);
    await using client = await scene.connect();
    client.socket.pause();
    await client.send(get('/bytes'));
    client.socket.resume();
    await client.readHead();
    expect(produced).toBeLessThan(500);
    expect((await client.readBody()).length).toBe(500 * 65_536);
  });

  it('goes on while the server drains', async () => {
    const held = Promise.withResolvers<void>();
    async function* produce(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('a');
      await held.promise;
      yield Buffer.from('z');
    }
    const scene = await openStreams([bytesRoute(produce)]);
    await using client = await scene.connect();
    await client.send(get('/bytes'));
    const head = await client.readHead();
    expect(head.headers).toContainEqual(['Content-Type', 'application/x-ndjson']);
    const closing = scene[Symbol.asyncDispose]();
    held.resolve();
    expect((await client.readBody()).content.toString()).toBe('az');
    await closing;
  });

  it('whose producer is silent for too long is cut off, so that no client takes a part for the whole', async () => {
    async function* produce({ signal }: { readonly signal: AbortSignal }): AsyncGenerator<Uint8Array> {
      yield Buffer.from('ab');
      await untilAborted(signal);
    }
    await using scene = await openStreams([bytesRoute(produce, 50)]);
    await using client = await scene.connect();
    await client.send(get('/bytes'));
    await client.finished;
    expect(client.transcript).toContain('ab');
    expect(client.transcript).not.toContain('0\r\n\r\n');
    expect(scene.lines.some((line) => line.includes('"request failed"'))).toBe(true);
  });
});
