// Statistics of projects: of their traces, which are their root runs; tokens and costs of a trace are in its runs that have them.
import type { Reader } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import type { ProjectStats, RunWindow } from '../trace-store.ts';
import { findProjectWindow } from './project-spans.ts';
import { startDeadline, withinTime } from './query-time.ts';

const CURE = 'leave include_stats out, ask for fewer projects, or use POST /runs/stats for a shorter time';

export async function readProjectStats(
  db: Reader,
  { workspaceId, ids }: { readonly workspaceId: string; readonly ids: readonly string[] },
): Promise<ReadonlyMap<string, ProjectStats>> {
  if (ids.length === 0) return new Map();
  const deadlineMs = startDeadline();
  const window = await findProjectWindow(db, { workspaceId, ids });
  if (window === undefined) return new Map();
  const rows = await withinTime(
    db,
    deadlineMs,
    (reader) => projectStatsOf(reader, { workspaceId, ids, window }).execute(),
    CURE,
  );
  return new Map(rows.map(({ session_id: id, ...row }) => [id, toStats(row)]));
}

/** The planner knows the bounds of the window, and leaves all other partitions out. */
export function projectStatsOf(
  db: Reader,
  {
    workspaceId,
    ids,
    window,
  }: {
    readonly workspaceId: string;
    readonly ids: readonly string[];
    readonly window: Required<RunWindow>;
  },
) {
  const isRoot = sql`r.is_root`;
  const firstToken = sql`extract(epoch from r.first_token_time - r.start_time)::double precision`;
  const percentile = (fraction: number, value: unknown) =>
    sql<
      number | null
    >`percentile_cont(${sql.lit(fraction)}) within group (order by ${value}) filter (where ${isRoot})`;
  const latency = sql`r.latency::double precision`;
  return db
    .selectFrom('trace_runs as r')
    .where('r.workspace_id', '=', workspaceId)
    .where('r.session_id', 'in', ids)
    .where(
      sql<boolean>`r.start_time >= ${window.from}::timestamptz and r.start_time < ${window.to}::timestamptz`,
    )
    .groupBy('r.session_id')
    .select([
      'r.session_id',
      sql<string>`count(*) filter (where ${isRoot})`.as('run_count'),
      percentile(0.5, latency).as('latency_p50'),
      percentile(0.99, latency).as('latency_p99'),
      percentile(0.5, firstToken).as('first_token_p50'),
      percentile(0.99, firstToken).as('first_token_p99'),
      sql<string>`coalesce(sum(r.total_tokens), 0)`.as('total_tokens'),
      sql<string>`coalesce(sum(r.prompt_tokens), 0)`.as('prompt_tokens'),
      sql<string>`coalesce(sum(r.completion_tokens), 0)`.as('completion_tokens'),
      sql<string | null>`sum(r.total_cost)`.as('total_cost'),
      sql<string | null>`sum(r.prompt_cost)`.as('prompt_cost'),
      sql<string | null>`sum(r.completion_cost)`.as('completion_cost'),
      sql<Date | null>`max(r.start_time)`.as('last_run_start_time'),
      sql<number | null>`avg((r.status = 'error')::int) filter (where ${isRoot})::double precision`.as(
        'error_rate',
      ),
      sql<
        number | null
      >`avg((r.first_token_time is not null)::int) filter (where ${isRoot})::double precision`.as(
        'streaming_rate',
      ),
    ]);
}

type Sums = 'run_count' | 'total_tokens' | 'prompt_tokens' | 'completion_tokens';
type Row = Omit<ProjectStats, Sums | 'last_run_start_time' | 'error_rate' | 'streaming_rate'> &
  Readonly<Record<Sums, string>> & {
    readonly last_run_start_time: Date | null;
    readonly error_rate: number | null;
    readonly streaming_rate: number | null;
  };

function toStats(row: Row): ProjectStats {
  return {
    ...row,
    run_count: Number(row.run_count),
    total_tokens: Number(row.total_tokens),
    prompt_tokens: Number(row.prompt_tokens),
    completion_tokens: Number(row.completion_tokens),
    last_run_start_time: row.last_run_start_time?.toISOString() ?? null,
    error_rate: row.error_rate ?? 0,
    streaming_rate: row.streaming_rate ?? 0,
  };
}
