// The checkpoints of a run that is rolled back, and those of a copied thread.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createCheckpointPort } from '../../../../src/platform/agent-server/checkpoints/checkpoint-port.ts';
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
