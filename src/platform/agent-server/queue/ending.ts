// The end of a run, in one transaction: its status and output, what its thread shows, and no user of it any more. Written by the
// attempt alone that has the run; for any other it changes nothing.
import type { JsonText } from '../../../agent-worker/protocol/messages.ts';
import { removeRunCheckpoints } from '../checkpoints/checkpoint-removal.ts';
import { toSearchable } from '../json-for-search.ts';
import type { RunStatus } from '../runs/run-rows.ts';
import type { ThreadStatus } from '../threads/thread-rows.ts';
import type { Database, Store, Transaction } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import { defineStatement } from '../../store/statement.ts';
import type { Claim } from './claims.ts';

/** Of the thread, unless its next run follows at once. Values that are absent are not changed. */
export type ThreadOutcome = {
  readonly status: Exclude<ThreadStatus, 'busy'>;
  readonly values?: JsonText | undefined;
  readonly interrupts?: JsonText | undefined;
  /** `{error, message}` */
  readonly error?: JsonText | undefined;
};

export type Ending = {
  readonly status: Exclude<RunStatus, 'pending' | 'running'>;
  /** The last values, or `{error, message}`. */
  readonly output: JsonText | null;
  readonly thread: ThreadOutcome;
};

/** False: this attempt does not have the run any more. */
export function endRun(
  store: Pick<Store, 'write'>,
  owner: string,
  claim: Claim,
  ending: Ending,
): Promise<boolean> {
  return store.write(async (trx) => {
    if (!(await lockAttempt(trx, owner, claim))) return false;
    const { run_id: runId, thread_id: threadId } = claim;
    const { status, output, thread } = ending;
    if (claim.is_temporary && !claim.is_resumable) {
      await keepResult(trx, { runId, status, output });
      await trx.deleteFrom('agent_threads').where('thread_id', '=', threadId).execute();
      return true;
    }
    await finish(trx, { runId, status, output });
    await settleThread(trx, threadId, thread);
    return true;
  });
}

/** Removes the checkpoints of the run, which still runs: what the thread was before can then be read. */
export function removeProgress(store: Pick<Store, 'write'>, owner: string, claim: Claim): Promise<boolean> {
  return store.write(async (trx) => {
    if (!(await lockAttempt(trx, owner, claim))) return false;
    await removeRunCheckpoints(trx, claim.thread_id, claim.run_id);
    return true;
  });
}

/** Removes the run itself, as if it had never been. */
export function removeRun(
  store: Pick<Store, 'write'>,
  owner: string,
  claim: Claim,
  thread: ThreadOutcome,
): Promise<boolean> {
  return store.write(async (trx) => {
    if (!(await lockAttempt(trx, owner, claim))) return false;
    await removeRunCheckpoints(trx, claim.thread_id, claim.run_id);
    await trx.deleteFrom('agent_runs').where('run_id', '=', claim.run_id).execute();
    if (claim.is_temporary)
      await trx.deleteFrom('agent_threads').where('thread_id', '=', claim.thread_id).execute();
    else await settleThread(trx, claim.thread_id, thread);
    return true;
  });
}

/** The thread first, as those who create runs do. The lock waits for the writes of this attempt, and no other follows. */
async function lockAttempt(trx: Transaction, owner: string, claim: Claim): Promise<boolean> {
  const { run_id: runId, thread_id: threadId, attempt } = claim;
  await lockThread(trx, { threadId });
  return (await lockRun(trx, { runId, attempt, owner })).length > 0;
}

const lockThread = defineStatement('lock-agent-thread', (db, { threadId }: { readonly threadId: string }) =>
  db
    .selectFrom('agent_threads')
    .select('thread_id')
    .where('thread_id', '=', threadId)
    .forNoKeyUpdate()
    .compile(),
);

type Attempt = { readonly runId: string; readonly attempt: number; readonly owner: string };

const lockRun = defineStatement('lock-agent-run', (db, { runId, attempt, owner }: Attempt) =>
  db
    .selectFrom('agent_runs')
    .select('run_id')
    .where('run_id', '=', runId)
    .where('attempt', '=', attempt)
    .where('lease_owner', '=', owner)
    .where('status', '=', 'running')
    .forUpdate()
    .compile(),
);

type Result = { readonly runId: string; readonly status: RunStatus; readonly output: JsonText | null };

/** And the mapping of its user is gone. */
const finish = defineStatement('end-agent-run', (db, { runId, status, output }: Result) =>
  sql`
    with gone as (delete from agent_run_users where run_id = ${runId})
    update agent_runs
    set status = ${status}, output = ${output}::json, ended_at = now(), updated_at = now(), cancellation = null,
      lease_owner = null, lease_until = null
    where run_id = ${runId}`.compile(db),
);

/** For those who wait: the run itself is deleted with its thread. */
const keepResult = defineStatement('keep-agent-run-result', (db, { runId, status, output }: Result) =>
  sql`
    insert into agent_run_results (run_id, thread_id, status, output, metadata)
    select r.run_id, r.thread_id, ${status}, ${output}::json, t.metadata
    from agent_runs r join agent_threads t on t.thread_id = r.thread_id where r.run_id = ${runId}
    on conflict (run_id) do nothing`.compile(db),
);

/** After the run has ended or is gone, in its transaction: busy while other runs of the thread run or wait. */
export async function settleThread(db: Database, threadId: string, outcome: ThreadOutcome): Promise<void> {
  const { status, values, interrupts, error } = outcome;
  await updateThread(db, {
    ...{ threadId, status, hasValues: values !== undefined },
    values: values ?? null,
    searched: values === undefined ? null : toSearchable(values),
    interrupts: interrupts ?? null,
    error: error ?? null,
  });
}

type ThreadRow = {
  readonly threadId: string;
  readonly status: ThreadStatus;
  readonly hasValues: boolean;
  readonly values: JsonText | null;
  readonly searched: JsonText | null;
  readonly interrupts: JsonText | null;
  readonly error: JsonText | null;
};

const updateThread = defineStatement('settle-agent-thread', (db, row: ThreadRow) =>
  sql`
    update agent_threads t
    set status = case when exists (
          select from agent_runs r where r.thread_id = t.thread_id and r.status in ('pending', 'running')
        ) then 'busy' else ${row.status} end,
      values = case when ${row.hasValues}::boolean then ${row.values}::json else values end,
      searched_values = case when ${row.hasValues}::boolean then ${row.searched}::jsonb else searched_values end,
      state_updated_at = case when ${row.hasValues}::boolean then now() else state_updated_at end,
      interrupts = coalesce(${row.interrupts}::json, interrupts),
      error = ${row.error}::json, updated_at = now()
    where thread_id = ${row.threadId}`.compile(db),
);
