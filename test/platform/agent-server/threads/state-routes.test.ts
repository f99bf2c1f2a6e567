// The states of threads, with a worker that a test plays.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createCheckpointPort } from '../../../../src/platform/agent-server/checkpoints/checkpoint-port.ts';
import { createThreadRoutes } from '../../../../src/platform/agent-server/threads/thread-routes.ts';
import { WorkerError } from '../../../../src/platform/agent-server/workers/worker-error.ts';
import { type AgentApi, createAgentApi } from '../../../support/agent-api.ts';
import { json, putOf } from '../checkpoints/checkpoint-scene.ts';

let api: AgentApi;

beforeAll(async () => {
  api = await createAgentApi(createThreadRoutes);
});
afterAll(() => api?.[Symbol.asyncDispose]());
beforeEach(() => {
  for (const name of Object.keys(api.calls)) delete api.calls[name as keyof typeof api.calls];
});

const addThread = (metadata: object = { graph_id: 'agent' }) => api.rows.addThread({ metadata });
const STATE = '{"values":{"a":"\\u0000"},"next":[],"tasks":[]}';

describe('GET state', () => {
  it('of a thread that never ran is empty', async () => {
    const thread = await addThread({});
    const { status, body } = await api.ask('GET', `/threads/${thread}/state`);
    expect([status, body]).toEqual([
      200,
      expect.objectContaining({ values: {}, next: [], tasks: [], checkpoint: null, parent_checkpoint: null }),
    ]);
    expect((await api.ask('GET', `/threads/${thread}/history`)).text).toBe('[]');
    expect((await api.ask('GET', `/threads/${thread}/state/${randomUUID()}`)).status).toBe(404);
  });

  it.each([
    ['GET', 'state', undefined, undefined, false],
    ['GET', 'state?subgraphs=true', undefined, undefined, true],
    [
      'GET',
      'state/1f0b8a3c-0000-6000-8000-000000000001',
      undefined,
      '1f0b8a3c-0000-6000-8000-000000000001',
      false,
    ],
    [
      'POST',
      'state/checkpoint',
      { checkpoint: { checkpoint_id: '7', checkpoint_ns: '' }, subgraphs: true },
      '7',
      true,
    ],
    ['POST', 'state/checkpoint', { checkpoint: null }, undefined, false],
  ] as const)(
    '%s %s %j is that of the graph, and its text passes through',
    async (method, path, body, checkpoint_id, subgraphs) => {
      const thread = await addThread();
      const { db } = api.database.store;
      const config = '{"tags":["x"],"configurable":{"model":"m","checkpoint_id":"old"}}';
      await db.updateTable('agent_threads').set({ config }).where('thread_id', '=', thread).execute();
      const asked = Promise.withResolvers<object>();
      api.calls['state.get'] = async (params) => {
        asked.resolve({ ...params, config: JSON.parse(params.config) });
        return STATE;
      };
      const found = await api.ask(method, `/threads/${thread}/${path}`, body === undefined ? {} : { body });
      expect([found.status, found.text]).toEqual([200, STATE]);
      const place = checkpoint_id === undefined ? {} : { checkpoint_id };
      const configurable = { model: 'm', thread_id: thread, checkpoint_ns: '', ...place };
      expect(await asked.promise).toEqual({
        ...{ graph_id: 'agent', thread_id: thread, subgraphs },
        config: { tags: ['x'], configurable },
      });
    },
  );

  it('has no user that a config of the thread names', async () => {
    const thread = await addThread();
    const faked = { graph_auth_user: { identity: 'ada' }, langgraph_auth_user_id: 'ada', __pregel_read: 1 };
    const { db } = api.database.store;
    const config = JSON.stringify({ configurable: { ...faked, model: 'm' } });
    await db.updateTable('agent_threads').set({ config }).where('thread_id', '=', thread).execute();
    const configs: unknown[] = [];
    api.calls['state.get'] = async (params) => {
      configs.push(JSON.parse(params.config));
      return STATE;
    };
    api.calls['state.history'] = async (params) => {
      configs.push(JSON.parse(params.config));
      return '[]';
    };
    await api.ask('GET', `/threads/${thread}/state`);
    await api.ask('GET', `/threads/${thread}/history`);
    const configurable = { model: 'm', thread_id: thread, checkpoint_ns: '' };
    expect(configs).toEqual([{ configurable }, { configurable }]);
  });

  it('is asked for as whoever calls', async () => {
    const thread = await addThread({ graph_id: 'agent', owner: 'alice' });
    const configs: object[] = [];
    const note = ({ config }: { readonly config: string }) => configs.push(JSON.parse(config).configurable);
    api.calls['state.get'] = async (params) => (note(params), STATE);
    api.calls['state.history'] = async (params) => (note(params), '[]');
    api.calls['state.update'] = async (params) => (note(params), { configurable: {}, state: STATE });
    const state = `/threads/${thread}/state`;
    await api.ask('GET', state, { user: 'alice' });
    await api.ask('POST', `${state}/checkpoint`, { user: 'alice', body: {} });
    await api.ask('GET', `/threads/${thread}/history`, { user: 'alice' });
    await api.ask('POST', state, { user: 'alice', body: { values: {} } });
    const alice = { identity: 'alice', display_name: 'alice', is_authenticated: true, permissions: [] };
    const known = { langgraph_auth_user: alice, graph_auth_user: alice, graph_auth_user_id: 'alice' };
    expect(configs).toEqual(Array.from({ length: 4 }, () => expect.objectContaining(known)));
  });

  it('reads the checkpoints of its thread and writes none', async () => {
    const thread = await addThread();
    api.calls['state.get'] = async (_, { checkpoints }) => {
      const place = { thread_id: thread, checkpoint_ns: '' };
      expect(await checkpoints?.handle('checkpoint.get', place)).toBeNull();
      await checkpoints?.handle('checkpoint.put', putOf(thread, '1'));
      return STATE;
    };
    expect((await api.ask('GET', `/threads/${thread}/state`)).status).toBe(409);
  });

  it('uses the graph of the last run where the metadata names none', async () => {
    const thread = await addThread({});
    await api.rows.addRun(thread, { status: 'success', graphId: 'agent' });
    api.calls['state.get'] = async ({ graph_id }) => JSON.stringify({ values: graph_id });
    expect((await api.ask('GET', `/threads/${thread}/state`)).body.values).toBe('agent');
  });

  it('of a graph that is gone: 409', async () => {
    const thread = await addThread({ graph_id: 'removed' });
    expect((await api.ask('GET', `/threads/${thread}/state`)).status).toBe(409);
  });

  it.each([
    [new WorkerError({ kind: 'refused', code: 'not_found', message: 'There is no such checkpoint' }), 404],
    [new WorkerError({ kind: 'refused', code: 'invalid', message: 'as_node is unknown' }), 400],
    [new WorkerError({ kind: 'thrown', error: 'TypeError', message: 'no' }), 400],
    [new WorkerError('lost'), 503],
    [new WorkerError('blocked'), 503],
  ])('%s: %i', async (error, expected) => {
    const thread = await addThread();
    api.calls['state.get'] = async () => {
      throw error;
    };
    expect((await api.ask('GET', `/threads/${thread}/state`)).status).toBe(expected);
  });
});

