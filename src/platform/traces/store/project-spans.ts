// Between which starts each project has runs: written with the merge of runs, so that lists and statistics of projects read no
// partition that has none of theirs.
import type { Database, Reader, Transaction } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import type { RunWindow } from '../trace-store.ts';
import './trace-rows.ts';

export type ProjectSpan = { readonly session_id: string; readonly first: string; readonly last: string };

/**
 * The last statement of a merge: whoever merges later runs of the same project waits for its commit. In the order of ids, so that two
 * requests for several projects take turns; a span that is wide enough is not locked.
 */
export async function widenSpans(
  trx: Transaction,
  workspaceId: string,
  spans: readonly ProjectSpan[],
): Promise<void> {
  await sql`
    insert into trace_project_spans as known (workspace_id, session_id, first_start_time, last_start_time)
    select ${workspaceId}::uuid, s.session_id, s.first, s.last
    from unnest(
      ${spans.map(({ session_id }) => session_id)}::uuid[],
      ${spans.map(({ first }) => first)}::timestamptz[],
      ${spans.map(({ last }) => last)}::timestamptz[]) s(session_id, first, last)
    where not exists (
      select from trace_project_spans wide
      where wide.workspace_id = ${workspaceId} and wide.session_id = s.session_id
        and wide.first_start_time <= s.first and wide.last_start_time >= s.last)
    order by s.session_id
    on conflict (workspace_id, session_id) do update set
      first_start_time = least(known.first_start_time, excluded.first_start_time),
      last_start_time = greatest(known.last_start_time, excluded.last_start_time)`.execute(trx);
}

/** Within which all runs of the projects are; undefined where they have none. */
export async function findProjectWindow(
  db: Reader,
  { workspaceId, ids }: { readonly workspaceId: string; readonly ids: readonly string[] },
): Promise<Required<RunWindow> | undefined> {
  const spans = db.selectFrom('trace_project_spans').where('workspace_id', '=', workspaceId);
  const { from, to } = await spans
    .where('session_id', 'in', ids)
    .select([
      sql<string | null>`min(first_start_time)::text`.as('from'),
      sql<string | null>`(max(last_start_time) + interval '1 microsecond')::text`.as('to'),
    ])
    .executeTakeFirstOrThrow();
  return from === null || to === null ? undefined : { from, to };
}

/** Of runs that are gone: those of days before this one. */
export async function narrowSpans(db: Database, day: string): Promise<void> {
  const time = sql<Date>`(${day}::timestamp at time zone 'utc')`;
  await db.deleteFrom('trace_project_spans').where('last_start_time', '<', time).execute();
  await sql`update trace_project_spans set first_start_time = ${time} where first_start_time < ${time}`.execute(
    db,
  );
}
