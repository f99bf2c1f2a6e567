// The thread of a new run: locked until the run is there, so that runs of a thread are created one after another, or created.
import { randomUUIDv7 } from 'node:crypto';
import type { JsonObject } from '../../../agent-worker/protocol/messages.ts';
import { DomainError } from '../../../base/domain-error.ts';
import { type Filter, whereVisible } from '../access/filters.ts';
import type { Transaction } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
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

/** Throws `not_found` for a thread that is not there and must be, or that the filter hides. */
export async function claimThread(
  trx: Transaction,
  wanted: Wanted,
  assistant: AssistantToRun,
): Promise<ThreadForRun> {
  const { threadId, body } = wanted;
  if (threadId === undefined) {
    const isTemporary = body.on_completion !== 'keep';
    const made = await insertThread(trx, randomUUIDv7(), isTemporary, wanted, assistant);
    if (made === undefined) throw new Error('no thread was inserted');
    return made;
  }
  const found = await lockThread(trx, threadId, wanted.filter);
  if (found !== undefined) return found;
  const created =
    body.if_not_exists === 'create' ? await insertThread(trx, threadId, false, wanted, assistant) : undefined;
  // Another request may have created it meanwhile, or it is one that the caller must not see.
  const thread = created ?? (await lockThread(trx, threadId, wanted.filter));
  if (thread === undefined) throw noThread();
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
  const row = await trx
    .selectFrom('agent_threads')
    .select(['status', 'is_temporary'])
    .select([sql<string>`config::text`.as('config'), sql<string>`metadata::text`.as('metadata')])
    .where('thread_id', '=', threadId)
    .where(whereVisible(filter))
    .forNoKeyUpdate()
    .executeTakeFirst();
  if (row === undefined) return undefined;
  return {
    ...{ threadId, isNew: false, isBusy: row.status === 'busy', isTemporary: row.is_temporary },
    config: JSON.parse(row.config) as JsonObject,
    metadata: JSON.parse(row.metadata) as JsonObject,
  };
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
  const { numInsertedOrUpdatedRows: count } = await trx
    .insertInto('agent_threads')
    .values(row)
    .onConflict((conflict) => conflict.column('thread_id').doNothing())
    .executeTakeFirstOrThrow();
  if (count === 0n) return undefined;
  return { threadId, isNew: true, isBusy: false, isTemporary, config, metadata: own };
}

/** It works on this assistant from now on. */
export async function writeThread(
  trx: Transaction,
  { threadId, metadata }: ThreadForRun,
  assistant: AssistantToRun,
  config: JsonObject,
): Promise<void> {
  await trx
    .updateTable('agent_threads')
    .set({
      status: 'busy',
      metadata: JSON.stringify({ ...metadata, ...ofAssistant(assistant) }),
      config: JSON.stringify(config),
      updated_at: sql<Date>`now()`,
    })
    .where('thread_id', '=', threadId)
    .execute();
}

function ofAssistant({ graphId, assistantId }: AssistantToRun): JsonObject {
  return { graph_id: graphId, assistant_id: assistantId };
}
