// The tables of the agent server accept what its types name, and nothing else.
import { afterAll, beforeAll, expect, it } from 'vitest';
import '../../../src/agent-worker/protocol/messages.ts';
import '../../../src/agent-worker/protocol/calls.ts';
import '../../../src/platform/agent-server/assistants/assistant-rows.ts';
import '../../../src/platform/agent-server/checkpoints/checkpoint-rows.ts';
import '../../../src/platform/agent-server/queue/run-queue.ts';
import '../../../src/platform/agent-server/streams/event-rows.ts';
import { MULTITASK_STRATEGIES, RUN_STATUSES } from '../../../src/platform/agent-server/runs/run-rows.ts';
import { THREAD_STATUSES } from '../../../src/platform/agent-server/threads/thread-rows.ts';
import { sql } from '../../../src/platform/store/sql.ts';
import { createTestDatabase, type TestDatabase } from '../../support/platform-database.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database?.[Symbol.asyncDispose]());

it.each([
  ['agent_threads', 'status', THREAD_STATUSES],
  ['agent_runs', 'status', RUN_STATUSES],
  ['agent_runs', 'multitask_strategy', MULTITASK_STRATEGIES],
] as const)('%s.%s', async (table, column, values) => {
  const { rows } = await sql<{ text: string }>`
    select pg_get_constraintdef(oid) as text from pg_constraint
    where conrelid = ${table}::regclass and conname = ${`${table}_${column}_check`}
  `.execute(database.store.db);
  const allowed = [...(rows[0]?.text ?? '').matchAll(/'(\w+)'/g)].map(([, value]) => value);
  expect(allowed.toSorted()).toEqual(values.toSorted());
});
