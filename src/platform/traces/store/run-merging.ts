// Parts of runs into the rows of runs: COPY into a temporary table, then one merge. The place of a run is locked first, in the order
// of ids, so that two requests with parts of the same run take turns, and leave one row.
import { DomainError } from '../../../base/domain-error.ts';
import type { Transaction } from '../../store/database.ts';
import { codeOf } from '../../store/database-error.ts';
import { type CopyValue, copyRows } from '../../store/postgres/copy.ts';
import { sql } from '../../store/sql.ts';
import {
  bitOf,
  type PlacedPart,
  RUN_FIELDS,
  type RunField,
  runFieldNames,
  type RunValues,
} from '../runs/run-part.ts';
import type { MergedRuns } from '../trace-store.ts';
import { type ProjectSpan, widenSpans } from './project-spans.ts';

/** Its name has a version: a connection may be older than the program, behind a pooler. */
const STAGING = 'trace_run_staging_1';

const START_COLUMNS = ['start_time', 'trace_id', 'parent_run_id', 'parent_run_ids', 'dotted_order'] as const;
const VALUE_COLUMNS: readonly (keyof RunValues)[] = runFieldNames.flatMap((field) => RUN_FIELDS[field]);
const COPIED = [
  'id',
  'session_id',
  ...START_COLUMNS,
  ...VALUE_COLUMNS,
  'given',
  'patched',
  'session_rank',
  'start_rank',
] as const;

/** What a run has whose field no part has brought: the defaults of the columns. */
const DEFAULTS: Partial<Record<keyof RunValues, CopyValue>> = {
  ...{ name: '', run_type: 'chain', tags: '{}', inputs_text: '', outputs_text: '' },
  ...{ metadata: '{}', inputs_pairs: '{}', outputs_pairs: '{}' },
};

/** The partitions of the days must exist. Parts of the same run keep their locks until the commit. */
export async function mergeRuns(
  trx: Transaction,
  workspaceId: string,
  parts: readonly PlacedPart[],
): Promise<MergedRuns> {
  if (parts.length === 0) return { created: 0, updated: 0 };
  await sql`
    create temporary table if not exists ${sql.table(STAGING)}
      (like public.trace_runs including defaults, session_rank smallint not null, start_rank smallint not null)
      on commit delete rows`.execute(trx);
  await copyRows(trx, {
    ...{ table: STAGING, isTemporary: true },
    columns: ['workspace_id', ...COPIED],
    rows: toRows(workspaceId, parts),
  });
  const known = await placeRuns(trx);
  try {
    if (known.ids.length > 0) await updateRuns(trx, workspaceId, known);
    await insertRuns(trx, known);
  } catch (error) {
    throw toMissingDay(error);
  }
  await widenSpans(trx, workspaceId, known.spans);
  return { created: parts.length - known.ids.length, updated: known.ids.length };
}

/** check_violation without a constraint: the day has expired since the request was read. */
function toMissingDay(error: unknown): unknown {
  if (codeOf(error) !== '23514' || (error as { readonly constraint?: string }).constraint !== undefined)
    return error;
  const failure = new DomainError('unavailable', 'A day of these runs has just expired: try again', 1_000);
  failure.cause = error;
  return failure;
}

/** What is spooled is read for its row alone. */
async function* toRows(
  workspaceId: string,
  parts: readonly PlacedPart[],
): AsyncGenerator<readonly CopyValue[]> {
  for (const part of parts) {
    const spooled = Object.values(part.spooled ?? {});
    const read = spooled.length === 0 ? [] : await Promise.all(spooled.map((one) => one.read()));
    const values: RunValues = Object.assign({}, part.values, ...read);
    yield [workspaceId, ...toRow({ ...part, values })];
  }
}

function toRow({ id, project, start, values, given, patched }: PlacedPart): readonly CopyValue[] {
  return [
    ...[id, project.id, start.start_time, start.trace_id, start.parent_run_id],
    ...[toArray(start.parent_run_ids), start.dotted_order],
    ...VALUE_COLUMNS.map((column) => toCopied(values[column]) ?? DEFAULTS[column] ?? null),
    ...[given, patched, project.rank, start.rank],
  ];
}

function toCopied(value: RunValues[keyof RunValues]): CopyValue | undefined {
  if (value === undefined || typeof value === 'string' || Buffer.isBuffer(value)) return value;
  if (Array.isArray(value)) return toArray(value);
  if ('read' in value && typeof value.read === 'function') return { bytes: value.read() };
  return { json: value };
}

