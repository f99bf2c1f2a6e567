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

/** `hasNext`: other runs of its thread wait. */
export type Ended = { readonly hasNext: boolean };

/** Undefined: this attempt does not have the run any more. */
export function endRun(
  store: Pick<Store, 'write'>,
  owner: string,
  claim: Claim,
  ending: Ending,
): Promise<Ended | undefined> {
  return claim.is_temporary && !claim.is_resumable
    ? endTemporary(store, owner, claim, ending)
    : endKept(store, owner, claim, ending);
}

async function endTemporary(
  store: Pick<Store, 'write'>,
  owner: string,
  claim: Claim,
  { status, output }: Ending,
): Promise<Ended | undefined> {
  const { run_id: runId, thread_id: threadId } = claim;
  return store.write(async (trx) => {
    if (!(await lockAttempt(trx, owner, claim))) return undefined;
    await keepResult(trx, { runId, status, output });
    await trx.deleteFrom('agent_threads').where('thread_id', '=', threadId).execute();
    return { hasNext: false };
  });
}

/** In one message to the database: each statement asks whether the one before it has found what it changes. */
async function endKept(
  store: Pick<Store, 'write'>,
  owner: string,
  claim: Claim,
  { status, output, thread }: Ending,
): Promise<Ended | undefined> {
  const { run_id: runId, thread_id: threadId, attempt } = claim;
  const finished = await store.write(async (trx) => {
    const statements = trx.holdBack(() =>
      Promise.all([
        lockThread(trx, { threadId }),
        lockRun(trx, { runId, attempt, owner }),
        finish(trx, { runId, attempt, owner, status, output }),
      ]),
    );
    // Where one fails, the transaction does.
    statements.catch(() => undefined);
    await settleAfter(trx, { ...toThreadRow(threadId, thread), runId });
    return { statements };
  });
  const [, , [ended]] = await finished.statements;
  return ended && { hasNext: ended.has_next };
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

/** By the attempt that has the run alone; and the mapping of its user is gone. */
const finish = defineStatement(
  'end-agent-run',
  (db, { runId, attempt, owner, status, output }: Result & Attempt) =>
    sql<{ readonly has_next: boolean }>`
      with ended as (
        update agent_runs
        set status = ${status}, output = ${output}::json, ended_at = now(), updated_at = now(), cancellation = null,
          lease_owner = null, lease_until = null
        where run_id = ${runId} and attempt = ${attempt} and lease_owner = ${owner} and status = 'running'
        returning run_id, thread_id
      ), gone as (delete from agent_run_users where run_id in (select run_id from ended))
      select exists (
        select from agent_runs o
        where o.thread_id = ended.thread_id and o.status = 'pending' and o.run_id <> ended.run_id
      ) as has_next
      from ended`.compile(db),
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
async function settleThread(db: Database, threadId: string, outcome: ThreadOutcome): Promise<void> {
  await updateThread(db, toThreadRow(threadId, outcome));
}

function toThreadRow(threadId: string, { status, values, interrupts, error }: ThreadOutcome): ThreadRow {
  return {
    ...{ threadId, status, hasValues: values !== undefined },
    values: values ?? null,
    searched: values === undefined ? null : toSearchable(values),
    interrupts: interrupts ?? null,
    error: error ?? null,
  };
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
  settle(row, sql``).compile(db),
);

/** Where the transaction has ended the run. It is the last statement, and is sent with the COMMIT. */
const settleAfter = defineStatement(
  'settle-agent-thread-after',
  (db, row: ThreadRow & { readonly runId: string }) =>
    settle(
      row,
      sql`and exists (select from agent_runs r where r.run_id = ${row.runId} and r.ended_at = now())`,
    ).compile(db),
  { isSentWithCommit: true },
);

function settle(row: ThreadRow, condition: ReturnType<typeof sql>) {
  return sql`
    update agent_threads t
    set status = case when exists (
          select from agent_runs r where r.thread_id = t.thread_id and r.status in ('pending', 'running')
        ) then 'busy' else ${row.status} end,
      values = case when ${row.hasValues}::boolean then ${row.values}::json else values end,
      searched_values = case when ${row.hasValues}::boolean then ${row.searched}::jsonb else searched_values end,
      state_updated_at = case when ${row.hasValues}::boolean then now() else state_updated_at end,
      interrupts = coalesce(${row.interrupts}::json, interrupts),
      error = ${row.error}::json, updated_at = now()
    where thread_id = ${row.threadId} ${condition}`;
}
