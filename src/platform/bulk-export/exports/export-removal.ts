// Removes the exports of workspaces that are gone, and their runs, in steps: each statement ends soon, however many there are.
import { z } from '../../../base/schema.ts';
import type { Database } from '../../store/database.ts';
import { defineJob } from '../../store/job.ts';
import { sql } from '../../store/sql.ts';

/** Of one statement. */
const STEP_ROWS = 2_000;

type Step = (db: Database, workspaceId: string) => Promise<number>;

const removeRuns: Step = (db, workspaceId) =>
  countOf(
    sql`delete from export_runs where id in
      (select id from export_runs where workspace_id = ${workspaceId} limit ${STEP_ROWS}) returning 1`,
    db,
  );
const removeChildren: Step = (db, workspaceId) =>
  countOf(
    sql`delete from exports where id in
      (select id from exports where workspace_id = ${workspaceId} and source_id is not null limit ${STEP_ROWS}) returning 1`,
    db,
  );
const removeOthers: Step = (db, workspaceId) =>
  countOf(
    sql`delete from exports where id in
      (select id from exports where workspace_id = ${workspaceId} limit ${STEP_ROWS}) returning 1`,
    db,
  );

async function countOf(statement: ReturnType<typeof sql>, db: Database): Promise<number> {
  return (await statement.execute(db)).rows.length;
}

export const removeExports = defineJob({
  name: 'remove-exports',
  data: z.strictObject({}),
  ...{ retries: 3, delaySeconds: 30, timeoutSeconds: 3_600 },
  schedule: { everyMinutes: 1, data: {} },
  async run(_, { store: { db }, signal }) {
    const removals = await db
      .selectFrom('export_removals')
      .select('workspace_id')
      .orderBy('deleted_at')
      .execute();
    for (const { workspace_id: workspaceId } of removals) {
      // A row takes those with it that refer to it: they go before it.
      for (const step of [removeRuns, removeChildren, removeOthers])
        while (!signal.aborted && (await step(db, workspaceId)) > 0);
      if (signal.aborted) return;
      // The removal last: an attempt that ends before is repeated.
      await db.deleteFrom('export_removals').where('workspace_id', '=', workspaceId).execute();
    }
  },
});
