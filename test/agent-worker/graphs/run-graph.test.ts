// Runs of real graphs: commands, interrupts, cancellation, slow readers, and what must not leave a run.
import { describe, expect, it } from 'vitest';
import { type CallContext, CallCancelled } from '../../../src/agent-worker/method.ts';
import { createMemoryCheckpoints } from '../../support/agent-checkpoints.ts';
import { createCall, createRun, loadTestGraphs, startRun } from '../../support/agent-runs.ts';

const names = [
  'builder',
  'asks',
  'asksTwice',
  'fans',
  'nested',
  'fails',
  'values',
  'sees',
  'waits',
  'chat',
  'emits',
];
const methods = await loadTestGraphs(...names);
const input = { steps: ['in'] };
const stepsOf = (values: string): unknown => JSON.parse(values).steps;

describe('a run', () => {
  it('streams the values, and ends with the last', async () => {
    const { events, end } = await startRun(methods, { graph_id: 'builder', input });
    const steps = [['in'], ['in', 'first'], ['in', 'first', 'second']];
    expect(events).toEqual(steps.map((one) => ({ event: 'values', data: { steps: one } })));
    expect(end).toEqual({ status: 'success', values: JSON.stringify({ steps: steps[2] }), interrupts: '{}' });
  });

  it.each([0, -1, 0.5, '1'])('with %j steps at a time is refused', async (max) => {
    const run = startRun(methods, { graph_id: 'builder', input, config: { max_concurrency: max } });
    const message = '`config.max_concurrency` must be a whole number from 1.';
    await expect(run).rejects.toMatchObject({ name: 'Refusal', code: 'invalid', message });
  });

  it('goes on with the thread, and waits at an interrupt until it is resumed', async () => {
    const call = createCall();
    const asked = await startRun(methods, { graph_id: 'asks', input, stream_mode: ['updates'] }, call);
    expect(asked.end.status).toBe('interrupted');
    expect(asked.events.at(-1)).toMatchObject({ data: { __interrupt__: [{ value: { question: 'who?' } }] } });
    expect(Object.values(JSON.parse(asked.end.interrupts))).toMatchObject([
      [{ value: { question: 'who?' } }],
    ]);
    const run = { graph_id: 'asks', command: { resume: 'me' }, run_id: 'other' };
    const { end } = await startRun(methods, run, createCall(call.memory));
    expect([end.status, stepsOf(end.values), end.interrupts]).toEqual([
      'success',
      ['in', 'said me', 'end'],
      '{}',
    ]);
  });

  it.each(['async', 'exit'] as const)(
    'tells of an interrupt when it is stored, durability %s',
    async (durability) => {
      const call = createCall();
      const isStored: boolean[] = [];
      const { callServer } = call.memory;
      let [begun, stored] = [0, 0];
      const context: CallContext = {
        ...call.context,
        async callServer(method, params) {
          const isPut = method.startsWith('checkpoint.put');
          if (isPut) begun += 1;
          const result = await callServer(method, params);
          if (isPut) stored += 1;
          return result;
        },
        async emit(events) {
          if (events.some(({ data }) => data.includes('__interrupt__')))
            isStored.push(stored > 0 && stored === begun);
        },
      };
      const modes = ['updates', 'values'];
      await startRun(
        methods,
        { graph_id: 'asks', input, durability, stream_mode: modes },
        { ...call, context },
      );
      expect(isStored).toEqual([true, true]);
    },
  );

  it.each([0, '', false])('is resumed with %j', async (resume) => {
    const call = createCall();
    await startRun(methods, { graph_id: 'asks', input }, call);
    const run = { graph_id: 'asks', command: { resume, update: { steps: ['up'] } }, run_id: 'other' };
    const { end } = await startRun(methods, run, createCall(call.memory));
    expect([end.status, stepsOf(end.values)]).toEqual(['success', ['in', 'up', `said ${resume}`, 'end']]);
  });

  it('takes updates and targets of a command', async () => {
    const call = createCall();
    await startRun(methods, { graph_id: 'fans', input }, call);
    const command = { update: { steps: ['up'] }, goto: [{ node: 'work', input: { name: 'z' } }] };
    const { end } = await startRun(
      methods,
      { graph_id: 'fans', command, run_id: 'next' },
      createCall(call.memory),
    );
    expect(stepsOf(end.values)).toEqual(expect.arrayContaining(['up', 'work z']));
    const wrong = { graph_id: 'fans', command: { goto: [{ input: 1 }] }, run_id: 'wrong' };
    await expect(startRun(methods, wrong, createCall(call.memory))).rejects.toMatchObject({
      code: 'invalid',
    });
  });

  it('stops before and after nodes, and goes on without an input', async () => {
    const call = createCall();
    const before = await startRun(
      methods,
      { graph_id: 'builder', input, interrupt_before: ['second'] },
      call,
    );
    expect([before.end.status, stepsOf(before.end.values)]).toEqual(['interrupted', ['in', 'first']]);
    // Nobody is asked anything.
    expect(before.end.interrupts).toBe('{}');
    const rest = await startRun(methods, { graph_id: 'builder', run_id: 'rest' }, createCall(call.memory));
    expect([rest.end.status, stepsOf(rest.end.values)]).toEqual(['success', ['in', 'first', 'second']]);
    const after = await startRun(methods, { graph_id: 'builder', input, interrupt_after: '*' });
    expect([after.end.status, stepsOf(after.end.values)]).toEqual(['interrupted', ['in', 'first']]);
  });

  it('starts at the checkpoint that it names', async () => {
    const call = createCall();
    await startRun(methods, { graph_id: 'builder', input, interrupt_before: ['second'] }, call);
    const history = await methods['state.history']?.(
      {
        graph_id: 'builder',
        thread_id: createRun({ graph_id: 'builder' }).thread_id,
        config: '{}',
        limit: 1,
      },
      call.context,
    );
    const [{ checkpoint }] = JSON.parse(history ?? '[]');
    await startRun(methods, { graph_id: 'builder', run_id: 'one' }, createCall(call.memory));
    const again = {
      graph_id: 'builder',
      run_id: 'two',
      checkpoint: { checkpoint_id: checkpoint.checkpoint_id },
    };
    const { end } = await startRun(methods, again, createCall(call.memory));
    expect(stepsOf(end.values)).toEqual(['in', 'first', 'second']);
  });

  it.each(['sync', 'async', 'exit'] as const)(
    'stores its checkpoints with durability %s',
    async (durability) => {
      const call = createCall();
      const { end } = await startRun(methods, { graph_id: 'builder', input, durability }, call);
      expect(stepsOf(end.values)).toEqual(['in', 'first', 'second']);
      const puts = call.memory.calls.filter(({ method }) => method === 'checkpoint.put');
      expect(puts).toHaveLength(durability === 'exit' ? 1 : 4);
      const next = await startRun(
        methods,
        { graph_id: 'builder', input, run_id: 'n' },
        createCall(call.memory),
      );
      expect(stepsOf(next.end.values)).toHaveLength(6);
    },
  );

  it('fails with the error of the graph, after all that came before it', async () => {
    const call = createCall();
    const run = startRun(methods, { graph_id: 'fails', input, stream_mode: ['updates', 'tasks'] }, call);
    await expect(run).rejects.toMatchObject({ name: 'RangeError', message: 'Boo!' });
    expect(call.events.map(({ event }) => event)).toEqual(['tasks', 'updates', 'tasks', 'tasks', 'tasks']);
  });

  it('fails on an empty thread without an input', async () => {
    await expect(startRun(methods, { graph_id: 'builder' })).rejects.toMatchObject({
      name: 'EmptyInputError',
    });
  });

  it('shows a node its configurable and its context', async () => {
    const config = { configurable: { place: 'here', graph_auth_user: { identity: 'ann' }, 'x-token': 't' } };
    const run = { graph_id: 'sees', input: { seen: 0 }, config, context: { a: 1 }, hidden: ['x-token'] };
    const { end } = await startRun(methods, run);
    const seen = { user: 'ann', hasToken: true, place: 'here', context: { a: 1 } };
    expect(JSON.parse(end.values)).toEqual({ seen });
  });

  it('runs beside other runs of the same graph, each with its own thread', async () => {
    const runs = Array.from({ length: 8 }, async (_, index) => {
      const thread = { thread_id: `thread ${index}`, run_id: `run ${index}` };
      const call = createCall();
      await startRun(methods, { graph_id: 'asks', input: { steps: [String(index)] }, ...thread }, call);
      const command = { resume: `${index}` };
      const { end } = await startRun(
        methods,
        { graph_id: 'asks', command, ...thread },
        createCall(call.memory),
      );
      return stepsOf(end.values);
    });
    expect(await Promise.all(runs)).toEqual(runs.map((_, index) => [String(index), `said ${index}`, 'end']));
  });
});

