// Creates a run in one transaction: its thread where it has none, what becomes of the runs that the thread already has, the run
// itself with the config of its assistant as it is now, and whose run it is.
import { createHash } from 'node:crypto';
import type { JsonObject } from '../../../agent-worker/protocol/messages.ts';
import { DomainError } from '../../../base/domain-error.ts';
import type { Filter } from '../access/filters.ts';
import { type RunUser, sealRunUser } from '../access/run-users.ts';
import type { Transaction } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import { defineStatement } from '../../store/statement.ts';
import type { Vault } from '../../vault/vault.ts';
import { type AssistantToRun, readAssistantToRun } from './assistant-to-run.ts';
import { type Cancelled, cancelRuns } from './cancellation.ts';
import type { RunBody } from './run-body.ts';
import { createKwargs, type RunKwargs, threadConfigOf } from './run-kwargs.ts';
import type { MultitaskStrategy } from './run-rows.ts';
import type { RunRow } from './run-shape.ts';
import { claimThread, type ThreadForRun, writeThread } from './thread-for-run.ts';

export type NewRun = {
  readonly runId: string;
  /** Undefined: a thread is made for it. */
  readonly threadId: string | undefined;
  readonly body: RunBody;
  /** Of the run, and of a new thread, as the authorization handler left it. */
  readonly metadata: JsonObject;
  /** Of threads, and of assistants. */
  readonly filter: Filter | undefined;
  readonly assistantFilter: Filter | undefined;
  readonly assistantId: string;
  readonly user: RunUser;
  /** The process whose client reads its events from the first on. */
  readonly streamedBy: string | null;
};

export type CreatedRun = {
  readonly row: RunRow;
  readonly party: string;
  readonly cancelled: Cancelled;
};

export type CreationParts = {
  /** Of the deployment. */
  readonly graphs: { has(graphId: string): boolean };
  readonly vault: Pick<Vault, 'seal'>;
  /** `LANGGRAPH_CONFIG`, by graph. */
  readonly defaultConfigs: ReadonlyMap<string, JsonObject>;
  readonly threadPendingRuns?: number | undefined;
};

export async function createRun(trx: Transaction, parts: CreationParts, given: NewRun): Promise<CreatedRun> {
  const { body, runId } = given;
  const assistant = await readAssistantToRun(trx, given.assistantId, given.assistantFilter);
  if (!parts.graphs.has(assistant.graphId))
    throw new DomainError('not_found', 'The graph of this assistant is not in this deployment any more');
  const thread = await claimThread(trx, given, assistant);
  const { threadId } = thread;
  const strategy = body.multitask_strategy ?? 'enqueue';
  const cancelled = thread.isBusy ? await makeWay(trx, threadId, strategy) : NOTHING;
  if (thread.isBusy && strategy === 'enqueue') await requirePlace(trx, threadId, parts.threadPendingRuns);
  const kwargs = createKwargs(body, {
    ...{ runId, threadId, assistant, thread, metadata: given.metadata, isTemporary: thread.isTemporary },
    ...{ graphId: assistant.graphId, assistantId: assistant.assistantId },
    defaults: parts.defaultConfigs.get(assistant.graphId) ?? {},
  });
  const party = partyOf(given.user);
  const row = await insert(trx, { given, assistant, thread, kwargs, strategy, party });
  // A thread that works shows what it works on.
  if (!thread.isNew && !thread.isBusy)
    await writeThread(trx, thread, assistant, threadConfigOf(body, { assistant, thread }));
  await sealRunUser(trx, parts.vault, runId, given.user);
  return { row, party, cancelled };
}

const NOTHING: Cancelled = { ended: [], asked: [] };

/** Throws `conflict` where the new run must not be. */
async function makeWay(trx: Transaction, threadId: string, strategy: MultitaskStrategy): Promise<Cancelled> {
  if (strategy === 'enqueue') return NOTHING;
  const rows = await trx
    .selectFrom('agent_runs')
    .select('run_id')
    .where('thread_id', '=', threadId)
    .where('status', 'in', ['pending', 'running'])
    .execute();
  if (rows.length === 0) return NOTHING;
  if (strategy === 'reject')
    throw new DomainError(
      'conflict',
      'The thread is busy with another run: wait for its end, or choose another multitask_strategy',
    );
  return cancelRuns(
    trx,
    rows.map(({ run_id: id }) => id),
    strategy,
  );
}

const RETRY_MS = 10_000;

/** Throws `too_many` where so many runs of the thread wait already. */
async function requirePlace(trx: Transaction, threadId: string, most: number | undefined): Promise<void> {
  if (most === undefined) return;
  const last = await trx
    .selectFrom('agent_runs')
    .select('run_id')
    .where('thread_id', '=', threadId)
    .where('status', '=', 'pending')
    .orderBy('position')
    .offset(most - 1)
    .limit(1)
    .executeTakeFirst();
  if (last !== undefined)
    throw new DomainError(
      'too_many',
      `${most} runs of this thread wait, as many as SALLYPORT_AGENT_THREAD_PENDING_RUNS allows: create this one when some have ended`,
      RETRY_MS,
    );
}

type Insertion = {
  readonly given: NewRun;
  readonly assistant: AssistantToRun;
  readonly thread: ThreadForRun;
  readonly kwargs: RunKwargs;
  readonly strategy: MultitaskStrategy;
  readonly party: string;
};

async function insert(trx: Transaction, insertion: Insertion): Promise<RunRow> {
  const { given, assistant, thread, kwargs, strategy, party } = insertion;
  const row = {
    run_id: given.runId,
    thread_id: thread.threadId,
    assistant_id: assistant.assistantId,
    metadata: JSON.stringify(kwargs.config.metadata),
    kwargs: JSON.stringify(kwargs),
    multitask_strategy: strategy,
  };
  const [written] = await insertRun(trx, {
    ...row,
    ...{ version: assistant.version, graphId: assistant.graphId, party },
    afterSeconds: given.body.after_seconds ?? 0,
    isResumable: kwargs.resumable,
    streamedBy: given.streamedBy,
  });
  if (written === undefined) throw new Error('no run was inserted');
  return { ...row, ...written };
}

type Row = {
  readonly run_id: string;
  readonly thread_id: string;
  readonly assistant_id: string;
  readonly metadata: string;
  readonly kwargs: string;
  readonly multitask_strategy: string;
  readonly version: number;
  readonly graphId: string;
  readonly party: string;
  readonly afterSeconds: number;
  readonly isResumable: boolean;
  readonly streamedBy: string | null;
};

const insertRun = defineStatement('insert-agent-run', (db, row: Row) =>
  sql<Pick<RunRow, 'status' | 'created_at' | 'updated_at'>>`
    insert into agent_runs (run_id, thread_id, assistant_id, assistant_version, graph_id, metadata, kwargs,
      multitask_strategy, run_after, party, is_resumable, streamed_by)
    values (${row.run_id}, ${row.thread_id}, ${row.assistant_id}, ${row.version}, ${row.graphId}, ${row.metadata}::jsonb,
      ${row.kwargs}::json, ${row.multitask_strategy}, now() + ${row.afterSeconds}::float8 * interval '1 second',
      ${row.party}, ${row.isResumable}, ${row.streamedBy}::uuid)
    returning status, created_at, updated_at`.compile(db),
);

/** Users share the places of a process: whose run it is, without saying who. */
function partyOf({ user }: RunUser): string {
  return user === undefined
    ? ''
    : createHash('sha256').update(user.identity).digest('base64url').slice(0, 22);
}
