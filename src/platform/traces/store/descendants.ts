// The runs below those of a page, of which a trace may have any number: of each trace the first by their start, up to a limit of
// them all. A run that is below several of the page counts for each of them.
import type { Reader } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import type { Descendants, FoundRun } from '../trace-store.ts';
import { startDeadline, withinTime } from './query-time.ts';
import { shift } from './run-selection.ts';

export async function readDescendants(
  db: Reader,
  {
    workspaceId,
    runs,
    limit,
    deadlineMs = startDeadline(),
  }: {
    readonly workspaceId: string;
    readonly runs: readonly FoundRun[];
    readonly limit: number;
    readonly deadlineMs?: number;
  },
): Promise<ReadonlyMap<string, Descendants>> {
  const found = new Map(runs.map(({ id }) => [id, { direct: [] as string[], all: [] as string[] }]));
  if (runs.length === 0) return found;
  const traces = [...new Set(runs.map(({ trace_id }) => trace_id))];
  for (const { id, ancestor_id, is_direct } of await readTraces(db, {
    ...{ workspaceId, traces, runs, deadlineMs },
    limit: Math.max(1, Math.floor(limit / traces.length)),
  })) {
    if (is_direct) found.get(ancestor_id)?.direct.push(id);
    found.get(ancestor_id)?.all.push(id);
  }
  return found;
}

/** A run below one of the page. */
type Child = { readonly id: string; readonly ancestor_id: string; readonly is_direct: boolean };

/**
 * Runs start after those above them; clocks of clients may say otherwise, and traces run at midnight. Of those above, which may be a
 * thousand for each run, the database returns the runs of the page alone.
 */
function readTraces(
  db: Reader,
  {
    workspaceId,
    traces,
    runs,
    limit,
    deadlineMs,
  }: {
    readonly workspaceId: string;
    readonly traces: readonly string[];
    readonly runs: readonly FoundRun[];
    readonly limit: number;
    readonly deadlineMs: number;
  },
): Promise<readonly Child[]> {
  const times = runs.map(({ start_time }) => start_time).toSorted();
  const children = sql<Child>`
    (select c.* from unnest(${traces}::uuid[]) t(id) cross join lateral (
      select k.id, a.id as ancestor_id, a.id = k.parent_run_id as is_direct, k.start_time from (
        select id, parent_run_id, parent_run_ids, start_time from trace_runs
        where workspace_id = ${workspaceId} and trace_id = t.id and parent_run_id is not null
          and start_time >= ${shift(times.at(0) ?? '', -1)}::timestamptz
          and start_time < ${shift(times.at(-1) ?? '', 2)}::timestamptz
        order by start_time, id limit ${limit}) k
      cross join lateral (
        select distinct above.id from unnest(k.parent_run_ids) above(id)
        where above.id = any(${runs.map(({ id }) => id)}::uuid[])) a
      order by k.start_time, k.id limit ${limit}) c)`;
  return withinTime(db, deadlineMs, (reader) =>
    reader
      .selectFrom(children.as('c'))
      .select(['c.id', 'c.ancestor_id', 'c.is_direct'])
      .orderBy(sql`start_time`)
      .orderBy('c.id')
      .execute(),
  );
}
