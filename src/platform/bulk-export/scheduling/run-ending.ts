// What the end of an attempt changes: its run, which may get another attempt, and the export, which may end with it.
import type { Transaction } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import {
  type AttemptEnd,
  decideAfterAttempt,
  decideAfterRun,
  moveExport,
  moveRun,
  type RunStatus,
} from '../exports/export-states.ts';
import { addMs } from './clock.ts';
import { stopRuns } from './export-stopping.ts';
import { releaseCredentials } from './held-credentials.ts';
import type { LeasedRun } from './run-lease.ts';
import { lockExportsOf, wakeWorkers } from './workspace-turn.ts';

export type RetryRules = { readonly maxRetries: number; readonly retryDelayMs: number };

export type Ended = {
  readonly status: RunStatus;
  /** Of the attempt that ended. */
  readonly retryNumber: number;
};

type Ending = LeasedRun & { readonly workspaceId: string; readonly now: Date; readonly rules: RetryRules };

/** Undefined: its lease is lost, and nothing is changed. */
export async function endAttempt(
  trx: Transaction,
  { workspaceId, runId, leaseId, now, rules }: Ending,
  end: AttemptEnd,
): Promise<Ended | undefined> {
  if (!(await lockExportsOf(trx, workspaceId))) return undefined;
  const run = await trx
    .selectFrom('export_runs')
    .select(['export_id', 'destination_id', 'retry_number', 'interruptions', 'status'])
    .where('id', '=', runId)
    .where('lease_id', '=', leaseId)
    .forUpdate()
    .executeTakeFirst();
  if (run === undefined) return undefined;
  const { export_id: exportId, retry_number: retryNumber } = run;
  const { move, isRetry, waits } = decideAfterAttempt(end, { retryNumber, maxRetries: rules.maxRetries });
  const status = moveRun(run.status, move);
  if (status === undefined) return undefined;
  const pauseOf = (): number => {
    if (end.is === 'preempted') return 0;
    return waits ? rules.retryDelayMs : pauseAfter(run.interruptions, rules);
  };
  await trx
    .updateTable('export_runs')
    .set({
      ...{ status, lease_id: null, lease_until: null, attempt_at: null, updated_at: now },
      ...(end.is === 'failed' ? { errors: withError(retryNumber, end.message) } : {}),
      ...(end.is === 'interrupted' || end.is === 'preempted'
        ? { interruptions: sql<number>`interruptions + 1` }
        : {}),
      ...(isRetry ? { retry_number: retryNumber + 1 } : {}),
      ...(move === 'requeue' ? { due_at: addMs(now, pauseOf()) } : { finished_at: now }),
    })
    .where('id', '=', runId)
    .execute();
  if (move !== 'requeue') await concludeExport(trx, { workspaceId, exportId, now });
  await releaseCredentials(trx, run.destination_id);
  await wakeWorkers(trx, workspaceId);
  return { status, retryNumber };
}

/** By chance, or by a deployment: those of a run that ends its worker itself are more. */
const MAX_INTERRUPTIONS = 5;
const MAX_PAUSE_FACTOR = 16;

/** Who had so many interruptions before. A run that ends its worker ends the runs of others with it: they get the time in between. */
function pauseAfter(interruptions: number, { retryDelayMs }: RetryRules): number {
  const more = interruptions - MAX_INTERRUPTIONS;
  return more < 0 ? 0 : retryDelayMs * Math.min(2 ** more, MAX_PAUSE_FACTOR);
}

function withError(retryNumber: number, message: string) {
  const added = JSON.stringify({ [`retry_${retryNumber}`]: message });
  return sql<string>`coalesce(errors, '{}'::jsonb) || ${added}::jsonb`;
}

type OfExport = { readonly workspaceId: string; readonly exportId: string; readonly now: Date };

async function concludeExport(trx: Transaction, { workspaceId, exportId, now }: OfExport): Promise<void> {
  const { status } = await trx
    .selectFrom('exports')
    .select('status')
    .where('id', '=', exportId)
    .executeTakeFirstOrThrow();
  const runs = await trx
    .selectFrom('export_runs')
    .select([
      sql<number>`(count(*) filter (where status = 'FAILED'))::int`.as('failed'),
      sql<number>`(count(*) filter (where status in ('CREATED', 'RUNNING')))::int`.as('unfinished'),
    ])
    .where('workspace_id', '=', workspaceId)
    .where('export_id', '=', exportId)
    .executeTakeFirstOrThrow();
  const move = decideAfterRun(runs);
  const next = move && moveExport(status, move);
  if (next === undefined) return;
  if (next === 'FAILED') await stopRuns(trx, { workspaceId, exportId, now, move: 'cancel' });
  await trx
    .updateTable('exports')
    .set({ status: next, updated_at: now, finished_at: now })
    .where('id', '=', exportId)
    .execute();
}
