// The checkpoints of a run that is rolled back, and those of a copied thread.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createCheckpointPort } from '../../../../src/platform/agent-server/checkpoints/checkpoint-port.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import {
  copyCheckpoints,
  removeRunCheckpoints,
} from '../../../../src/platform/agent-server/checkpoints/checkpoint-removal.ts';
import { type AgentRows, createAgentRows } from '../../../support/agent-rows.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';
import { putOf, writesOf } from './checkpoint-scene.ts';

let database: TestDatabase;
let rows: AgentRows;

beforeAll(async () => {
  database = await createTestDatabase();
  rows = createAgentRows(database.store);
});
afterAll(() => database?.[Symbol.asyncDispose]());

/** Everything that is stored of a thread, in an order of its own. */
async function contentOf(threadId: string): Promise<readonly string[]> {
  const { db } = database.store;
  const [checkpoints, values, writes] = [
    await db.selectFrom('agent_checkpoints').selectAll().where('thread_id', '=', threadId).execute(),
    await db.selectFrom('agent_checkpoint_values').selectAll().where('thread_id', '=', threadId).execute(),
    await db.selectFrom('agent_checkpoint_writes').selectAll().where('thread_id', '=', threadId).execute(),
  ];
  const own = new Set(['thread_id', 'position']);
  const all: readonly object[] = [...checkpoints, ...values, ...writes];
  const texts = all.map((row) => JSON.stringify(row, (name, value) => (own.has(name) ? undefined : value)));
  return texts.toSorted();
}

async function runOn(threadId: string) {
  const runId = await rows.addRun(threadId);
  const port = createCheckpointPort(database.store, { threadId, lease: { runId, attempt: 1 } });
  const end = async () => {
    const set = { status: 'success' as const, lease_owner: null, lease_until: null };
    await database.store.db.updateTable('agent_runs').set(set).where('run_id', '=', runId).execute();
  };
  return { runId, port, end };
}

async function threadWithOneRun() {
  const threadId = await rows.addThread({ status: 'busy' });
  const first = await runOn(threadId);
  await first.port.handle('checkpoint.put', putOf(threadId, '1', { fresh: { a: '1', b: '1' } }));
  await first.port.handle('checkpoint.put_writes', writesOf(threadId, '1', 'task', { [-3]: 'interrupt' }));
  await first.end();
  return { threadId, first };
}

it('a run that is rolled back leaves the thread as it was', async () => {
  const { threadId, first } = await threadWithOneRun();
  const before = await contentOf(threadId);
  const second = await runOn(threadId);
  // Its writes to the checkpoint that it found, an interrupt in the place of the first one, and a checkpoint with a shared value.
  await second.port.handle(
    'checkpoint.put_writes',
    writesOf(threadId, '1', 'task', { [-3]: 'again', 0: 'x' }),
  );
  const fresh = putOf(threadId, '2', { fresh: { b: '2' }, parent_checkpoint_id: '1' });
  await second.port.handle('checkpoint.put', { ...fresh, versions: { a: '1', b: '2' } });
  await second.port.handle('checkpoint.put_writes', writesOf(threadId, '2', 'other', { 0: 'y' }));
  await second.end();
  expect(await contentOf(threadId)).not.toEqual(before);
  await database.store.write((trx) => removeRunCheckpoints(trx, threadId, second.runId));
  expect(await contentOf(threadId)).toEqual(before);
  await database.store.write((trx) => removeRunCheckpoints(trx, threadId, first.runId));
  expect(await contentOf(threadId)).toEqual([]);
});

it('a value that a later checkpoint has stays', async () => {
  const { threadId, first } = await threadWithOneRun();
  const second = await runOn(threadId);
  await second.port.handle('checkpoint.put', { ...putOf(threadId, '2'), versions: { a: '1' } });
  await database.store.write((trx) => removeRunCheckpoints(trx, threadId, first.runId));
  const found = await second.port.handle('checkpoint.get', { thread_id: threadId, checkpoint_ns: '' });
  expect(found?.values.map(({ channel }) => channel)).toEqual(['a']);
  expect(await contentOf(threadId)).toHaveLength(2);
});

it('a run of another thread has nothing to remove here', async () => {
  const { threadId, first } = await threadWithOneRun();
  const before = await contentOf(threadId);
  const other = await rows.addThread();
  await database.store.write((trx) => removeRunCheckpoints(trx, other, first.runId));
  expect(await contentOf(threadId)).toEqual(before);
});

it('a copy has all, and is independent', async () => {
  const { threadId, first } = await threadWithOneRun();
  const before = await contentOf(threadId);
  const copy = await rows.addThread();
  await database.store.write((trx) => copyCheckpoints(trx, threadId, copy));
  expect(await contentOf(copy)).toEqual(before);
  await database.store.write((trx) => removeRunCheckpoints(trx, threadId, first.runId));
  expect(await contentOf(copy)).toEqual(before);
});

it('a copy has the values of all its checkpoints, also where a run writes meanwhile', async () => {
  const { threadId, first } = await threadWithOneRun();
  const copy = await rows.addThread();
  const { store } = database;
  const writing = Promise.withResolvers<void>();
  const mayEnd = Promise.withResolvers<void>();
  // As a run that writes its next checkpoint between two statements of the copy.
  const run = store.write(async (trx) => {
    await sql`lock table agent_checkpoints in share mode`.execute(trx);
    writing.resolve();
    await mayEnd.promise;
    const value = Buffer.from('1');
    const channel = { thread_id: threadId, checkpoint_ns: '', channel: 'c', version: '1' };
    await trx
      .insertInto('agent_checkpoint_values')
      .values({ ...channel, type: 'json', value })
      .execute();
    const made = { thread_id: threadId, checkpoint_ns: '', checkpoint_id: '2', run_id: first.runId };
    const content = { checkpoint: value, metadata: value, searched_metadata: '{}', versions: '{"c": "1"}' };
    const types = { parent_checkpoint_id: '1', type: 'json', metadata_type: 'json' };
    await trx
      .insertInto('agent_checkpoints')
      .values({ ...made, ...content, ...types })
      .execute();
  });
  await writing.promise;
  const copying = store.write((trx) => copyCheckpoints(trx, threadId, copy));
  for (;;) {
    const { rows: locks } = await sql`
      select from pg_locks where not granted and relation = 'agent_checkpoints'::regclass`.execute(store.db);
    if (locks.length > 0) break;
  }
  mayEnd.resolve();
  await Promise.all([run, copying]);
  const port = createCheckpointPort(store, { threadId: copy, isReadOnly: true });
  const found = await port.handle('checkpoint.get', { thread_id: copy, checkpoint_ns: '' });
  expect(found).toMatchObject({ checkpoint_id: '2', values: [{ channel: 'c', version: '1' }] });
});