describe('POST state', () => {
  const update = (thread: string, body: object, user?: string) =>
    api.ask('POST', `/threads/${thread}/state`, { body, ...(user === undefined ? {} : { user }) });

  it('writes a checkpoint by the worker, and what searches find', async () => {
    const thread = await addThread({ graph_id: 'agent', owner: 'alice' });
    const asked = Promise.withResolvers<object>();
    api.calls['state.update'] = async (params, { checkpoints }) => {
      asked.resolve({ ...params, config: JSON.parse(params.config) });
      await checkpoints?.handle(
        'checkpoint.put',
        putOf(thread, '1', { fresh: { a: '1' }, checkpoint: json({}) }),
      );
      const configurable = { thread_id: thread, checkpoint_ns: '', checkpoint_id: '1' };
      const tasks = [
        { id: 't', interrupts: [{ value: 1 }] },
        { id: 'u', interrupts: [] },
      ];
      return { configurable, state: JSON.stringify({ values: { a: 'x\0' }, next: ['b'], tasks }) };
    };
    const runId = await api.rows.addRun(thread);
    const lease = { runId, attempt: 1 };
    await createCheckpointPort(api.database.store, { threadId: thread, lease }).handle(
      'checkpoint.put',
      putOf(thread, '0'),
    );
    await api.database.store.db.deleteFrom('agent_runs').where('run_id', '=', runId).execute();
    const body = { values: { a: '\0', n: [1] }, as_node: 'node', checkpoint: { checkpoint_id: '0' } };
    const { status, body: updated } = await update(thread, body, 'alice');
    expect([status, updated]).toEqual([
      200,
      { checkpoint: { thread_id: thread, checkpoint_ns: '', checkpoint_id: '1' } },
    ]);
    expect(await asked.promise).toMatchObject({
      ...{ graph_id: 'agent', as_node: 'node', values: '{"a":"\\u0000","n":[1]}' },
      config: { configurable: { thread_id: thread, checkpoint_ns: '', checkpoint_id: '0' } },
    });
    const [announced] = api.updated.filter(({ threadId }) => threadId === thread);
    expect(JSON.parse(announced?.state ?? '{}')).toMatchObject({ values: { a: 'x\0' }, next: ['b'] });
    const read = (await api.ask('GET', `/threads/${thread}`)).body;
    expect(read).toMatchObject({ values: { a: 'x\0' }, interrupts: { t: [{ value: 1 }] }, status: 'idle' });
  });

  it('that another one has followed leaves to searches what that one has stored', async () => {
    const thread = await addThread();
    const port = createCheckpointPort(api.database.store, { threadId: thread });
    const write = async (id: string) => {
      await port.handle('checkpoint.put', putOf(thread, id));
      const checkpoint = { thread_id: thread, checkpoint_ns: '', checkpoint_id: id };
      return {
        configurable: checkpoint,
        state: JSON.stringify({ values: { by: id }, next: [], tasks: [], checkpoint }),
      };
    };
    api.calls['state.update'] = async () => {
      const first = await write('1');
      api.calls['state.update'] = () => write('2');
      expect((await update(thread, { values: {} })).status).toBe(200);
      return first;
    };
    expect((await update(thread, { values: {} })).status).toBe(200);
    expect((await api.ask('GET', `/threads/${thread}`)).body.values).toEqual({ by: '2' });
  });

  it('ends an interruption where nothing is left to do', async () => {
    const thread = await api.rows.addThread({ status: 'interrupted', metadata: { graph_id: 'agent' } });
    api.calls['state.update'] = async () => ({ configurable: {}, state: STATE });
    expect((await update(thread, { values: null })).status).toBe(200);
    expect((await api.ask('GET', `/threads/${thread}`)).body.status).toBe('idle');
  });

  it.each(['pending', 'running'] as const)('while a run is %s: 409, and nothing is asked', async (status) => {
    const thread = await addThread();
    await api.rows.addRun(thread, { status });
    expect((await update(thread, { values: {} })).status).toBe(409);
  });

  // As the library reports what the server refuses: unchanged, or as an error of its own.
  it.each([
    ['refused', { kind: 'refused', code: 'invalid', message: 'The thread is gone' }],
    ['thrown', { kind: 'thrown', error: 'AggregateError', message: '' }],
  ] as const)('that a run overtakes, %s by the worker: 409, and nothing is written', async (_, failure) => {
    const thread = await addThread();
    const { db } = api.database.store;
    api.calls['state.update'] = async (_params, { checkpoints }) => {
      await db.updateTable('agent_threads').set({ status: 'busy' }).where('thread_id', '=', thread).execute();
      await checkpoints?.handle('checkpoint.put', putOf(thread, '1')).catch(() => {
        throw new WorkerError(failure);
      });
      throw new Error('it was written');
    };
    expect((await update(thread, { values: {} })).status).toBe(409);
    expect(
      await db.selectFrom('agent_checkpoints').select('thread_id').where('thread_id', '=', thread).execute(),
    ).toEqual([]);
  });

  it.each([
    { checkpoint_id: randomUUID() },
    { checkpoint: { checkpoint_id: 'a\0' } },
    { checkpoint: { checkpoint_id: '1', checkpoint_ns: 'other' } },
  ])('at a checkpoint that is not there, %j: 404, and no worker is asked', async (place) => {
    const { status, body } = await update(await addThread(), { values: {}, ...place });
    expect([status, body.detail]).toEqual([404, expect.stringContaining('Checkpoint not found')]);
  });

  it('without a graph: 400', async () => {
    expect((await update(await addThread({}), { values: {} })).status).toBe(400);
  });
});

