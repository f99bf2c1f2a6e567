// Stored events are removed a while after their run has ended, with the threads that existed for such a run alone.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { expireStreams } from '../../../../src/platform/agent-server/streams/stream-expiry.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';
import { countStored, createRun, numbered, startProcess, type TestProcess } from './streams-scene.ts';

let database: TestDatabase;
let process: TestProcess;

beforeAll(async () => {
  database = await createTestDatabase();
  process = await startProcess(database);
});
afterAll(async () => {
  await process?.[Symbol.asyncDispose]();
  await database?.[Symbol.asyncDispose]();
});

/** A run with two stored events that ended so long ago; that runs, without a number. */
async function storeRun(
  endedSecondsAgo?: number,
  isTemporary = false,
): Promise<{ runId: string; threadId: string }> {
  const { db } = process.store;
  const run = await createRun(process.store, { isResumable: true });
  await sql`update agent_threads set is_temporary = ${isTemporary} where thread_id = ${run.threadId}`.execute(
    db,
  );
  const writer = await process.streams.open(await process.claim(run.runId));
  await writer.write(numbered(0, 1));
  if (endedSecondsAgo === undefined) return run;
  await process.finish(run.runId);
  await writer.end();
  await sql`
    update agent_runs set ended_at = now() - ${endedSecondsAgo}::int * interval '1 second'
    where run_id = ${run.runId}`.execute(db);
  return run;
}

async function hasThread(threadId: string): Promise<boolean> {
  const { rows } = await sql`select from agent_threads where thread_id = ${threadId}`.execute(
    process.store.db,
  );
  return rows.length > 0;
}

it('removes what has ended long enough ago, and nothing else', async () => {
  const { store } = process;
  const [running, recent, old, recentTemporary, oldTemporary, deleted] = [
    await storeRun(),
    await storeRun(110),
    await storeRun(130),
    await storeRun(110, true),
    await storeRun(130, true),
    await storeRun(0),
  ];
  await sql`delete from agent_runs where run_id = ${deleted.runId}`.execute(store.db);
  expect(await expireStreams({ store, ttlSeconds: 120 })).toEqual({ events: 6, threads: 1 });
  const counts = [running, recent, old, recentTemporary, oldTemporary, deleted].map(({ runId }) =>
    countStored(store, runId),
  );
  expect(await Promise.all(counts)).toEqual([2, 2, 0, 2, 0, 0]);
  const threads = [running, old, recentTemporary, oldTemporary].map(({ threadId }) => hasThread(threadId));
  expect(await Promise.all(threads)).toEqual([true, true, true, false]);
});

it('leaves it to another process that does it already', async () => {
  const { store } = process;
  await storeRun(130);
  await database.store.write(async (trx) => {
    await sql`select pg_advisory_xact_lock(7412180018)`.execute(trx);
    expect(await expireStreams({ store, ttlSeconds: 120 })).toEqual({ events: 0, threads: 0 });
  });
  expect(await expireStreams({ store, ttlSeconds: 120 })).toEqual({ events: 2, threads: 0 });
});
