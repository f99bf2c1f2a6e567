// The thread of a new run: locked until the run is there, so that runs of a thread are created one after another, or created.
import { randomUUIDv7 } from 'node:crypto';
import type { JsonObject } from '../../../agent-worker/protocol/messages.ts';
import { DomainError } from '../../../base/domain-error.ts';
import { type Filter, whereVisible } from '../access/filters.ts';
import type { Database, Transaction } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import { defineStatement } from '../../store/statement.ts';
import type { AssistantToRun } from './assistant-to-run.ts';
import type { RunBody } from './run-body.ts';
import { threadConfigOf } from './run-kwargs.ts';

export type ThreadForRun = {
  readonly threadId: string;
  readonly isNew: boolean;
  /** Runs of it wait or run. */
  readonly isBusy: boolean;
  readonly isTemporary: boolean;
  readonly config: JsonObject;
  readonly metadata: JsonObject;
};

type Wanted = {
  readonly threadId: string | undefined;
  readonly body: RunBody;
  readonly metadata: JsonObject;
  readonly filter: Filter | undefined;
};

/** `found`: what was locked. Throws `not_found` for a thread that is not there and must be, or that the filter hides. */
export async function claimThread(
  trx: Transaction,
  wanted: Wanted,
  assistant: AssistantToRun,
  found: ThreadForRun | undefined,
): Promise<ThreadForRun> {
  const { threadId, body } = wanted;
  if (threadId === undefined) {
    const isTemporary = body.on_completion !== 'keep';
    const made = await insertThread(trx, randomUUIDv7(), isTemporary, wanted, assistant);
    if (made === undefined) throw new Error('no thread was inserted');
    return made;
  }
  if (found !== undefined) return requireLasting(found);
  const created =
    body.if_not_exists === 'create' ? await insertThread(trx, threadId, false, wanted, assistant) : undefined;
  // Another request may have created it meanwhile, or it is one that the caller must not see.
  const thread = created ?? (await lockThread(trx, threadId, wanted.filter));
  if (thread === undefined) throw noThread();
  return requireLasting(thread);
}

/** One that ends with its run would take another one with it, whose client would learn nothing of its end. */
function requireLasting(thread: ThreadForRun): ThreadForRun {
  if (thread.isTemporary) throw noThread();
  return thread;
}

export function noThread(): DomainError {
  return new DomainError('not_found', 'Thread not found');
}

/** Undefined where there is none, or none that is visible. */
export async function lockThread(
  trx: Transaction,
  threadId: string,
  filter: Filter | undefined,
): Promise<ThreadForRun | undefined> {
  const [row] =
    filter === undefined
      ? await lockForRun(trx, { threadId })
      : await selectForRun(trx, threadId).where(whereVisible(filter)).execute();
  if (row === undefined) return undefined;
  return {
    ...{ threadId, isNew: false, isBusy: row.status === 'busy', isTemporary: row.is_temporary },
    config: JSON.parse(row.config) as JsonObject,
    metadata: JSON.parse(row.metadata) as JsonObject,
  };
}

function selectForRun(db: Database, threadId: string) {
  return db
    .selectFrom('agent_threads')
    .select(['status', 'is_temporary'])
    .select([sql<string>`config::text`.as('config'), sql<string>`metadata::text`.as('metadata')])
    .where('thread_id', '=', threadId)
    .forNoKeyUpdate();
}

const lockForRun = defineStatement(
  'lock-agent-thread-for-run',
  (db, { threadId }: { readonly threadId: string }) => selectForRun(db, threadId).compile(),
);

/** In the order of their ids, so that two requests never wait for each other. */
export async function lockThreads(trx: Transaction, threadIds: readonly string[]): Promise<void> {
  await trx
    .selectFrom('agent_threads')
    .select('thread_id')
    .where('thread_id', '=', sql<string>`any(${threadIds}::uuid[])`)
    .orderBy('thread_id')
    .forNoKeyUpdate()
    .execute();
}

/** Undefined where there is one with this id. */
async function insertThread(
  trx: Transaction,
  threadId: string,
  isTemporary: boolean,
  { body, metadata }: Wanted,
  assistant: AssistantToRun,
): Promise<ThreadForRun | undefined> {
  const own = { ...ofAssistant(assistant), ...metadata };
  const config = threadConfigOf(body, { assistant, thread: { config: {}, metadata: {} } });
  const row = {
    ...({ thread_id: threadId, status: 'busy', is_temporary: isTemporary } as const),
    metadata: JSON.stringify(own),
    config: JSON.stringify(config),
  };
  if ((await insertRow(trx, row)).length === 0) return undefined;
  return { threadId, isNew: true, isBusy: false, isTemporary, config, metadata: own };
}

type NewRow = {
  readonly thread_id: string;
  readonly status: 'busy';
  readonly is_temporary: boolean;
  readonly metadata: string;
  readonly config: string;
};

const insertRow = defineStatement('insert-agent-thread-for-run', (db, row: NewRow) =>
  db
    .insertInto('agent_threads')
    .values({
      ...{ thread_id: row.thread_id, status: row.status, is_temporary: row.is_temporary },
      ...{ metadata: row.metadata, config: row.config },
    })
    .onConflict((conflict) => conflict.column('thread_id').doNothing())
    .returning('thread_id')
    .compile(),
);

/** It works on this assistant from now on. */
export async function writeThread(
  trx: Transaction,
  { threadId, metadata }: ThreadForRun,
  assistant: AssistantToRun,
  config: JsonObject,
): Promise<void> {
  await writeRow(trx, {
    threadId,
    metadata: JSON.stringify({ ...metadata, ...ofAssistant(assistant) }),
    config: JSON.stringify(config),
  });
}

type Row = { readonly threadId: string; readonly metadata: string; readonly config: string };

const writeRow = defineStatement('write-agent-thread-for-run', (db, { threadId, metadata, config }: Row) =>
  db
    .updateTable('agent_threads')
    .set({ status: sql`'busy'`, metadata, config, updated_at: sql<Date>`now()` })
    .where('thread_id', '=', threadId)
    .compile(),
);

function ofAssistant({ graphId, assistantId }: AssistantToRun): JsonObject {
  return { graph_id: graphId, assistant_id: assistantId };
}
