// Threads: created, read, changed, copied and deleted.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCheckpointPort } from '../../../../src/platform/agent-server/checkpoints/checkpoint-port.ts';
import '../../../../src/platform/agent-server/metadata.ts';
import { createThreadRoutes } from '../../../../src/platform/agent-server/threads/thread-routes.ts';
import { type AgentApi, createAgentApi } from '../../../support/agent-api.ts';
import { putOf } from '../checkpoints/checkpoint-scene.ts';

let api: AgentApi;

beforeAll(async () => {
  api = await createAgentApi(createThreadRoutes);
});
afterAll(() => api?.[Symbol.asyncDispose]());

const create = async (body: object = {}, user?: string) =>
  (await api.ask('POST', '/threads', { body, ...(user === undefined ? {} : { user }) })).body;

describe('POST /threads', () => {
  it('creates one with the public shape', async () => {
    const created = await api.ask('POST', '/threads', { body: { metadata: { a: { b: 1 } } } });
    expect(created.status).toBe(200);
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(created.body).toEqual({
      thread_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      ...{ created_at: time, updated_at: time, state_updated_at: time },
      ...{ metadata: { a: { b: 1 } }, status: 'idle', config: {} },
    });
    const read = await api.ask('GET', `/threads/${created.body.thread_id}`);
    expect(read.body).toEqual(created.body);
  });

  it('needs no body', async () => {
    expect((await api.ask('POST', '/threads')).status).toBe(200);
  });

  it('with an id that exists: 409, or the one that is there', async () => {
    const thread_id = randomUUID();
    const first = await create({ thread_id, metadata: { a: 1 } });
    expect(first.thread_id).toBe(thread_id);
    expect((await api.ask('POST', '/threads', { body: { thread_id } })).status).toBe(409);
    const again = await create({ thread_id, metadata: { a: 2 }, if_exists: 'do_nothing' });
    expect(again).toEqual(first);
  });

  it('with an id of any version, in capitals too', async () => {
    const thread_id = 'BBBBBBBB-1111-1111-1111-111111111111';
    const made = await create({ thread_id });
    expect(made.thread_id).toBe(thread_id.toLowerCase());
    for (const id of [thread_id, thread_id.toLowerCase()])
      expect((await api.ask('GET', `/threads/${id}`)).body).toEqual(made);
    const found = await api.ask('POST', '/threads/search', { body: { ids: [thread_id] } });
    expect(found.body).toEqual([made]);
  });

  it.each([
    [{ thread_id: 'x' }, ['body', 'thread_id']],
    [{ metadata: { a: ['\0'] } }, ['body', 'metadata', 'a', 0]],
    [{ metadata: 1 }, ['body', 'metadata']],
    [{ if_exists: 'replace' }, ['body', 'if_exists']],
    [{ ttl: { ttl: 1, strategy: 'delete' } }, ['body', 'ttl']],
    [{ supersteps: [{ updates: [] }] }, ['body', 'supersteps']],
  ])('%j: 422', async (body, loc) => {
    const { status, body: said } = await api.ask('POST', '/threads', { body });
    expect(status).toBe(422);
    expect(said.detail[0]).toMatchObject({ loc, msg: expect.any(String), type: expect.any(String) });
  });
});

describe('PATCH', () => {
  it('merges metadata', async () => {
    const { thread_id } = await create({ metadata: { a: 1, b: { c: 1 } } });
    const patched = await api.ask('PATCH', `/threads/${thread_id}`, { body: { metadata: { b: 2, d: 3 } } });
    expect(patched.body.metadata).toEqual({ a: 1, b: 2, d: 3 });
  });

  it.each(['return=minimal', 'respond-async, return=minimal; x=1'])('Prefer: %s', async (prefer) => {
    const { thread_id } = await create();
    const ask = { body: { metadata: { a: 1 } }, headers: { prefer } };
    const patched = await api.ask('PATCH', `/threads/${thread_id}`, ask);
    expect([patched.status, patched.text]).toEqual([204, '']);
    expect((await api.ask('GET', `/threads/${thread_id}`)).body.metadata).toEqual({ a: 1 });
  });

  it('of the state, which old clients send', async () => {
    const { thread_id } = await create();
    const body = { metadata: { a: 1 } };
    expect((await api.ask('PATCH', `/threads/${thread_id}/state`, { body })).status).toBe(204);
    expect((await api.ask('GET', `/threads/${thread_id}`)).body.metadata).toEqual({ a: 1 });
  });
});

