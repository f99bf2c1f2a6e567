// Cancels runs, within a transaction. One that has not begun ends at once, or is removed; one that was executed is asked to end
// by whoever executes it, or executes it next.
import { removeRunCheckpoints } from '../checkpoints/checkpoint-removal.ts';
import type { RunQueue } from '../queue/run-queue.ts';
import type { Cancellation } from './run-rows.ts';
import type { RunNotices } from '../streams/run-notices.ts';
import type { Transaction } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';

export type Cancelled = {
  /** That have ended, or are gone. */
  readonly ended: readonly string[];
  /** That were asked to end. */
  readonly asked: readonly string[];
};

type ToCancel = {
  readonly run_id: string;
  readonly thread_id: string;
  readonly status: string;
  readonly attempt: number;
  readonly is_temporary: boolean;
};

/** Of threads that the caller has locked. Runs that have ended are left as they are. */
export async function cancelRuns(
  trx: Transaction,
  runIds: readonly string[],
  action: Cancellation,
): Promise<Cancelled> {
  if (runIds.length === 0) return { ended: [], asked: [] };
  const found = await findUnended(trx, runIds);
  const fresh = found.filter(({ status, attempt }) => status === 'pending' && attempt === 0);
  const ended = new Set(fresh.map(({ run_id: id }) => id));
  const asked = found.flatMap(({ run_id: id }) => (ended.has(id) ? [] : [id]));
  await endFresh(trx, fresh, action);
  if (asked.length > 0)
    await trx
      .updateTable('agent_runs')
      // Who was asked to remove a run does so, whatever else was asked.
      .set({ cancellation: sql`case when cancellation = 'rollback' then cancellation else ${action} end` })
      .where('run_id', '=', anyOf(asked))
      .execute();
  return { ended: [...ended], asked };
}

/** One parameter, however many there are: a statement has 65,535 of them at most. */
function anyOf(ids: readonly string[]) {
  return sql<string>`any(${ids}::uuid[])`;
}

/** Locked in the order of their ids, as all do. */
function findUnended(trx: Transaction, runIds: readonly string[]): Promise<readonly ToCancel[]> {
  return trx
    .selectFrom('agent_runs as r')
    .innerJoin('agent_threads as t', 't.thread_id', 'r.thread_id')
    .select(['r.run_id', 'r.thread_id', 'r.status', 'r.attempt', 't.is_temporary'])
    .where('r.run_id', '=', anyOf(runIds))
    .where('r.status', 'in', ['pending', 'running'])
    .orderBy('r.run_id')
    .forNoKeyUpdate('r')
    .execute();
}

async function endFresh(trx: Transaction, runs: readonly ToCancel[], action: Cancellation): Promise<void> {
  if (runs.length === 0) return;
  const threads = runs.flatMap((one) => (one.is_temporary ? [one.thread_id] : []));
  const ids = runs.flatMap((one) => (one.is_temporary ? [] : [one.run_id]));
  if (threads.length > 0)
    await trx.deleteFrom('agent_threads').where('thread_id', '=', anyOf(threads)).execute();
  if (action === 'rollback') await trx.deleteFrom('agent_runs').where('run_id', '=', anyOf(ids)).execute();
  else {
    await trx.deleteFrom('agent_run_users').where('run_id', '=', anyOf(ids)).execute();
    await trx
      .updateTable('agent_runs')
      .set({ status: 'interrupted', ended_at: sql<Date>`now()`, updated_at: sql<Date>`now()` })
      .where('run_id', '=', anyOf(ids))
      .execute();
  }
}

/** Removes a run, whatever it is doing, with its checkpoints. Its attempt finds that it is gone. The caller has locked the thread. */
export async function deleteRun(trx: Transaction, runId: string, threadId: string): Promise<void> {
  // For update: it waits for the writes of its attempt, and the next ones are refused.
  await trx.selectFrom('agent_runs').select('run_id').where('run_id', '=', runId).forUpdate().execute();
  await removeRunCheckpoints(trx, threadId, runId);
  await trx.deleteFrom('agent_runs').where('run_id', '=', runId).execute();
}

/** Of threads whose runs may all have ended by what this transaction did. */
export async function settleIdle(trx: Transaction, threadIds: readonly string[]): Promise<void> {
  await sql`
    update agent_threads t set status = 'idle', error = null, updated_at = now()
    where thread_id = ${anyOf(threadIds)} and status = 'busy' and not exists (
      select from agent_runs r where r.thread_id = t.thread_id and r.status in ('pending', 'running'))
  `.execute(trx);
}

/** After the commit. */
export function announce(
  { queue, notices }: { readonly queue: RunQueue; readonly notices: Pick<RunNotices, 'send'> },
  { ended, asked }: Cancelled,
  action: Cancellation,
): void {
  for (const runId of ended) notices.send({ kind: 'ended', runId });
  for (const runId of asked) queue.cancel(runId, action);
  // Another run of the thread may be the next one now.
  if (ended.length > 0) queue.wake();
}
