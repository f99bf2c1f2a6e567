import { afterAll, beforeAll, expect, it } from 'vitest';
import { sql } from '../../../../src/platform/store/sql.ts';
import { postgresTraceStore } from '../../../../src/platform/traces/store/postgres-trace-store.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';
import { describeRunPages } from './run-page-checks.ts';
import { describeRunQueries } from './run-query-checks.ts';
import { describeTraceStore } from './trace-store-checks.ts';
import { addWorkspace, partOf, mergeRuns } from './trace-scene.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

const open = () => ({
  store: postgresTraceStore,
  database: database.store,
  addWorkspace: () => addWorkspace(database.owner.db),
});
describeTraceStore('PostgreSQL', open);
describeRunQueries('PostgreSQL', open);
describeRunPages('PostgreSQL', open);

it('two transactions that need the partition of a day take turns, and one of them makes it', async () => {
  const { store, owner } = database;
  const committed = Promise.withResolvers<void>();
  const isMade = Promise.withResolvers<unknown>();
  const make = sql<{ readonly made: boolean }>`select trace_make_partition('2031-05-06') as made`;
  const first = store.write(async (trx) => {
    isMade.resolve(await make.execute(trx));
    await committed.promise;
  });
  await isMade.promise;
  const second = store.write(async (trx) => (await make.execute(trx)).rows[0]?.made);
  const waiting = sql`select from pg_locks where locktype in ('advisory', 'relation') and not granted`;
  await expect.poll(async () => (await waiting.execute(owner.db)).rows.length).toBe(1);
  committed.resolve();
  await first;
  expect(await second).toBe(false);
});

it('the removal of a project and a request with its runs take turns, and neither of them fails', async () => {
  const { store, owner } = database;
  const workspaceId = await addWorkspace(owner.db);
  const parts = Array.from({ length: 5 }, () => partOf({}));
  const project = { workspaceId, id: parts[0]!.project.id };
  const merge = () => mergeRuns(store, workspaceId, parts);
  await merge();
  const places = sql`select from trace_run_places where workspace_id = ${workspaceId} order by id for update`;
  const [isLocked, isWaiting] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let attempts = 0;
  const merging = store.write(async (trx) => {
    attempts += 1;
    await places.execute(trx);
    isLocked.resolve();
    await isWaiting.promise;
    await sql`update trace_runs set name = 'changed' where workspace_id = ${workspaceId}`.execute(trx);
  });
  await isLocked.promise;
  const removing = postgresTraceStore.removeRuns(store.db, project);
  const waiting = sql`select from pg_locks where not granted`;
  await expect.poll(async () => (await waiting.execute(owner.db)).rows.length).toBeGreaterThan(0);
  isWaiting.resolve();
  await merging;
  expect(await removing).toBe(true);
  // One that the database has rolled back would be repeated.
  expect(attempts).toBe(1);
  for (const { id } of parts)
    expect(await postgresTraceStore.readRun(store.db, { workspaceId, id })).toBeUndefined();
});
