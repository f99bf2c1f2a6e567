// The row of a new run: pending, or running at once by the process that creates it and has a place for it.
import type { StoredCheckpoint } from '../../../agent-worker/protocol/calls.ts';
import type { PooledTransaction } from '../../store/pool/pooled-transaction.ts';
import { sql } from '../../store/sql.ts';
import { defineStatement } from '../../store/statement.ts';
import { type Claim, LEASE } from '../queue/claims.ts';
import type { AssistantToRun } from './assistant-to-run.ts';
import type { RunKwargs } from './run-kwargs.ts';
import type { MultitaskStrategy } from './run-rows.ts';
import type { ThreadForRun } from './thread-for-run.ts';

/** Of a run that begins as running. */
export type Begun = {
  readonly claim: Claim;
  /** Of its thread, once the transaction is committed; null where there is none; undefined where the worker is to read it. */
  readonly latest: Promise<StoredCheckpoint | null | undefined>;
};

export type Insertion = {
  readonly runId: string;
  readonly assistant: AssistantToRun;
  readonly thread: ThreadForRun;
  readonly kwargs: RunKwargs;
  /** Of them and of their metadata, as JSON. */
  readonly texts: { readonly kwargs: string; readonly metadata: string };
  readonly strategy: MultitaskStrategy;
  readonly party: string;
  readonly afterSeconds: number;
  readonly streamedBy: string | null;
  /** The process that has a place for it and starts it after the commit; null: it waits. */
  readonly owner: string | null;
};

/** The statements of the transaction whose results it does not need are sent together with the last one, and with the COMMIT. */
export function sendLater<T>(trx: PooledTransaction, work: () => Promise<T>): Promise<T> {
  const sent = trx.holdBack(work);
  // Where it fails, the transaction does.
  sent.catch(() => undefined);
  return sent;
}

export function insertRun(trx: PooledTransaction, insertion: Insertion): Promise<unknown> {
  const { assistant, thread, kwargs, texts, strategy, ...row } = insertion;
  return sendLater(trx, () =>
    insertRow(trx, {
      ...{ ...row, strategy, threadId: thread.threadId, assistantId: assistant.assistantId },
      ...{ version: assistant.version, graphId: assistant.graphId, isResumable: kwargs.resumable },
      ...texts,
    }),
  );
}

/** Of a run that was inserted with an owner: what a claim of it would have read. */
export function toClaim(insertion: Insertion): Claim {
  const { runId, assistant, thread, kwargs, texts, party, streamedBy } = insertion;
  return {
    ...{ run_id: runId, thread_id: thread.threadId, assistant_id: assistant.assistantId },
    ...{ graph_id: assistant.graphId, kwargs: texts.kwargs, party, streamed_by: streamedBy },
    ...{ attempt: 1, losses: 0, loss: null, is_alone: false, cancellation: null },
    ...{ is_resumable: kwargs.resumable, is_temporary: thread.isTemporary },
  };
}

type Row = Omit<Insertion, 'assistant' | 'thread' | 'kwargs' | 'texts'> & {
  readonly threadId: string;
  readonly assistantId: string;
  readonly version: number;
  readonly graphId: string;
  /** JSON */
  readonly kwargs: string;
  /** JSON */
  readonly metadata: string;
  readonly isResumable: boolean;
};

const insertRow = defineStatement('insert-agent-run', (db, row: Row) =>
  sql`
    insert into agent_runs (run_id, thread_id, assistant_id, assistant_version, graph_id, metadata, kwargs,
      multitask_strategy, run_after, party, is_resumable, streamed_by, status, attempt, lease_owner, lease_until)
    select ${row.runId}::uuid, ${row.threadId}::uuid, ${row.assistantId}::uuid, ${row.version}::integer, ${row.graphId},
      ${row.metadata}::jsonb, ${row.kwargs}::json, ${row.strategy},
      now() + ${row.afterSeconds}::float8 * interval '1 second', ${row.party}, ${row.isResumable}::boolean,
      ${row.streamedBy}::uuid, case when owner is null then 'pending' else 'running' end,
      case when owner is null then 0 else 1 end, owner, case when owner is null then null else clock_timestamp() + ${LEASE} end
    from (select ${row.owner}::uuid as owner) one`.compile(db),
);
