// Gives feedback that came before its run the project and the trace of that.
import { z } from '../../../base/schema.ts';
import type { Database } from '../../store/database.ts';
import { defineJob } from '../../store/job.ts';
import { sql } from '../../store/sql.ts';
import { postgresTraceStore } from '../store/postgres-trace-store.ts';
import type { TraceStore } from '../trace-store.ts';
import '../store/trace-rows.ts';

/** A run that has not come by then does not come any more: clients try again for minutes. */
const HOURS = 24;
const ROWS_OF_STEP = 1_000;

export const placeFeedback = defineJob({
  name: 'place-feedback',
  data: z.strictObject({}),
  ...{ retries: 0, delaySeconds: 0, timeoutSeconds: 600 },
  schedule: { everyMinutes: 1, data: {} },
  async run(_, { store: { db }, signal }) {
    const from = new Date(Date.now() - HOURS * 3_600_000).toISOString();
    let after: Step | undefined = { created: from, id: FIRST_ID };
    while (after !== undefined && !signal.aborted) after = await placeSome(db, postgresTraceStore, after);
  },
});

const FIRST_ID = '00000000-0000-0000-0000-000000000000';

/** With its microseconds: feedback of one request has one time. */
type Step = { readonly created: string; readonly id: string };

/** Returns where to go on; undefined after the last. */
async function placeSome(
  db: Database,
  store: Pick<TraceStore, 'locateRuns'>,
  after: Step,
): Promise<Step | undefined> {
  const rows = await db
    .selectFrom('trace_feedback')
    .select(['workspace_id', 'id', 'run_id', sql<string>`created_at::text`.as('created')])
    .where('session_id', 'is', null)
    .where('run_id', 'is not', null)
    .where(sql<boolean>`(created_at, id) > (${after.created}::timestamptz, ${after.id}::uuid)`)
    .orderBy('created_at')
    .orderBy('id')
    .limit(ROWS_OF_STEP)
    .execute();
  for (const [workspaceId, ofOne] of Map.groupBy(rows, ({ workspace_id }) => workspace_id)) {
    const ids = [...new Set(ofOne.map(({ run_id }) => run_id ?? ''))];
    const known = await store.locateRuns(db, { workspaceId, ids });
    for (const [runId, location] of known)
      await db
        .updateTable('trace_feedback')
        .set(location)
        .where('workspace_id', '=', workspaceId)
        .where('run_id', '=', runId)
        .where('session_id', 'is', null)
        .execute();
  }
  return rows.length < ROWS_OF_STEP ? undefined : rows.at(-1);
}