describe('a run that is cancelled', () => {
  it.each(['async', 'exit'] as const)(
    'keeps its progress with durability %s, and stores nothing later',
    async (durability) => {
      const controller = new AbortController();
      const call = createCall(createMemoryCheckpoints(), controller.signal);
      const emit = call.context.emit;
      const context = {
        ...call.context,
        emit: async (events: Parameters<typeof emit>[0]) => {
          await emit(events);
          const isSlow =
            call.events.at(-1)?.event === 'tasks' && JSON.stringify(call.events.at(-1)).includes('slow');
          if (isSlow) controller.abort(new CallCancelled('interrupt'));
        },
      };
      const run = startRun(
        methods,
        { graph_id: 'waits', input, stream_mode: ['tasks'], durability },
        { ...call, context },
      );
      await expect(run).rejects.toThrow();
      const stored = call.memory.calls.length;
      const request = {
        graph_id: 'waits',
        thread_id: createRun({ graph_id: 'waits' }).thread_id,
        config: '{}',
      };
      const state = JSON.parse(
        (await methods['state.get']?.(request, createCall(call.memory).context)) ?? '',
      );
      expect([state.values.steps, state.next]).toEqual([['in', 'quick'], ['slow']]);
      await new Promise(setImmediate);
      expect(call.memory.calls).toHaveLength(stored + 1);
    },
  );

  it('does not begin when it is cancelled before', async () => {
    const call = createCall(undefined, AbortSignal.abort(new CallCancelled('rollback')));
    await expect(startRun(methods, { graph_id: 'builder', input }, call)).rejects.toMatchObject({
      reason: 'rollback',
    });
    expect(call.memory.calls).toEqual([]);
  });
});

