// Statistics of selected runs, in one pass.
import type { Reader } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import type { RunSelection, RunStats } from '../trace-store.ts';
import { startDeadline, withinTime } from './query-time.ts';
import { findWindow, selectionOf } from './run-selection.ts';

export async function readRunStats(db: Reader, selection: RunSelection): Promise<RunStats> {
  const deadlineMs = startDeadline();
  const window = 'ids' in selection ? await findWindow(db, selection) : selection.window;
  const condition = window === undefined ? sql<boolean>`false` : selectionOf(selection, window);
  return toStats(
    await withinTime(db, deadlineMs, (reader) =>
      reader.selectFrom('trace_runs as r').where(condition).select(AGGREGATES).executeTakeFirstOrThrow(),
    ),
  );
}

const firstToken = sql`extract(epoch from r.first_token_time - r.start_time)::double precision`;
const latency = sql`r.latency::double precision`;

const percentile = (fraction: number, value: unknown) =>
  sql<number | null>`percentile_cont(${sql.lit(fraction)}) within group (order by ${value})`;
/** A cost of a run, not one between two. */
const cost = (fraction: number) =>
  sql<string | null>`percentile_disc(${sql.lit(fraction)}) within group (order by r.total_cost)`;

const AGGREGATES = [
  sql<string>`count(*)`.as('run_count'),
  percentile(0.5, latency).as('latency_p50'),
  percentile(0.99, latency).as('latency_p99'),
  percentile(0.5, firstToken).as('first_token_p50'),
  percentile(0.99, firstToken).as('first_token_p99'),
  sql<string>`coalesce(sum(r.total_tokens), 0)`.as('total_tokens'),
  sql<string>`coalesce(sum(r.prompt_tokens), 0)`.as('prompt_tokens'),
  sql<string>`coalesce(sum(r.completion_tokens), 0)`.as('completion_tokens'),
  percentile(0.5, sql`r.total_tokens`).as('median_tokens'),
  percentile(0.99, sql`r.total_tokens`).as('tokens_p99'),
  percentile(0.5, sql`r.prompt_tokens`).as('prompt_tokens_p50'),
  percentile(0.99, sql`r.prompt_tokens`).as('prompt_tokens_p99'),
  percentile(0.5, sql`r.completion_tokens`).as('completion_tokens_p50'),
  percentile(0.99, sql`r.completion_tokens`).as('completion_tokens_p99'),
  sql<string | null>`sum(r.total_cost)`.as('total_cost'),
  sql<string | null>`sum(r.prompt_cost)`.as('prompt_cost'),
  sql<string | null>`sum(r.completion_cost)`.as('completion_cost'),
  cost(0.5).as('cost_p50'),
  cost(0.99).as('cost_p99'),
  sql<string | null>`to_char(max(r.start_time) at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`.as(
    'last_run_start_time',
  ),
  sql<number | null>`avg((r.status = 'error')::int)::double precision`.as('error_rate'),
  sql<number | null>`avg((r.first_token_time is not null)::int)::double precision`.as('streaming_rate'),
] as const;

type Sums = 'run_count' | 'total_tokens' | 'prompt_tokens' | 'completion_tokens';

function toStats(row: Omit<RunStats, Sums> & Readonly<Record<Sums, string>>): RunStats {
  const { run_count, total_tokens, prompt_tokens, completion_tokens } = row;
  return {
    ...row,
    run_count: Number(run_count),
    total_tokens: Number(total_tokens),
    prompt_tokens: Number(prompt_tokens),
    completion_tokens: Number(completion_tokens),
  };
}