describe('DELETE', () => {
  it('with a running run, which is to end, and all that belongs to it', async () => {
    const { thread_id: thread } = await create();
    const run = await api.rows.addRun(thread);
    await api.rows.addRun(thread, { status: 'success' });
    const { db } = api.database.store;
    await db
      .insertInto('agent_run_events')
      .values({ run_id: run, id: '0', event: 'metadata', data: '{}' })
      .execute();
    const port = createCheckpointPort(api.database.store, {
      threadId: thread,
      lease: { runId: run, attempt: 1 },
    });
    await port.handle('checkpoint.put', putOf(thread, '1', { fresh: { a: '1' } }));
    expect((await api.ask('DELETE', `/threads/${thread}`)).status).toBe(204);
    expect(api.notices).toEqual([{ kind: 'ended', runId: run }]);
    for (const table of [
      'agent_runs',
      'agent_checkpoints',
      'agent_checkpoint_values',
      'agent_threads',
    ] as const)
      expect(
        await db.selectFrom(table).select('thread_id').where('thread_id', '=', thread).execute(),
      ).toEqual([]);
    expect(await db.selectFrom('agent_run_events').select('id').where('run_id', '=', run).execute()).toEqual(
      [],
    );
    await expect(port.handle('checkpoint.put', putOf(thread, '2'))).rejects.toMatchObject({
      kind: 'conflict',
    });
    expect((await api.ask('GET', `/threads/${thread}`)).status).toBe(404);
  });
});

describe('copy', () => {
  it('has the metadata and the checkpoints', async () => {
    const { thread_id: thread } = await create({ metadata: { graph_id: 'agent' } });
    const port = createCheckpointPort(api.database.store, { threadId: thread });
    await port.handle('checkpoint.put', putOf(thread, '1', { fresh: { a: '1' } }));
    const { status, body } = await api.ask('POST', `/threads/${thread}/copy`);
    expect([status, body.status, body.metadata]).toEqual([
      200,
      'idle',
      { graph_id: 'agent', thread_id: body.thread_id },
    ]);
    expect(body.thread_id).not.toBe(thread);
    const copied = createCheckpointPort(api.database.store, { threadId: body.thread_id });
    const place = { thread_id: body.thread_id, checkpoint_ns: '' };
    expect(await copied.handle('checkpoint.get', place)).toMatchObject({
      checkpoint_id: '1',
      versions: { a: '1' },
    });
    expect((await api.ask('POST', `/threads/${thread}/copy`, { body: {} })).status).toBe(200);
  });

  it('of nothing: 409', async () => {
    expect((await api.ask('POST', `/threads/${randomUUID()}/copy`)).status).toBe(409);
  });
});

const OF_ONE = [
  ['GET', '', 404],
  ['PATCH', '', 404],
  ['DELETE', '', 404],
  ['POST', '/copy', 409],
  ['GET', '/state', 404],
  ['GET', `/state/${randomUUID()}`, 404],
  ['POST', '/state/checkpoint', 404],
  ['POST', '/state', 404],
  ['PATCH', '/state', 404],
  ['GET', '/history', 404],
  ['POST', '/history', 404],
] as const;

describe.each(OF_ONE)('%s /threads/{id}%s', (method, path, absent) => {
  const ask = (thread: string, user?: string) =>
    api.ask(method, `/threads/${thread}${path}`, {
      ...(method === 'GET' || method === 'DELETE' ? {} : { body: {} }),
      ...(user === undefined ? {} : { user }),
    });

  it('of another user is as one that does not exist', async () => {
    const { thread_id } = await create({ metadata: { graph_id: 'agent', secret: 'x' } }, 'alice');
    const [hidden, missing] = [await ask(thread_id, 'bob'), await ask(randomUUID(), 'bob')];
    expect([hidden.status, hidden.text]).toEqual([absent, missing.text]);
    const kept = (await api.ask('GET', `/threads/${thread_id}`, { user: 'alice' })).body;
    expect(kept.metadata).toEqual({ graph_id: 'agent', secret: 'x', owner: 'alice' });
  });

  it('with a malformed id: 422', async () => {
    const { status, body } = await ask('x');
    expect(status).toBe(422);
    expect(body.detail[0].loc).toEqual(['path', 'thread_id']);
  });
});

it('an id of another user is a conflict, also with do_nothing', async () => {
  const { thread_id } = await create({}, 'alice');
  const body = { thread_id, if_exists: 'do_nothing' };
  expect((await api.ask('POST', '/threads', { body, user: 'bob' })).status).toBe(409);
});

it('metadata has a limit, also where it is merged bit by bit', async () => {
  const text = 'a'.repeat(200_000);
  const refused = { status: 422, body: { detail: [{ loc: ['body', 'metadata'], type: 'too_long' }] } };
  const large = { metadata: { a: text, b: text } };
  expect(await api.ask('POST', '/threads', { body: large })).toMatchObject(refused);
  const { thread_id } = await create({ metadata: { a: text } });
  for (const path of [`/threads/${thread_id}`, `/threads/${thread_id}/state`])
    expect(await api.ask('PATCH', path, { body: { metadata: { b: text } } })).toMatchObject(refused);
  expect((await api.ask('GET', `/threads/${thread_id}`)).body.metadata).toEqual({ a: text });
});

it('metadata of many members that is stored can be changed: the limit is of JSON without spaces', async () => {
  const metadata = Object.fromEntries(Array.from({ length: 23_000 }, (_, n) => [`n${n}`, n % 10]));
  const { thread_id } = await create({ metadata });
  const changed = await api.ask('PATCH', `/threads/${thread_id}`, { body: { metadata: { n0: 1 } } });
  expect([changed.status, changed.body.metadata.n0]).toEqual([200, 1]);
});
