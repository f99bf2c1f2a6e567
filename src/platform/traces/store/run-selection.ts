// Which runs a query reads, as conditions in SQL on the table of runs: those of the workspace, in the partitions of the window.
import { sql } from '../../store/sql.ts';
import type { RunSelection, RunWindow } from '../trace-store.ts';
import { compileFilter } from './filter-sql.ts';
import type { Condition } from './test-sql.ts';

/** On the table as `r`. The planner knows the bounds of the window, and leaves all other partitions out. */
export function selectionOf(selection: RunSelection): Condition {
  return sql<boolean>`${'ids' in selection ? byIds(selection) : byFilters(selection)} and ${isOfProject(selection)}`;
}

/** Runs of a project that was deleted are removed by a job, and not found before. */
function isOfProject({ workspaceId }: RunSelection): Condition {
  return sql<boolean>`r.session_id <> all(array(
    select session_id from trace_removals where workspace_id = ${workspaceId}))`;
}

function byFilters(selection: Exclude<RunSelection, { readonly ids: readonly string[] }>): Condition {
  const { workspaceId, projects, window, filter, traceFilter, treeFilter } = selection;
  const conditions = [
    sql<boolean>`r.workspace_id = ${workspaceId}`,
    ...(projects === undefined ? [] : [ofProjects(projects)]),
    within('r', window),
    ...(filter === undefined ? [] : [compileFilter(filter, 'r')]),
  ];
  if (traceFilter !== undefined)
    conditions.push(sql<boolean>`exists (
      select from trace_runs root
      where root.workspace_id = ${workspaceId} and root.trace_id = r.trace_id and root.id = r.trace_id
        and ${within('root', widened(window, { before: 1, after: 0 }))} and ${compileFilter(traceFilter, 'root')})`);
  if (treeFilter !== undefined)
    conditions.push(sql<boolean>`exists (
      select from trace_runs other
      where other.workspace_id = ${workspaceId} and other.trace_id = r.trace_id
        and ${within('other', widened(window, { before: 1, after: 1 }))} and ${compileFilter(treeFilter, 'other')})`);
  return sql<boolean>`${sql.join(conditions, sql` and `)}`;
}

/** Their places lead to the partitions. */
function byIds({ workspaceId, ids }: Extract<RunSelection, { readonly ids: readonly string[] }>): Condition {
  return sql<boolean>`r.workspace_id = ${workspaceId} and (r.session_id, r.start_time, r.id) in (
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

function within(run: string, { from, to }: RunWindow): Condition {
  const start = sql.ref(`${run}.start_time`);
  const begun = sql<boolean>`${start} >= ${from}::timestamptz`;
  return to === undefined ? begun : sql<boolean>`${begun} and ${start} < ${to}::timestamptz`;
}

const DAY_MS = 24 * 3600 * 1000;
/** A year has four digits. */
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** By days: runs of a trace that runs at midnight are on both sides of it. */
function widened(
  { from, to }: RunWindow,
  days: { readonly before: number; readonly after: number },
): RunWindow {
  const shift = (time: string, by: number): string =>
    new Date(Math.min(Date.parse(time) + by * DAY_MS, LAST_MS)).toISOString();
  return {
    from: shift(from, -days.before),
    ...(to === undefined ? {} : { to: shift(to, days.after) }),
  };
}
