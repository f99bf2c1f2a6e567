// A database that has reached the limit of its deployment: what would store more says so, runs end with the reason, and everything can be
// read and deleted.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ensureDefaultAssistants } from '../../../src/platform/agent-server/assistants/default-assistants.ts';
import { createThreadRoutes } from '../../../src/platform/agent-server/threads/thread-routes.ts';
import { WorkerError } from '../../../src/platform/agent-server/workers/worker-error.ts';
import { allowInserts, refuseInserts } from '../../../src/platform/runner/databases/insert-refusal.ts';
import { type Client, type Connection, connectOnce } from '../../../src/platform/store/database.ts';
import { type AgentApi, createAgentApi } from '../../support/agent-api.ts';
import { putOf } from './checkpoints/checkpoint-scene.ts';
import { createQueueScene, type QueueScene } from './queue/queue-scene.ts';

let api: AgentApi;
let scene: QueueScene;

beforeAll(async () => {
  [api, scene] = await Promise.all([createAgentApi(createThreadRoutes), createQueueScene()]);
});
afterAll(async () => {
  await scene?.[Symbol.asyncDispose]();
  await api?.[Symbol.asyncDispose]();
});

const REASON = 'the database has more than 7 MiB: delete threads';

const refuse = (client: Client) =>
  refuseInserts(client, { message: REASON, hint: 'it is a test', minBytes: 0 });
const change = (connection: Connection, work: (client: Client) => Promise<void>) =>
  connectOnce(connection, async (client) => {
    await client.query('set search_path = pg_catalog');
    await work(client);
  });

it('threads are read, changed and deleted, and a new one gets 507 with the reason', async () => {
  const { ownerConnection } = api.database;
  const create = () => api.ask('POST', '/threads', { body: {} });
  const { thread_id: id } = (await create()).body;
  await change(ownerConnection, refuse);
  const refused = await create();
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([507, null]);
  expect(refused.body).toMatchObject({ detail: 'The database has more than 7 MiB: delete threads' });
  api.calls['state.update'] = async (_, { checkpoints }) => {
    await checkpoints?.handle('checkpoint.put', putOf(id, '1')).catch(() => {
      throw new WorkerError({ kind: 'thrown', error: 'Error', message: 'of the worker' });
    });
    throw new Error('it was stored');
  };
  await api.database.store.db
    .updateTable('agent_threads')
    .set({ metadata: '{"graph_id":"agent"}' })
    .execute();
  expect((await api.ask('POST', `/threads/${id}/state`, { body: { values: {} } })).status).toBe(507);
  expect((await api.ask('GET', `/threads/${id}`)).status).toBe(200);
  expect((await api.ask('PATCH', `/threads/${id}`, { body: { metadata: { a: 1 } } })).status).toBe(200);
  expect((await api.ask('DELETE', `/threads/${id}`)).status).toBe(204);
  await change(ownerConnection, allowInserts);
  expect((await create()).status).toBe(200);
});

it('a process starts whose default assistants are there', async () => {
  const { store, ownerConnection } = api.database;
  const graphs = new Map([['agent', { description: null }]]) as Parameters<typeof ensureDefaultAssistants>[1];
  await ensureDefaultAssistants(store, graphs);
  await change(ownerConnection, refuse);
  expect(await ensureDefaultAssistants(store, graphs)).toEqual([]);
  const more = new Map([...graphs, ['another', { description: null }]]) as typeof graphs;
  await expect(ensureDefaultAssistants(store, more)).rejects.toMatchObject({ kind: 'storage_full' });
  await change(ownerConnection, allowInserts);
  expect(await ensureDefaultAssistants(store, more)).toEqual([]);
});

it('a run ends with the reason by its first attempt, and nothing waits for the database', async () => {
  const one = scene.addProcess();
  const threadId = await scene.addThread();
  const { row } = await scene.create({ threadId }, one);
  const executed = await one.started(row.run_id);
  await change(scene.database.ownerConnection, refuse);
  const putting = executed.options.checkpoints?.handle('checkpoint.put', putOf(threadId, '1'));
  const failure: Error = await Promise.resolve(putting).then(
    () => new Error('it was stored'),
    (error) => error,
  );
  expect(failure).toMatchObject({ kind: 'storage_full', message: expect.stringContaining('7 MiB') });
  executed.fail(failure);
  await one.ended(row.run_id);
  const found = scene.store.db.selectFrom('agent_runs').select(['status', 'attempt', 'output']);
  expect(await found.where('run_id', '=', row.run_id).execute()).toEqual([
    { status: 'error', attempt: 1, output: { error: 'StorageFull', message: failure.message } },
  ]);
  await change(scene.database.ownerConnection, allowInserts);
});
