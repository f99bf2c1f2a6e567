// The saver with graphs of the real library, over checkpoint calls in memory.
import { Annotation, Command, interrupt, Send, StateGraph } from '@langchain/langgraph';
import { describe, expect, it } from 'vitest';
import { createSaverClass, type Saver } from '../../../src/agent-worker/checkpoints/saver.ts';
import { createMemoryCheckpoints, type MemoryCheckpoints } from '../../support/agent-checkpoints.ts';
import { loadTestLibrary } from '../../support/agent-library.ts';

const createSaver = createSaverClass(await loadTestLibrary());
const thread = { configurable: { thread_id: 'one' } };

const Steps = Annotation.Root({
  steps: Annotation<string[]>({ reducer: (all, more) => [...all, ...more], default: () => [] }),
  fixed: Annotation<string>(),
});

function compileSteps(memory: MemoryCheckpoints) {
  return new StateGraph(Steps)
    .addNode('first', () => ({ steps: ['first'] }))
    .addNode('second', () => ({ steps: ['second'] }))
    .addEdge('__start__', 'first')
    .addEdge('first', 'second')
    .compile({ checkpointer: saverOf(memory) as never });
}

function saverOf(memory: MemoryCheckpoints): Saver {
  return createSaver({ callServer: memory.callServer });
}

async function readAll<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

describe('the saver', () => {
  it('keeps the state of a graph, each version of a channel once', async () => {
    const memory = createMemoryCheckpoints();
    const graph = compileSteps(memory);
    await graph.invoke({ steps: ['in'], fixed: 'f' }, thread);
    const state = await compileSteps(memory).getState(thread);
    expect(state.values).toEqual({ steps: ['in', 'first', 'second'], fixed: 'f' });
    const puts = memory.calls.filter(({ method }) => method === 'checkpoint.put');
    const stored = puts.flatMap(({ params }) => (params as { values: { channel: string }[] }).values);
    expect(stored.filter(({ channel }) => channel === 'fixed')).toHaveLength(1);
    expect(stored.filter(({ channel }) => channel === 'steps')).toHaveLength(3);
  });

  it('gives two branches of one checkpoint values of their own', async () => {
    const memory = createMemoryCheckpoints();
    const graph = compileSteps(memory);
    await graph.invoke({ steps: ['in'] }, thread);
    const history = await readAll(graph.getStateHistory(thread));
    const afterFirst = history.find(({ next }) => next[0] === 'second');
    await graph.updateState(afterFirst?.config ?? {}, { steps: ['left'] }, 'second');
    await graph.updateState(afterFirst?.config ?? {}, { steps: ['right'] }, 'second');
    const ends = (await readAll(graph.getStateHistory(thread))).slice(0, 2);
    expect(ends.map(({ values }) => values['steps'])).toEqual([
      ['in', 'first', 'right'],
      ['in', 'first', 'left'],
    ]);
    expect((await graph.getState(history[0]?.config ?? {})).values['steps']).toEqual([
      'in',
      'first',
      'second',
    ]);
  });

  it('keeps writes of the tasks that are done, sends and what a resumed task was given', async () => {
    const memory = createMemoryCheckpoints();
    let runs = 0;
    const build = () =>
      new StateGraph(Steps)
        .addNode('fan', () => ({}))
        .addNode('quick', ({ fixed }: { fixed: string }) => {
          runs += 1;
          return { steps: [fixed] };
        })
        .addNode('asks', () => ({ steps: [interrupt('ready?')] }))
        .addEdge('__start__', 'fan')
        .addConditionalEdges('fan', () => [new Send('quick', { fixed: 'a' }), new Send('asks', {})], [
          'quick',
          'asks',
        ])
        .compile({ checkpointer: saverOf(memory) as never });
    await build().invoke({ steps: [] }, thread);
    expect((await build().getState(thread)).tasks.flatMap(({ interrupts }) => interrupts)).toMatchObject([
      { value: 'ready?' },
    ]);
    const end = await build().invoke(new Command({ resume: 'yes' }), thread);
    expect(end['steps']).toEqual(['a', 'yes']);
    expect(runs).toBe(1);
  });

  it('keeps bytes, dates as the serializer writes them, U+0000 and no value', async () => {
    const memory = createMemoryCheckpoints();
    const saver = saverOf(memory);
    const checkpoint = {
      v: 4,
      id: 'c1',
      channel_values: { bytes: new Uint8Array([0, 255]), text: 'a\u0000b', none: undefined },
      channel_versions: { bytes: 1, text: 1, none: 1 },
    };
    await saver.put(thread, checkpoint, { source: 'input' }, { bytes: 1, text: 1, none: 1 });
    const found = await saver.getTuple(thread);
    expect(found?.checkpoint.channel_values['bytes']).toEqual(new Uint8Array([0, 255]));
    expect(found?.checkpoint.channel_values['text']).toBe('a\u0000b');
    expect(found?.checkpoint.channel_values['none']).toBeUndefined();
    expect(found?.checkpoint.channel_versions).toEqual({ bytes: 1, text: 1, none: 1 });
  });

  it('lists over pages that the server cuts short', async () => {
    const memory = createMemoryCheckpoints();
    const saver = saverOf(memory);
    const ids = Array.from({ length: 230 }, (_, index) => `c${String(index).padStart(4, '0')}`);
    for (const id of ids) {
      await saver.put(thread, { v: 4, id, channel_values: {}, channel_versions: {} }, { source: 'loop' }, {});
    }
    const all = await readAll(saver.list(thread));
    expect(all.map(({ checkpoint }) => checkpoint.id)).toEqual(ids.toReversed());
    expect(await readAll(saver.list(thread, { limit: 120 }))).toHaveLength(120);
    const before = { configurable: { checkpoint_id: 'c0002' } };
    expect((await readAll(saver.list(thread, { before }))).map(({ checkpoint }) => checkpoint.id)).toEqual([
      'c0001',
      'c0000',
    ]);
    expect(await readAll(saver.list(thread, { filter: { source: 'input' } }))).toEqual([]);
  });

  it('forgets a thread', async () => {
    const memory = createMemoryCheckpoints();
    await compileSteps(memory).invoke({ steps: [] }, thread);
    await saverOf(memory).deleteThread('one');
    expect(await saverOf(memory).getTuple(thread)).toBeUndefined();
    expect(await saverOf(memory).getTuple({ configurable: {} })).toBeUndefined();
  });

  it('ends when the server has everything, and takes nothing after that', async () => {
    const memory = createMemoryCheckpoints();
    const saver = saverOf(memory);
    const { promise, resolve } = Promise.withResolvers<void>();
    memory.onCall = () => promise;
    let isStored = false;
    const checkpoint = { v: 4, id: 'c1', channel_values: {}, channel_versions: {} };
    const put = saver.put(thread, checkpoint, {}, {}).then(() => (isStored = true));
    const end = saver.end().then(() => isStored);
    resolve();
    expect(await end).toBe(true);
    await put;
    await expect(saver.put(thread, checkpoint, {}, {})).rejects.toThrow(/has ended/);
    await expect(saver.putWrites(thread, [['a', 1]], 't')).rejects.toThrow(/has ended/);
  });

  it('fails the graph when the server refuses', async () => {
    const memory = createMemoryCheckpoints();
    memory.onCall = (method) => {
      if (method === 'checkpoint.put') throw new Error('the lease is lost');
    };
    await expect(compileSteps(memory).invoke({ steps: [] }, thread)).rejects.toThrow('the lease is lost');
  });
});
