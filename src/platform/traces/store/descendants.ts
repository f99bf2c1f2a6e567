// The runs below those of a page, of which a trace may have any number: of each trace the first by their start, up to a limit of
// them all.
import type { Reader } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import type { Descendants, FoundRun } from '../trace-store.ts';

export async function readDescendants(
  db: Reader,
  {
    workspaceId,
    runs,
    limit,
  }: { readonly workspaceId: string; readonly runs: readonly FoundRun[]; readonly limit: number },
): Promise<ReadonlyMap<string, Descendants>> {
  const found = new Map(runs.map(({ id }) => [id, { direct: [] as string[], all: [] as string[] }]));
  if (runs.length === 0) return found;
  const traces = [...new Set(runs.map(({ trace_id }) => trace_id))];
  for (const { id, parent_run_id, parent_run_ids } of await readTraces(db, {
    ...{ workspaceId, traces, runs },
    limit: Math.max(1, Math.floor(limit / traces.length)),
  })) {
    found.get(parent_run_id)?.direct.push(id);
    for (const ancestor of new Set(parent_run_ids)) found.get(ancestor)?.all.push(id);
  }
  return found;
}

type Child = {
  readonly id: string;
  readonly parent_run_id: string;
  readonly parent_run_ids: readonly string[];
};

/** Runs start after those above them; clocks of clients may say otherwise, and traces run at midnight. */
function readTraces(
  db: Reader,
  {
    workspaceId,
    traces,
    runs,
    limit,
  }: {
    readonly workspaceId: string;
    readonly traces: readonly string[];
    readonly runs: readonly FoundRun[];
    readonly limit: number;
  },
): Promise<readonly Child[]> {
  const times = runs.map(({ start_time }) => start_time).toSorted();
  const children = sql<Child>`
    (select c.* from unnest(${traces}::uuid[]) t(id) cross join lateral (
      select id, parent_run_id, parent_run_ids, start_time from trace_runs
      where workspace_id = ${workspaceId} and trace_id = t.id and parent_run_id is not null
        and start_time >= ${times.at(0)}::timestamptz - interval '1 day'
        and start_time < ${times.at(-1)}::timestamptz + interval '2 days'
      order by start_time, id limit ${limit}) c)`;
  return db
    .selectFrom(children.as('c'))
    .select(['c.id', 'c.parent_run_id', 'c.parent_run_ids'])
    .orderBy(sql`start_time`)
    .orderBy('c.id')
    .execute();
}
