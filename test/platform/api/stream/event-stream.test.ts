// Server-sent events as frames: what a client reads, while it waits too, and how the stream ends.
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { DomainError } from '../../../../src/base/domain-error.ts';
import { EndedEarly } from '../../../../src/base/http/http-response.ts';
import { toStreamError } from '../../../../src/platform/api/errors.ts';
import {
  type EventStreamOptions,
  formatEvent,
  type ServerEvent,
  toEventStream,
} from '../../../../src/platform/api/stream/event-stream.ts';

const options = (over: Partial<EventStreamOptions> = {}): EventStreamOptions => ({
  signal: new AbortController().signal,
  isDraining: () => false,
  lastEventId: undefined,
  onError: toStreamError,
  ...over,
});

async function* emit(...events: readonly ServerEvent[]): AsyncGenerator<ServerEvent> {
  yield* events;
}

/** The events, then nothing until the signal aborts. */
async function* emitAndWait(
  signal: AbortSignal,
  ...events: readonly ServerEvent[]
): AsyncGenerator<ServerEvent> {
  yield* events;
  await new Promise((resolve) => signal.addEventListener('abort', resolve));
}

const framed = (
  events: AsyncIterable<ServerEvent>,
  over: Partial<EventStreamOptions> = {},
): Promise<string> => text(toEventStream(events, options(over)));

describe('a frame', () => {
  it.each<readonly [ServerEvent, string]>([
    [{ event: 'values', data: { a: 1 }, id: '0' }, 'event: values\ndata: {"a":1}\nid: 0\n\n'],
    [{ data: 'two\nlines' }, 'data: "two\\nlines"\n\n'],
    [{ event: 'end', data: undefined }, 'event: end\ndata: null\n\n'],
    [{ event: 'values', text: '{"a": 1e400}', id: '0' }, 'event: values\ndata: {"a": 1e400}\nid: 0\n\n'],
    [{ text: '{\n "a":\r\n 1}' }, 'data: {  "a":  1}\n\n'],
  ])('%j', (event, frame) => expect(Buffer.from(formatEvent(event)).toString()).toBe(frame));

  it.each<ServerEvent>([
    { event: 'a\ndata: forged', data: 1 },
    { event: 'a', data: 1, id: '1\r2' },
    { event: 'a', data: 1, id: '1\u00002' },
  ])('%j has a line break where none may be', (event) =>
    expect(() => formatEvent(event)).toThrow('line break'),
  );
});

describe('a stream', () => {
  it('has a frame for each event and ends with them', async () => {
    expect(await framed(emit({ data: 1, id: '0' }, { data: 2, id: '1' }))).toBe(
      'data: 1\nid: 0\n\ndata: 2\nid: 1\n\n',
    );
  });

  it('has the events that are ready together in one piece', async () => {
    async function* batches(): AsyncGenerator<readonly ServerEvent[]> {
      yield [
        { text: '1', id: '0' },
        { text: '2', id: '1' },
      ];
      yield [{ text: '3', id: '2' }];
    }
    const pieces: string[] = [];
    for await (const piece of toEventStream(batches(), options())) pieces.push(Buffer.from(piece).toString());
    expect(pieces).toEqual(['data: 1\nid: 0\n\ndata: 2\nid: 1\n\n', 'data: 3\nid: 2\n\n']);
  });

  it('that its producer ends early is cut: a client must not take a part for the whole', async () => {
    async function* cut(): AsyncGenerator<ServerEvent> {
      yield { data: 1 };
      throw new EndedEarly('the client does not read');
    }
    await expect(framed(cut())).rejects.toThrow(EndedEarly);
  });

  it('has a comment of one line while nothing happens', async () => {
    const signal = new AbortController();
    const frames = toEventStream(
      emitAndWait(signal.signal),
      options({ signal: signal.signal, heartbeatMs: 1 }),
    );
    for (let count = 0; count < 3; count += 1) {
      const { value } = await frames.next();
      expect(Buffer.from(value ?? []).toString()).toBe(': heartbeat\n');
    }
    signal.abort();
    expect((await frames.next()).done).toBe(true);
  });

  it.each([
    ['the last event', [{ data: 1, id: '7' }], '3', '7'],
    ['the last event that had one', [{ data: 1, id: '7' }, { data: 2 }], undefined, '7'],
  ] as const)('that ends with a drain has the id of %s', async (_, events, lastEventId, id) => {
    const signal = new AbortController();
    const sent: string[] = [];
    const over = { signal: signal.signal, isDraining: () => true, lastEventId };
    for await (const frame of toEventStream(emitAndWait(signal.signal, ...events), options(over))) {
      sent.push(Buffer.from(frame).toString());
      if (sent.length === events.length) signal.abort();
    }
    expect(sent.at(-1)).toBe(`event: reconnect\ndata: {"last_event_id":"${id}"}\nid: ${id}\n\n`);
  });

  it('that ends with a drain before any id says so', async () => {
    const over = { signal: AbortSignal.abort(), isDraining: () => true };
    expect(await framed(emit(), over)).toBe('event: reconnect\ndata: {"last_event_id":null}\n\n');
    expect(await framed(emit(), { ...over, lastEventId: '3' })).toBe(
      'event: reconnect\ndata: {"last_event_id":"3"}\nid: 3\n\n',
    );
  });

  it('whose client left ends without another frame', async () => {
    expect(await framed(emit({ data: 1 }), { signal: AbortSignal.abort() })).toBe('');
  });

  it('whose producer fails ends with the error that a client may know', async () => {
    async function* fail(error: Error): AsyncGenerator<ServerEvent> {
      yield { data: 1, id: '0' };
      throw error;
    }
    expect(await framed(fail(new DomainError('conflict', 'It was cancelled')))).toBe(
      'data: 1\nid: 0\n\nevent: error\ndata: {"error":"conflict","message":"It was cancelled"}\n\n',
    );
    expect(await framed(fail(new Error('canary')))).not.toContain('canary');
  });
});