describe('a slow reader', () => {
  it('slows the graph, and gets every event', async () => {
    const call = createCall();
    const { promise, resolve } = Promise.withResolvers<void>();
    const stuck = Promise.withResolvers<void>();
    const emit = call.context.emit;
    const context = {
      ...call.context,
      emit: async (events: Parameters<typeof emit>[0]) => {
        await emit(events);
        stuck.resolve();
        await promise;
      },
    };
    const run = startRun(
      methods,
      { graph_id: 'emits', input: { count: 0 }, stream_mode: ['custom'] },
      { ...call, context },
    );
    await stuck.promise;
    const puts = (): number => call.memory.calls.filter(({ method }) => method === 'checkpoint.put').length;
    // Turns of the event loop, in which a graph that does not wait does all of its steps.
    for (let turn = 0; turn < 400; turn += 1) await new Promise(setImmediate);
    expect(puts()).toBeLessThan(40);
    expect(call.events).toHaveLength(1);
    resolve();
    await run;
    expect(call.events.map(({ data }) => data)).toEqual(Array.from({ length: 500 }, (_, index) => index));
  });
});

describe('the names that are hidden', () => {
  const secret = 'T0KEN-of-ann';
  const configurable = {
    graph_auth_user: { identity: 'ann', token: secret },
    langgraph_auth_user: { identity: 'ann', token: secret },
    langgraph_auth_user_id: `ann ${secret}`,
    langgraph_auth_permissions: [secret],
    'x-authorization': secret,
    'user-agent': `agent ${secret}`,
    place: 'here',
  };
  const hidden = Object.keys(configurable).filter((name) => name !== 'place');
  const modes = [
    'values',
    'updates',
    'messages',
    'messages-tuple',
    'custom',
    'events',
    'debug',
    'tasks',
    'checkpoints',
  ];

  it.each([
    ['chat', { messages: [{ role: 'user', content: 'hi' }] }, modes],
    ['nested', input, modes],
    ['nested', input, modes.filter((mode) => mode !== 'events' && mode !== 'messages')],
    ['asks', input, modes],
    ['fans', input, modes],
  ])('are in no event and no checkpoint of %s', async (graph_id, graphInput, stream_mode) => {
    for (const stream_subgraphs of [false, true]) {
      const run = {
        graph_id,
        input: graphInput,
        stream_mode,
        stream_subgraphs,
        config: { configurable },
        hidden,
      };
      const call = createCall();
      const { text } = await startRun(methods, run, call);
      expect(text).not.toContain(secret);
      expect(text).toContain('here');
      const request = { graph_id, thread_id: createRun({ graph_id }).thread_id, config: '{}' };
      const state = await methods['state.get']?.({ ...request, subgraphs: true }, call.context);
      const history = await methods['state.history']?.({ ...request, limit: 10 }, call.context);
      expect(`${state}${history}`).not.toContain(secret);
    }
  });
});

describe('values of a graph', () => {
  it('are JSON as clients of the public server get it', async () => {
    const { events, end } = await startRun(methods, { graph_id: 'values', input: { value: 'x' } });
    const value = { date: '1970-01-01T00:00:00.000Z', nul: 'a\u0000b', error: {}, map: {} };
    expect(events.at(-1)?.data).toEqual({ value });
    expect(JSON.parse(end.values)).toEqual({ value });
  });

  it.each([
    ['bigint', 'The event `values` cannot be written as JSON: there is a BigInt at `value.deep.0`.'],
    ['circular', 'The event `values` cannot be written as JSON: an object contains itself at `value.again`.'],
  ])('that are no JSON fail the run: %s', async (value, message) => {
    const run = startRun(methods, { graph_id: 'values', input: { value }, durability: 'exit' });
    await expect(run).rejects.toThrow(message);
  });
});
