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

/** Workspaces take turns: one with many does not keep the feedback of others waiting. */
export const placeFeedback = defineJob({
  name: 'place-feedback',
  data: z.strictObject({}),
  ...{ retries: 0, delaySeconds: 0, timeoutSeconds: 600 },
  schedule: { everyMinutes: 1, data: {} },
  async run(_, { store: { db }, signal }) {
    const created = new Date(Date.now() - HOURS * 3_600_000).toISOString();
    const workspaces = await findWorkspaces(db);
    let steps: readonly Step[] = workspaces.map((workspaceId) => ({ workspaceId, created, id: FIRST_ID }));
    while (steps.length > 0) {
      const next: Step[] = [];
      for (const step of steps) {
        if (signal.aborted) return;
        next.push(...(await placeSome(db, postgresTraceStore, step)));
      }
      steps = next;
    }
  },
});

const FIRST_ID = '00000000-0000-0000-0000-000000000000';

/** With its microseconds: feedback of one request has one time. */
type Step = { readonly workspaceId: string; readonly created: string; readonly id: string };

/** Each is looked up in the index: of one workspace there may be a million. */
async function findWorkspaces(db: Database): Promise<readonly string[]> {
  const { rows } = await sql<{ id: string }>`
    with recursive known as (
      (select workspace_id as id from trace_feedback where session_id is null and run_id is not null
        order by workspace_id limit 1)
      union all
      select (select f.workspace_id from trace_feedback f
        where f.session_id is null and f.run_id is not null and f.workspace_id > known.id
        order by f.workspace_id limit 1)
      from known where known.id is not null
    ) select id from known where id is not null`.execute(db);
  return rows.map(({ id }) => id);
}

/** Returns where to go on; nothing after the last. */
async function placeSome(
  db: Database,
  store: Pick<TraceStore, 'locateRuns'>,
  { workspaceId, created, id }: Step,
): Promise<readonly Step[]> {
  const rows = await db
    .selectFrom('trace_feedback')
    .select(['id', 'run_id', sql<string>`created_at::text`.as('created')])
    .where('workspace_id', '=', workspaceId)
    .where('session_id', 'is', null)
    .where('run_id', 'is not', null)
    .where(sql<boolean>`(created_at, id) > (${created}::timestamptz, ${id}::uuid)`)
    .orderBy('created_at')
    .orderBy('id')
    .limit(ROWS_OF_STEP)
    .execute();
  const ids = [...new Set(rows.map(({ run_id }) => run_id ?? ''))];
  const known = [...(await store.locateRuns(db, { workspaceId, ids }))];
  await sql`
    update trace_feedback f set trace_id = k.trace_id, session_id = k.session_id
    from unnest(
      ${known.map(([run]) => run)}::uuid[],
      ${known.map(([, { trace_id }]) => trace_id)}::uuid[],
      ${known.map(([, { session_id }]) => session_id)}::uuid[]) k(run_id, trace_id, session_id)
    where f.workspace_id = ${workspaceId} and f.run_id = k.run_id and f.session_id is null`.execute(db);
  const last = rows.at(-1);
  return rows.length < ROWS_OF_STEP || last === undefined
    ? []
    : [{ workspaceId, created: last.created, id: last.id }];
}
