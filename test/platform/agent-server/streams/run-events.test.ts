// The events of a run as a client reads them.
import { describe, expect, it } from 'vitest';
import { DomainError } from '../../../../src/base/domain-error.ts';
import { RequestError } from '../../../../src/base/http/request-body.ts';
import type { ServerEvent } from '../../../../src/platform/api/stream/event-stream.ts';
import type { RunEvent } from '../../../../src/platform/agent-server/streams/event-queue.ts';
import { parseEventId, streamRun } from '../../../../src/platform/agent-server/streams/run-events.ts';
import type { ReadOptions } from '../../../../src/platform/agent-server/streams/run-streams.ts';

const toEvent = (event: string, id: number): RunEvent => ({ id: String(id), event, data: '{}' });

/** Of a run with these events, that goes on after them unless it has ended. */
function streamsOf(events: readonly RunEvent[], hasEnded = true) {
  const asked: ReadOptions[] = [];
  return {
    asked,
    async *read(_: string, options: ReadOptions) {
      asked.push(options);
      if (events.length > 0) yield events;
      if (hasEnded || options.signal.aborted) return;
      await new Promise((resolve) => options.signal.addEventListener('abort', resolve));
    },
  };
}

async function collect(events: AsyncIterable<readonly ServerEvent[]>): Promise<ServerEvent[]> {
  const all: ServerEvent[] = [];
  for await (const batch of events) all.push(...batch);
  return all;
}

const { signal } = new AbortController();

it('are sent as their JSON is', async () => {
  const streams = streamsOf([{ id: '4', event: 'values', data: '{"a": 1e400}' }]);
  expect(await collect(streamRun(streams, { runId: 'r', lastEventId: '3', signal }))).toEqual([
    { id: '4', event: 'values', text: '{"a": 1e400}' },
  ]);
  expect(streams.asked[0]?.after).toBe(3);
});

it.each([
  ['-1', -1],
  ['0', 0],
  ['41', 41],
  [undefined, undefined],
  ['', undefined],
  ['-2', undefined],
  ['1.5', undefined],
  ['1e3', undefined],
  ['9'.repeat(16), undefined],
])('the last event %s is %s', (text, number) => expect(parseEventId(text)).toBe(number));

describe('of some modes', () => {
  const names = [
    'metadata',
    'values',
    'values|a:1',
    'updates',
    'messages',
    'messages|a:1',
    'messages/partial',
    'messages/metadata',
    'error',
  ];
  it.each([
    [['values'], ['values', 'values|a:1']],
    [['messages'], ['messages/partial', 'messages/metadata']],
    [['messages-tuple'], ['messages', 'messages|a:1']],
    [['debug'], []],
  ])('%j are %j, with metadata and error', async (modes, expected) => {
    const events = streamRun(streamsOf(names.map(toEvent)), { runId: 'r', modes: new Set(modes), signal });
    expect((await collect(events)).map(({ event }) => event)).toEqual(['metadata', ...expected, 'error']);
  });
});

describe('a client', () => {
  it.each([
    ['that left', new RequestError('client_gone'), false, 1],
    ['of a process that shuts down', new DomainError('unavailable', 'shutting down'), false, 0],
    ['that left after the end', undefined, true, 0],
  ])('%s', async (_, reason, hasEnded, times) => {
    const left = new AbortController();
    let count = 0;
    const onLeft = (): void => void (count += 1);
    const streams = streamsOf([toEvent('metadata', 0)], hasEnded);
    const events = streamRun(streams, { runId: 'r', signal: left.signal, onLeft });
    expect((await events.next()).value).toHaveLength(1);
    const next = events.next();
    if (reason !== undefined) left.abort(reason);
    expect((await next).done).toBe(true);
    left.abort(new RequestError('client_gone'));
    expect(count).toBe(times);
  });
});
