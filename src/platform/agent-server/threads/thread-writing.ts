// Threads in the tables: created, changed, deleted and copied, by whoever may see them.
import { DomainError } from '../../../base/domain-error.ts';
import type { Database, Reader } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import { type Filter, whereVisible } from '../access/filters.ts';
import { copyCheckpoints } from '../checkpoints/checkpoint-removal.ts';
import { requireSmallMetadata } from '../metadata.ts';
import { noThread } from './thread-route.ts';
import { threadColumns, toThreadText } from './thread-text.ts';

/** As JSON text. Throws DomainError `not_found`. */
export async function readThread(db: Reader, id: string, filter: Filter | undefined): Promise<string> {
  const found = db.selectFrom('agent_threads').select(threadColumns()).where('thread_id', '=', id);
  const row = await found.where(whereVisible(filter)).executeTakeFirst();
  if (row === undefined) throw noThread();
  return toThreadText(row);
}

export type NewThread = {
  readonly id: string;
  /** JSON. */
  readonly metadata: string;
  readonly ifExists: 'raise' | 'do_nothing';
};

/** Throws DomainError `conflict` for one that exists, also where the caller may not see it. */
export async function createThread(
  db: Database,
  { id, metadata, ifExists }: NewThread,
  filter: Filter | undefined,
): Promise<string> {
  const created = await db
    .insertInto('agent_threads')
    .values({ thread_id: id, metadata })
    .onConflict((conflict) => conflict.column('thread_id').doNothing())
    .returning(threadColumns())
    .executeTakeFirst();
  if (created !== undefined) return toThreadText(created);
  const found = db.selectFrom('agent_threads').select(threadColumns()).where('thread_id', '=', id);
  const row = ifExists === 'raise' ? undefined : await found.where(whereVisible(filter)).executeTakeFirst();
  if (row === undefined) throw new DomainError('conflict', 'A thread with this id exists');
  return toThreadText(row);
}

/** In a transaction of the caller. `metadata` is JSON: its members replace those of the same name. */
export async function patchThread(
  db: Database,
  { id, metadata }: Pick<NewThread, 'id' | 'metadata'>,
  filter: Filter | undefined,
): Promise<string> {
  const row = await db
    .updateTable('agent_threads')
    .set({ metadata: sql<string>`metadata || ${metadata}::jsonb`, updated_at: sql<Date>`now()` })
    .where('thread_id', '=', id)
    .where(whereVisible(filter))
    .returning(threadColumns())
    .executeTakeFirst();
  if (row === undefined) throw noThread();
  // What was merged is rolled back.
  requireSmallMetadata(row.metadata ?? '');
  return toThreadText(row);
}

/** With its runs, their events and its checkpoints. Returns the runs that had not ended: whoever executes them is to stop. */
export async function deleteThread(
  db: Database,
  id: string,
  filter: Filter | undefined,
): Promise<readonly string[]> {
  // First the thread, then its runs, as whoever ends a run locks them.
  const thread = db.selectFrom('agent_threads').select('thread_id').where('thread_id', '=', id);
  if ((await thread.where(whereVisible(filter)).forNoKeyUpdate().executeTakeFirst()) === undefined)
    throw noThread();
  const runs = await db
    .selectFrom('agent_runs')
    .select(['run_id', 'ended_at', 'status'])
    .where('thread_id', '=', id)
    .orderBy('run_id')
    .forUpdate()
    .execute();
  const ids = runs.map(({ run_id }) => run_id);
  if (ids.length > 0)
    await db.deleteFrom('agent_run_events').where('run_id', '=', sql<string>`any(${ids}::uuid[])`).execute();
  await db.deleteFrom('agent_threads').where('thread_id', '=', id).execute();
  return runs
    .filter(({ status }) => status === 'pending' || status === 'running')
    .map(({ run_id }) => run_id);
}

export type ThreadCopy = Pick<NewThread, 'id' | 'metadata'> & { readonly from: string };

/** With all its checkpoints, in a transaction of the caller. Throws DomainError `conflict` where there is none, or none that the caller may see. */
export async function copyThread(
  db: Database,
  { from, id, metadata }: ThreadCopy,
  filter: Filter | undefined,
): Promise<string> {
  // What is copied does not change meanwhile: a run begins or ends with a lock of the thread.
  const source = db.selectFrom('agent_threads').select('thread_id').where('thread_id', '=', from);
  if ((await source.where(whereVisible(filter)).forShare().executeTakeFirst()) === undefined) throw noCopy();
  await db.insertInto('agent_threads').values({ thread_id: id, metadata }).execute();
  await copyCheckpoints(db, from, id);
  return readThread(db, id, undefined);
}

export function noCopy(): DomainError {
  return new DomainError('conflict', 'There is no such thread to copy');
}
