// The state of threads, as clients get it: now, at a checkpoint, with subgraphs, before and after an update.
import { describe, expect, it } from 'vitest';
import { createCall, createRun, loadTestGraphs, startRun, type TestCall } from '../../support/agent-runs.ts';

const methods = await loadTestGraphs('builder', 'asks', 'nested');
const input = { steps: ['in'] };
const { thread_id } = createRun({ graph_id: 'builder' });

type Place = { readonly checkpoint_id?: string; readonly checkpoint_ns?: string };

async function readState(call: TestCall, graph_id: string, configurable: Place = {}, subgraphs = false) {
  const config = JSON.stringify({ configurable });
  return JSON.parse(
    (await methods['state.get']?.({ graph_id, thread_id, config, subgraphs }, call.context)) ?? '',
  );
}

async function readHistory(call: TestCall, graph_id: string, more: object = {}) {
  const request = {
    graph_id,
    thread_id,
    config: '{"configurable":{"checkpoint_ns":""}}',
    limit: 10,
    ...more,
  };
  return JSON.parse((await methods['state.history']?.(request, call.context)) ?? '');
}

async function update(
  call: TestCall,
  graph_id: string,
  values: unknown,
  more: { as_node?: string; place?: Place } = {},
) {
  const { place = {}, ...rest } = more;
  const config = JSON.stringify({ configurable: place });
  return await methods['state.update']?.(
    { graph_id, thread_id, config, values: JSON.stringify(values), ...rest },
    call.context,
  );
}

describe('the state of a thread', () => {
  it('has the public shape', async () => {
    const call = createCall();
    await startRun(methods, { graph_id: 'asks', input, metadata: { kind: 'test' } }, call);
    const state = await readState(call, 'asks');
    const id = { thread_id, checkpoint_id: expect.any(String), checkpoint_ns: '', checkpoint_map: null };
    const interrupts = [{ id: expect.any(String), value: { question: 'who?' } }];
    expect(state).toEqual({
      values: { steps: ['in'] },
      next: ['ask'],
      tasks: [
        {
          id: expect.any(String),
          name: 'ask',
          error: null,
          interrupts,
          path: ['__pregel_pull', 'ask'],
          checkpoint: null,
          state: null,
          result: null,
        },
      ],
      metadata: expect.objectContaining({
        source: 'loop',
        step: 0,
        parents: {},
        kind: 'test',
        run_attempt: 1,
        thread_id,
      }),
      created_at: expect.any(String),
      checkpoint: id,
      parent_checkpoint: id,
      interrupts,
    });
  });

  it('is empty without a checkpoint, and unknown at one that is not there', async () => {
    const call = createCall();
    expect(await readState(call, 'builder')).toMatchObject({
      values: {},
      next: [],
      tasks: [],
      checkpoint: null,
    });
    const refused = { name: 'Refusal', code: 'not_found' };
    await expect(readState(call, 'builder', { checkpoint_id: 'none' })).rejects.toMatchObject(refused);
    expect(await readHistory(call, 'builder')).toEqual([]);
  });

  it('has that of a subgraph where it waits', async () => {
    const call = createCall();
    await startRun(methods, { graph_id: 'nested', input, interrupt_before: ['inner'] }, call);
    const name = expect.stringMatching(/^inner:/);
    const short = await readState(call, 'nested');
    expect(short.tasks[0].checkpoint).toEqual({ thread_id, checkpoint_ns: name });
    const whole = await readState(call, 'nested', {}, true);
    expect(whole.tasks[0].state).toMatchObject({ values: {}, next: [] });
  });

  it('is read back in time, in pages and by metadata', async () => {
    const call = createCall();
    await startRun(methods, { graph_id: 'builder', input }, call);
    const all = await readHistory(call, 'builder');
    const steps = (states: { metadata: { step: number } }[]): number[] =>
      states.map(({ metadata }) => metadata.step);
    expect(steps(all)).toEqual([2, 1, 0, -1]);
    const [, second] = all;
    const { checkpoint_id } = second.checkpoint;
    expect(steps(await readHistory(call, 'builder', { limit: 1 }))).toEqual([2]);
    expect(
      steps(await readHistory(call, 'builder', { before: { configurable: { checkpoint_id } } })),
    ).toEqual([0, -1]);
    expect(steps(await readHistory(call, 'builder', { before: { checkpoint_id } }))).toEqual([0, -1]);
    expect(steps(await readHistory(call, 'builder', { filter: { source: 'input' } }))).toEqual([-1]);
    expect((await readState(call, 'builder', { checkpoint_id })).values).toEqual({ steps: ['in', 'first'] });
  });
});

describe('an update', () => {
  it('writes as a node, now or at a checkpoint', async () => {
    const call = createCall();
    await startRun(methods, { graph_id: 'builder', input }, call);
    const done = await update(call, 'builder', { steps: ['mine'] }, { as_node: 'first' });
    const state = JSON.parse(done?.state ?? '');
    expect([state.values.steps, state.next]).toEqual([['in', 'first', 'second', 'mine'], ['second']]);
    expect(state.checkpoint.checkpoint_id).toBe(done?.configurable['checkpoint_id']);
    expect(state.metadata).toMatchObject({ source: 'update', graph_id: 'builder' });
    const history = await readHistory(call, 'builder');
    const { checkpoint_id } = history.at(-2).checkpoint;
    const fork = await update(
      call,
      'builder',
      { steps: ['fork'] },
      { as_node: 'first', place: { checkpoint_id } },
    );
    expect(JSON.parse(fork?.state ?? '').values.steps).toEqual(['in', 'fork']);
  });

  it('writes without a node where only one can be meant, and clears', async () => {
    const call = createCall();
    await startRun(methods, { graph_id: 'builder', input }, call);
    const done = await update(call, 'builder', { steps: ['more'] });
    expect(JSON.parse(done?.state ?? '').values.steps.at(-1)).toBe('more');
    const end = await update(call, 'builder', null, { as_node: '__end__' });
    expect(JSON.parse(end?.state ?? '').next).toEqual([]);
  });

  it('is refused for a node that is not there', async () => {
    const call = createCall();
    await startRun(methods, { graph_id: 'builder', input }, call);
    const calls = call.memory.calls.length;
    const refused = { name: 'Refusal', code: 'invalid', message: expect.stringContaining('nobody') };
    await expect(update(call, 'builder', {}, { as_node: 'nobody' })).rejects.toMatchObject(refused);
    expect(call.memory.calls.slice(calls).every(({ method }) => method === 'checkpoint.get')).toBe(true);
  });
});
