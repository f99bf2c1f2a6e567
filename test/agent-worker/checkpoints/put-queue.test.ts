// What waits for what, and what goes to the server together.
import { beforeEach, expect, it, vi } from 'vitest';
import { createPutQueue } from '../../../src/agent-worker/checkpoints/put-queue.ts';
import type { CallContext } from '../../../src/agent-worker/method.ts';

const A_WHILE_MS = 600_000;
const value = { type: 'json', text: '1' };
const putOf = (id: string, thread_id = 'one') => ({
  ...{ thread_id, checkpoint_ns: '', checkpoint_id: id, checkpoint: value, metadata: value },
  ...{ searched_metadata: {}, versions: {}, values: [] },
});
const writesOf = (task: string, text = '1') => ({
  ...{ thread_id: 'one', checkpoint_ns: '', checkpoint_id: 'a', task_id: task },
  writes: [{ idx: 0, channel: 'c', value: { type: 'json', text } }],
});

let sent: { method: string; params: unknown; end: PromiseWithResolvers<null> }[];
beforeEach(() => void (sent = []));
const callServer = (async (method, params) => {
  const end = Promise.withResolvers<null>();
  sent.push({ method, params, end });
  return end.promise;
}) as CallContext['callServer'];
const methods = (): readonly string[] => sent.map(({ method }) => method);

it('what a graph waits for is sent at once, by itself', () => {
  const queue = createPutQueue(callServer, 0);
  void queue.put(putOf('a'));
  void queue.putWrites(writesOf('t'));
  expect(methods()).toEqual(['checkpoint.put', 'checkpoint.put_writes']);
  expect(sent[0]?.params).toEqual(putOf('a'));
});

it('what comes within the delay is sent together, and is stored together', async () => {
  vi.useFakeTimers();
  try {
    const queue = createPutQueue(callServer, 30);
    const all = [queue.put(putOf('a')), queue.putWrites(writesOf('t')), queue.put(putOf('b'))];
    vi.advanceTimersByTime(29);
    expect(sent).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(methods()).toEqual(['checkpoint.put_all']);
    const { thread_id: _, ...a } = putOf('a');
    const { thread_id: __, ...b } = putOf('b');
    const { thread_id: ___, ...written } = writesOf('t');
    expect(sent[0]?.params).toEqual({ thread_id: 'one', puts: [a, b], put_writes: [written] });
    sent[0]?.end.reject(new Error('not stored'));
    for (const one of all) await expect(one).rejects.toThrow('not stored');
  } finally {
    vi.useRealTimers();
  }
});

it('what is large, and what is of another thread, does not wait', () => {
  const queue = createPutQueue(callServer, A_WHILE_MS);
  void queue.put(putOf('a'));
  void queue.put(putOf('b', 'two'));
  expect(methods()).toEqual(['checkpoint.put']);
  queue.flush();
  void queue.putWrites(writesOf('t', 'x'.repeat(300_000)));
  expect(methods()).toEqual(['checkpoint.put', 'checkpoint.put', 'checkpoint.put_writes']);
});

it('nothing waits while somebody is in a hurry', () => {
  const queue = createPutQueue(callServer, A_WHILE_MS);
  void queue.put(putOf('a'));
  const rest = queue.hurry();
  void queue.put(putOf('b'));
  expect(methods()).toEqual(['checkpoint.put', 'checkpoint.put']);
  rest();
  void queue.put(putOf('c'));
  expect(sent).toHaveLength(2);
  queue.flush();
  expect(sent).toHaveLength(3);
});
