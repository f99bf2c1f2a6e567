// Which runs a query reads, as conditions in SQL on the table of runs: those of the workspace, in the partitions of the window.
import type { Reader } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import type { RunSelection, RunWindow } from '../trace-store.ts';
import { compileFilter } from './filter-sql.ts';
import { endOf } from './run-columns.ts';
import type { Condition } from './test-sql.ts';

type ById = Extract<RunSelection, { readonly ids: readonly string[] }>;
type ByFilter = Exclude<RunSelection, ById>;

/** The days of runs that are named by ids; undefined where there are none. */
export async function findWindow(db: Reader, { workspaceId, ids }: ById): Promise<RunWindow | undefined> {
  const places = db.selectFrom('trace_run_places').where('workspace_id', '=', workspaceId);
  const { first, last } = await places
    .where(sql<boolean>`id = any(${ids}::uuid[])`)
    .select([endOf('min').as('first'), endOf('max').as('last')])
    .executeTakeFirstOrThrow();
  if (first === null || last === null) return undefined;
  return { from: first, to: shift(last, 1) };
}

/** On the table as `r`. The planner knows the bounds of the window, and leaves all other partitions out. */
export function selectionOf(selection: RunSelection, window: RunWindow): Condition {
  const conditions = [
    sql<boolean>`r.workspace_id = ${selection.workspaceId}`,
    within('r', window),
    isOfProject(selection),
    ...('ids' in selection ? [hasPlace(selection)] : byFilters(selection, window)),
  ];
  return sql<boolean>`${sql.join(conditions, sql` and `)}`;
}

function byFilters(selection: ByFilter, window: RunWindow): readonly Condition[] {
  const { workspaceId, projects, filter, traceFilter, treeFilter } = selection;
  const ofTrace = (alias: string): Condition => sql<boolean>`
    ${sql.ref(`${alias}.workspace_id`)} = ${workspaceId} and ${sql.ref(`${alias}.trace_id`)} = r.trace_id
      and ${isNear(alias, window)}`;
  return [
    ...(projects === undefined ? [] : [ofProjects(projects)]),
    ...(filter === undefined ? [] : [compileFilter(filter, 'r')]),
    ...(traceFilter === undefined
      ? []
      : [
          sql<boolean>`exists (
            select from trace_runs root
            where ${ofTrace('root')} and root.id = r.trace_id and ${compileFilter(traceFilter, 'root')})`,
        ]),
    ...(treeFilter === undefined
      ? []
      : [
          sql<boolean>`exists (
            select from trace_runs other where ${ofTrace('other')} and ${compileFilter(treeFilter, 'other')})`,
        ]),
  ];
}

/** At most a day from the run: traces run at midnight. The bounds of the window leave the other partitions out. */
function isNear(alias: string, { from, to }: RunWindow): Condition {
  const start = sql.ref(`${alias}.start_time`);
  const window = { from: shift(from, -1), ...(to === undefined ? {} : { to: shift(to, 1) }) };
  return sql<boolean>`${within(alias, window)}
    and ${start} between r.start_time - interval '1 day' and r.start_time + interval '1 day'`;
}

function within(run: string, { from, to }: RunWindow): Condition {
  const start = sql.ref(`${run}.start_time`);
  const begun = sql<boolean>`${start} >= ${from}::timestamptz`;
  return to === undefined ? begun : sql<boolean>`${begun} and ${start} < ${to}::timestamptz`;
}

const DAY_MS = 24 * 3600 * 1000;
/** A year has four digits. */
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** By days. */
export function shift(time: string, days: number): string {
  return new Date(Math.min(Date.parse(time) + days * DAY_MS, LAST_MS)).toISOString();
}

/**
 * Runs of a project that was deleted are removed by a job, and not found before. Of `<> all (array(…))` the planner expects that it
 * leaves few runs, and sorts the whole window.
 */
function isOfProject({ workspaceId }: RunSelection): Condition {
  return sql<boolean>`r.session_id not in (
    select session_id from trace_removals where workspace_id = ${workspaceId})`;
}

/** Their places lead to the partitions. */
function hasPlace({ workspaceId, ids }: ById): Condition {
  return sql<boolean>`(r.session_id, r.start_time, r.id) in (
    select session_id, start_time, id from trace_run_places
    where workspace_id = ${workspaceId} and id = any(${ids}::uuid[]))`;
}

/** One is compared, not searched in a list: the order of the key is that of the page then. */
function ofProjects(projects: readonly string[]): Condition {
  const [only] = projects;
  return projects.length === 1
    ? sql<boolean>`r.session_id = ${only}::uuid`
    : sql<boolean>`r.session_id = any(${projects}::uuid[])`;
}
