// The statements that write checkpoints: what came together is one statement, and so one transaction, in which the right to write is
// checked. The lock of that row lets no other attempt begin between the check and the commit.
import { defineStatement, type Statement } from '../../store/statement.ts';
import type { Database } from '../../store/database.ts';
import { type CompiledQuery, sql } from '../../store/sql.ts';
import type { StatementValue } from '../../store/pool/run-message.ts';
import type { ThreadStatus } from '../threads/thread-rows.ts';

type Batch = {
  readonly threadId: string;
  /** JSON lists, whose members say where their values are in `bytes`. */
  readonly checkpoints: string;
  readonly values: string;
  readonly writes: string;
  readonly bytes: Uint8Array;
};
/** None: the caller may not write, and nothing was written. */
type Written = { readonly allowed: string };

/** `for share`, which a claim of the next attempt waits for: it changes the row. */
export const writeAsRun: Statement<Batch & { readonly runId: string; readonly attempt: number }, Written> =
  defineStatement('write-checkpoints-of-run', (db, given) => {
    const { runId, threadId, attempt } = given;
    return writeFor(
      db,
      given,
      sql`select run_id from agent_runs
        where run_id = ${runId}::uuid and thread_id = ${threadId}::uuid and attempt = ${attempt}::integer and status = 'running'
        for share`,
    );
  });

/** Its transaction holds it until the end: updates of one thread wait for each other, and each sees what those before it have written. */
export const lockThreadToUpdate: Statement<{ readonly threadId: string }, { readonly status: ThreadStatus }> =
  defineStatement('lock-agent-thread-to-update', (db, { threadId }) =>
    db
      .selectFrom('agent_threads')
      .select('status')
      .where('thread_id', '=', threadId)
      .forNoKeyUpdate()
      .compile(),
  );

/**
 * After that lock, in a statement of its own, which sees what was committed while the lock was waited for. There is nothing above what was
 * read as the latest, nor above what is written: that would hide the update.
 */
export const writeAsUpdate: Statement<Batch & { readonly latest: string }, Written> = defineStatement(
  'write-checkpoints-of-update',
  (db, given) =>
    writeFor(
      db,
      given,
      sql`select '00000000-0000-0000-0000-000000000000'::uuid as run_id where not exists (
        select from (
          select ns, id from json_to_recordset(${given.latest}::json) as read (ns text, id text)
          union all
          select ns, id from json_to_recordset(${given.checkpoints}::json) as made (ns text, id text)
        ) as known join agent_checkpoints c on c.thread_id = ${given.threadId}::uuid and c.checkpoint_ns = known.ns
          and c.checkpoint_id > known.id)`,
    ),
);

type Given = { readonly [Key in keyof Batch]: StatementValue };

function writeFor(db: Database, given: Given, owner: ReturnType<typeof sql>): CompiledQuery<Written> {
  const { threadId, checkpoints, values, writes, bytes } = given;
  return sql<Written>`
    with owner as materialized (${owner}),
    new_values as (
      insert into agent_checkpoint_values (thread_id, checkpoint_ns, channel, version, type, value)
      select ${threadId}::uuid, one.ns, one.channel, one.version, one.type, substr(${bytes}::bytea, one.start, one.length)
      from owner, json_to_recordset(${values}::json) as one
        (ns text, channel text, version text, type text, start integer, length integer)
      on conflict do nothing
    ),
    new_writes as (
      insert into agent_checkpoint_writes as old
        (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, run_id, channel, type, value)
      select ${threadId}::uuid, one.ns, one.id, one.task, one.idx, owner.run_id, one.channel, one.type,
        substr(${bytes}::bytea, one.start, one.length)
      from owner, json_to_recordset(${writes}::json) as one
        (ns text, id text, task text, idx integer, channel text, type text, start integer, length integer)
      on conflict (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, run_id) do update
        set channel = excluded.channel, type = excluded.type, value = excluded.value where old.idx < 0
    ),
    new_checkpoints as (
      insert into agent_checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, run_id,
        type, checkpoint, metadata_type, metadata, searched_metadata, versions)
      select ${threadId}::uuid, one.ns, one.id, one.parent,
        nullif(owner.run_id, '00000000-0000-0000-0000-000000000000'::uuid),
        one.type, substr(${bytes}::bytea, one.start, one.length),
        one.metadata_type, substr(${bytes}::bytea, one.metadata_start, one.metadata_length),
        one.searched::jsonb, one.versions
      from owner, json_to_recordset(${checkpoints}::json) as one
        (ns text, id text, parent text, type text, start integer, length integer, metadata_type text,
          metadata_start integer, metadata_length integer, searched text, versions jsonb)
      on conflict (thread_id, checkpoint_ns, checkpoint_id) do update set
        parent_checkpoint_id = excluded.parent_checkpoint_id, type = excluded.type, checkpoint = excluded.checkpoint,
        metadata_type = excluded.metadata_type, metadata = excluded.metadata,
        searched_metadata = excluded.searched_metadata, versions = excluded.versions
    )
    select 'yes' as allowed from owner
  `.compile(db);
}
