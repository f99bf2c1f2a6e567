// Workspaces with a run that may begin, in the order in which workers look at them.
import type { Database, Store } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import type { Clock } from './clock.ts';

export type AdmissionLimits = {
  /** Exports of a workspace that run at once, and runs of an export. */
  readonly maxExports: number;
  readonly maxRuns: number;
};

/** Of one look for a run. Others look at other workspaces meanwhile. */
const MAX_WORKSPACES = 20;

/** Whether a workspace has a run that may begin, and none at work. */
export async function hasWaitingWorkspace(
  { db }: Pick<Store, 'db'>,
  { clock, limits }: { readonly clock: Clock; readonly limits: AdmissionLimits },
): Promise<boolean> {
  const [first] = await findWorkspaces(db, await clock(db), limits);
  return first?.at_work === 0;
}

type Candidate = {
  readonly workspace_id: string;
  /** Of its runs. */
  readonly at_work: number;
};

/**
 * Where a run may begin, before any lock; those first that have the fewest at work, and of them those whose last turn was longest ago: a
 * worker with few places would otherwise give all of them to the oldest exports. Runs that cannot begin are not read, however many there
 * are: an export that waits has all of its runs due.
 */
export async function findWorkspaces(
  db: Database,
  now: Date,
  { maxExports, maxRuns }: AdmissionLimits,
): Promise<readonly Candidate[]> {
  const { rows } = await sql<Candidate>`
    with working as (
      select workspace_id, export_id, count(*) as runs from export_runs where status = 'RUNNING' group by 1, 2
    ), busy as (
      select workspace_id, count(*) as exports from exports where status = 'RUNNING' group by 1
    ), waiting as (
      select e.workspace_id, min(e.created_at) as since
      from exports e
      join workspaces o on o.id = e.workspace_id
      left join working w on w.export_id = e.id
      left join busy b on b.workspace_id = e.workspace_id
      left join lateral (
        select true as is_due from export_runs x
        where e.status = 'RUNNING' and coalesce(w.runs, 0) < ${maxRuns}
          and x.workspace_id = e.workspace_id and x.export_id = e.id and x.status = 'CREATED' and x.due_at <= ${now}
        order by x.window_start limit 1
      ) r on true
      where e.status in ('CREATED', 'RUNNING')
        and (r.is_due or (e.status = 'CREATED' and coalesce(b.exports, 0) < ${maxExports}))
      group by 1
    )
    select workspace_id, (select coalesce(sum(w.runs), 0) from working w where w.workspace_id = q.workspace_id)::int as at_work
    from waiting q
    order by at_work,
      (select max(e.updated_at) from exports e
        where e.workspace_id = q.workspace_id and e.status not in ('CREATED', 'INTERVALSCHEDULED')) nulls first,
      since
    limit ${MAX_WORKSPACES}`.execute(db);
  return rows;
}