/** The text of an array. */
function toArray(texts: readonly string[]): string {
  return `{${texts.map((text) => `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`).join(',')}}`;
}

/** Runs that have a row already, and the window in which these are; and where the runs of each project are now. */
type Known = {
  readonly ids: readonly string[];
  readonly first: string | null;
  readonly last: string | null;
  readonly spans: readonly ProjectSpan[];
};

/** A place that is there is locked, and says afterwards where the row of the run is. */
async function placeRuns(trx: Transaction): Promise<Known> {
  const { rows } = await sql<Known>`
    with placed as (
      insert into trace_run_places as p (workspace_id, id, session_id, start_time, session_rank, start_rank)
      select workspace_id, id, session_id, start_time, session_rank, start_rank from ${sql.table(STAGING)} order by id
      on conflict (workspace_id, id) do update set
        last_session_id = p.session_id,
        last_start_time = p.start_time,
        last_start_rank = p.start_rank,
        session_id = case when excluded.session_rank > p.session_rank then excluded.session_id else p.session_id end,
        session_rank = greatest(excluded.session_rank, p.session_rank),
        start_time = case when excluded.start_rank > p.start_rank then excluded.start_time else p.start_time end,
        start_rank = greatest(excluded.start_rank, p.start_rank)
      returning id, session_id, start_time, last_start_time
    ), spans as (
      select session_id, min(start_time)::text as first, max(start_time)::text as last from placed group by session_id
    )
    select coalesce(array_agg(id), '{}') as ids, min(last_start_time)::text as first, max(last_start_time)::text as last,
      (select coalesce(json_agg(spans), '[]') from spans) as spans
    from placed where last_start_time is not null`.execute(trx);
  return rows[0] ?? { ids: [], first: null, last: null, spans: [] };
}

/**
 * A statement of its own, which sees what those have committed that the places were waited for. By keys, run by run: the planner
 * knows nothing of a temporary table, and would read all places of the workspace.
 */
async function updateRuns(trx: Transaction, workspaceId: string, { ids, first, last }: Known): Promise<void> {
  const better = sql`s.start_rank > p.last_start_rank`;
  const starts = START_COLUMNS.slice(1).map(
    (column) =>
      sql`${sql.ref(column)} = case when ${better} then ${sql.ref(`s.${column}`)} else ${sql.ref(`r.${column}`)} end`,
  );
  const values = runFieldNames.flatMap((field) =>
    RUN_FIELDS[field].map(
      (column) =>
        sql`${sql.ref(column)} = case when ${replaced(field)} then ${sql.ref(`s.${column}`)} else ${sql.ref(`r.${column}`)} end`,
    ),
  );
  await sql`
    select set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
      set_config('enable_mergejoin', 'off', true)`.execute(trx);
  await sql`
    update trace_runs r set
      session_id = p.session_id,
      start_time = p.start_time,
      ${sql.join([...starts, ...values])},
      given = r.given | s.given,
      patched = r.patched | s.patched
    from ${sql.table(STAGING)} s cross join lateral (
      select * from trace_run_places p where p.workspace_id = ${workspaceId} and p.id = s.id offset 0
    ) p
    where s.id = any(${ids}::uuid[])
      and r.workspace_id = ${workspaceId} and r.id = s.id
      and r.session_id = p.last_session_id and r.start_time = p.last_start_time
      and r.start_time between ${first}::timestamptz and ${last}::timestamptz`.execute(trx);
}

/** As `replaces` of `run-part.ts`. */
function replaced(field: RunField) {
  const bit = sql.lit(bitOf(field));
  return sql`s.given & ${bit} <> 0 and (r.patched & ${bit} = 0 or s.patched & ${bit} <> 0)`;
}

async function insertRuns(trx: Transaction, { ids }: Known): Promise<void> {
  const columns = sql.join(
    [...START_COLUMNS, ...VALUE_COLUMNS, 'given', 'patched'].map((name) => sql.ref(name)),
  );
  const values = sql.join(
    [...START_COLUMNS, ...VALUE_COLUMNS, 'given', 'patched'].map((name) => sql.ref(`s.${name}`)),
  );
  await sql`
    insert into trace_runs (workspace_id, id, session_id, ${columns})
    select s.workspace_id, s.id, s.session_id, ${values}
    from ${sql.table(STAGING)} s
    where ${ids.length === 0 ? sql`true` : sql`s.id <> all(${ids}::uuid[])`}`.execute(trx);
}