describe('history', () => {
  it.each([
    ['GET', '', undefined, { limit: 10 }],
    ['GET', '?limit=3&before=7', undefined, { limit: 3, before: { configurable: { checkpoint_id: '7' } } }],
    ['POST', '', {}, { limit: 10 }],
    ['POST', '', { before: '7' }, { limit: 10, before: { configurable: { checkpoint_id: '7' } } }],
    [
      'POST',
      '',
      { before: { checkpoint_id: '7' } },
      { limit: 10, before: { configurable: { checkpoint_id: '7' } } },
    ],
    [
      'POST',
      '',
      { before: { configurable: { checkpoint_id: '7' } } },
      { limit: 10, before: { configurable: { checkpoint_id: '7' } } },
    ],
    ['POST', '', { limit: 2, metadata: { source: 'loop' } }, { limit: 2, filter: { source: 'loop' } }],
  ] as const)('%s%s %j', async (method, query, body, expected) => {
    const thread = await addThread();
    const asked = Promise.withResolvers<object>();
    api.calls['state.history'] = async (params) => {
      asked.resolve(params);
      return `[${STATE}]`;
    };
    const found = await api.ask(
      method,
      `/threads/${thread}/history${query}`,
      body === undefined ? {} : { body },
    );
    expect([found.status, found.text]).toEqual([200, `[${STATE}]`]);
    const config = expect.any(String);
    expect(await asked.promise).toEqual({ graph_id: 'agent', thread_id: thread, config, ...expected });
  });

  it.each([0, 1001])('limit %i: 422', async (limit) => {
    const thread = randomUUID();
    expect((await api.ask('GET', `/threads/${thread}/history?limit=${limit}`)).status).toBe(422);
    expect((await api.ask('POST', `/threads/${thread}/history`, { body: { limit } })).status).toBe(422);
  });
});
