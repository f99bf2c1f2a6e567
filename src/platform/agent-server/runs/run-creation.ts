// Creates a run in one transaction: its thread where it has none, what becomes of the runs that the thread already has, the run
// itself with the config of its assistant as it is now, and whose run it is. On a thread without runs that is two messages to the
// database: what is read, then what is written with the COMMIT.
import type { StoredCheckpoint } from '../../../agent-worker/protocol/calls.ts';
import type { JsonObject } from '../../../agent-worker/protocol/messages.ts';
import { DomainError } from '../../../base/domain-error.ts';
import type { Filter } from '../access/filters.ts';
import { insertRunUser, partyOf, type RunUser, sealRunUser } from '../access/run-users.ts';
import { readLatestToStart, requireCheckpoint } from '../checkpoints/checkpoint-reading.ts';
import type { Transaction } from '../../store/database.ts';
import type { PooledTransaction } from '../../store/pool/pooled-transaction.ts';
import type { Vault } from '../../vault/vault.ts';
import { readAssistantToRun } from './assistant-to-run.ts';
import { type Cancelled, cancelRuns } from './cancellation.ts';
import type { RunBody } from './run-body.ts';
import { type Begun, type Insertion, insertRun, sendLater, toClaim } from './run-insertion.ts';
import { createKwargs, threadConfigOf } from './run-kwargs.ts';
import type { MultitaskStrategy } from './run-rows.ts';
import type { RunRow } from './run-shape.ts';
import { claimThread, lockThread, writeThread } from './thread-for-run.ts';

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
  /** The process that has a place for it: it begins at once where its thread has nothing to do. */
  readonly owner?: string | undefined;
};

export type CreatedRun = {
  readonly row: RunRow;
  readonly party: string;
  readonly cancelled: Cancelled;
  /** It runs already, and is to be started; undefined where it waits. */
  readonly begun: Begun | undefined;
};

export type CreationParts = {
  /** Of the deployment. */
  readonly graphs: { has(graphId: string): boolean };
  readonly vault: Pick<Vault, 'seal'>;
  /** `LANGGRAPH_CONFIG`, by graph. */
  readonly defaultConfigs: ReadonlyMap<string, JsonObject>;
  readonly threadPendingRuns?: number | undefined;
};

export async function createRun(
  trx: PooledTransaction,
  parts: CreationParts,
  given: NewRun,
): Promise<CreatedRun> {
  const { body, runId } = given;
  // Sent together with what locks the thread.
  const sealing = sendLater(trx, () => sealRunUser(trx, parts.vault, runId, given.user));
  const { assistant, thread } = await readParts(trx, parts, given);
  const { threadId } = thread;
  const strategy = body.multitask_strategy ?? 'enqueue';
  const cancelled = thread.isBusy ? await makeWay(trx, threadId, strategy) : NOTHING;
  if (thread.isBusy && strategy === 'enqueue') await requirePlace(trx, threadId, parts.threadPendingRuns);
  const kwargs = createKwargs(body, {
    ...{ runId, threadId, assistant, thread, metadata: given.metadata, isTemporary: thread.isTemporary },
    ...{ graphId: assistant.graphId, assistantId: assistant.assistantId },
    defaults: parts.defaultConfigs.get(assistant.graphId) ?? {},
  });
  const { checkpoint_id: id, checkpoint_ns: namespace } = kwargs.config.configurable;
  if (typeof id === 'string' && id !== '') await requireCheckpoint(trx, { threadId, id, namespace });
  const party = partyOf(given.user);
  const insertion: Insertion = {
    ...{ runId, assistant, thread, kwargs, strategy, party, streamedBy: given.streamedBy },
    texts: { kwargs: JSON.stringify(kwargs), metadata: JSON.stringify(kwargs.config.metadata) },
    afterSeconds: body.after_seconds ?? 0,
    owner: thread.isBusy ? null : (given.owner ?? null),
  };
  const sealed = await sealing;
  void insertRun(trx, insertion);
  // A thread that works shows what it works on.
  if (!thread.isNew && !thread.isBusy)
    void sendLater(trx, () =>
      writeThread(trx, thread, assistant, threadConfigOf(body, { assistant, thread })),
    );
  const begun = insertion.owner === null ? undefined : begin(trx, insertion);
  await insertRunUser(trx, runId, sealed);
  return { row: toRow(insertion), party, cancelled, begun };
}

/** Throws `not_found` for the first of both that is not there. */
async function readParts(trx: PooledTransaction, { graphs }: CreationParts, given: NewRun) {
  const { threadId, filter, assistantId, assistantFilter } = given;
  const find = () => readAssistantToRun(trx, assistantId, assistantFilter);
  const finding = assistantFilter === undefined ? sendLater(trx, find) : undefined;
  const locking = threadId === undefined ? undefined : lockThread(trx, threadId, filter);
  // Waited for after the assistant.
  locking?.catch(() => undefined);
  trx.sendHeld();
  const assistant = await (finding ?? find());
  if (!graphs.has(assistant.graphId))
    throw new DomainError('not_found', 'The graph of this assistant is not in this deployment any more');
  return { assistant, thread: await claimThread(trx, given, assistant, await locking) };
}

/** With the checkpoint that its worker asks for first, where the run begins at the last one of its thread. */
function begin(trx: PooledTransaction, insertion: Insertion): Begun {
  const { thread, kwargs } = insertion;
  const { checkpoint_id: id, checkpoint_ns: namespace } = kwargs.config.configurable;
  const isLatest = id === undefined && namespace === undefined;
  const read = (): Promise<StoredCheckpoint | null | undefined> =>
    sendLater(trx, () => readLatestToStart(trx, thread.threadId));
  const none = thread.isNew ? null : undefined;
  return {
    claim: toClaim(insertion),
    latest: isLatest && !thread.isNew ? read() : Promise.resolve(none),
  };
}

/** As clients see it: that it begins at once is known after the commit. */
function toRow({ runId, assistant, thread, texts, strategy }: Insertion): RunRow {
  return {
    ...{ run_id: runId, thread_id: thread.threadId, assistant_id: assistant.assistantId },
    ...{ status: 'pending', created_at: assistant.now, updated_at: assistant.now },
    ...texts,
    multitask_strategy: strategy,
  };
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
