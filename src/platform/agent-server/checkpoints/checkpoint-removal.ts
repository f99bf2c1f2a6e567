// Whole sets of checkpoints: those of a run that is rolled back, and those of a thread that is deleted or copied.
import type { Database, Transaction } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import { type CheckpointScope, LateWrite } from './checkpoint-scope.ts';

/**
 * What a run has written: its checkpoints, their writes, its writes to checkpoints of others, and the values that no other checkpoint
 * has. The caller has ended the run before, in this transaction or an earlier one, so that it writes no more.
 */
export async function removeRunCheckpoints(trx: Transaction, threadId: string, runId: string): Promise<void> {
  await sql`
    delete from agent_checkpoint_writes as written
    where thread_id = ${threadId} and (run_id = ${runId} or exists (
      select from agent_checkpoints as made
      where made.thread_id = written.thread_id and made.checkpoint_ns = written.checkpoint_ns
        and made.checkpoint_id = written.checkpoint_id and made.run_id = ${runId}))
  `.execute(trx);
  // Both see the checkpoints as they were before.
  await sql`
    with removed as (
      delete from agent_checkpoints where thread_id = ${threadId} and run_id = ${runId}
      returning checkpoint_ns, versions
    ),
    unused as (
      select checkpoint_ns, channel, version from removed, jsonb_each_text(versions) as used (channel, version)
      except
      select checkpoint_ns, channel, version
      from agent_checkpoints, jsonb_each_text(versions) as used (channel, version)
      where thread_id = ${threadId} and run_id is distinct from ${runId}
    )
    delete from agent_checkpoint_values as stored using unused
    where stored.thread_id = ${threadId} and stored.checkpoint_ns = unused.checkpoint_ns
      and stored.channel = unused.channel and stored.version = unused.version
  `.execute(trx);
}

/** All of a thread that stays, as one call of a worker. Throws DomainError where that may not write any more. */
export async function removeCheckpoints(trx: Transaction, scope: CheckpointScope): Promise<void> {
  const { threadId } = scope;
  if (!(await mayWrite(trx, scope)))
    throw new LateWrite(scope.lease === undefined ? 'run_begun' : 'attempt_ended');
  await trx.deleteFrom('agent_checkpoint_writes').where('thread_id', '=', threadId).execute();
  await trx.deleteFrom('agent_checkpoints').where('thread_id', '=', threadId).execute();
  await trx.deleteFrom('agent_checkpoint_values').where('thread_id', '=', threadId).execute();
}

/** No other attempt begins, and no run of the thread, before the transaction has ended. */
async function mayWrite(trx: Transaction, { threadId, lease }: CheckpointScope): Promise<boolean> {
  const thread = trx.selectFrom('agent_threads').select('thread_id').where('thread_id', '=', threadId);
  if (lease === undefined)
    return (await thread.where('status', '<>', 'busy').forShare().executeTakeFirst()) !== undefined;
  const run = trx.selectFrom('agent_runs').select('run_id').where('run_id', '=', lease.runId);
  const running = run.where('thread_id', '=', threadId).where('status', '=', 'running');
  return (await running.where('attempt', '=', lease.attempt).forShare().executeTakeFirst()) !== undefined;
}

/**
 * To a thread that has none, in a transaction of the caller. In one statement: a run of the thread may write meanwhile, and each
 * checkpoint is copied with its values.
 */
export async function copyCheckpoints(trx: Database, from: string, to: string): Promise<void> {
  await sql`
    with copied_values as (
      insert into agent_checkpoint_values (thread_id, checkpoint_ns, channel, version, type, value)
      select ${to}::uuid, checkpoint_ns, channel, version, type, value
      from agent_checkpoint_values where thread_id = ${from}
    ),
    copied_checkpoints as (
      insert into agent_checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, run_id,
        type, checkpoint, metadata_type, metadata, searched_metadata, versions)
      select ${to}::uuid, checkpoint_ns, checkpoint_id, parent_checkpoint_id, run_id,
        type, checkpoint, metadata_type, metadata, searched_metadata, versions
      from agent_checkpoints where thread_id = ${from}
    )
    insert into agent_checkpoint_writes
      (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, run_id, channel, type, value)
    select ${to}::uuid, checkpoint_ns, checkpoint_id, task_id, idx, run_id, channel, type, value
    from agent_checkpoint_writes where thread_id = ${from} order by position
  `.execute(trx);
}
