// Listeners: compute that a workspace has registered for its deployments.
import { DomainError } from '../../base/domain-error.ts';
import type { Page } from '../api/paging.ts';
import { type Database, isDuplicate } from '../store/database.ts';
import type { ListenerRow } from '../store/tables.ts';
import { type Selectable, sql } from '../store/sql.ts';

export type Listener = Omit<Selectable<ListenerRow>, 'workspace_id'>;
export type NewListener = Pick<Listener, 'compute_type' | 'compute_id' | 'compute_config' | 'version'>;
/** Undefined fields are not changed. */
export type ListenerChange = {
  readonly compute_config?: Listener['compute_config'] | undefined;
  readonly version?: Listener['version'] | undefined;
};

const COLUMNS = [
  'id',
  'compute_type',
  'compute_id',
  'compute_config',
  'version',
  'created_at',
  'updated_at',
] as const;

/** Oldest first, so that a new listener does not shift the pages before it. */
export async function listListeners(
  db: Database,
  workspaceId: string,
  { limit, offset }: Page,
): Promise<readonly Listener[]> {
  return db
    .selectFrom('listeners')
    .select(COLUMNS)
    .where('workspace_id', '=', workspaceId)
    .orderBy('created_at')
    .orderBy('id')
    .limit(limit)
    .offset(offset)
    .execute();
}

/** Throws `conflict` when the workspace already has a listener with this `compute_id`. */
export async function createListener(
  db: Database,
  workspaceId: string,
  { compute_config, ...listener }: NewListener,
): Promise<Listener> {
  const values = { ...listener, workspace_id: workspaceId, compute_config: JSON.stringify(compute_config) };
  try {
    return await db.insertInto('listeners').values(values).returning(COLUMNS).executeTakeFirstOrThrow();
  } catch (error) {
    if (!isDuplicate(error, 'listeners_compute')) throw error;
    throw new DomainError(
      'conflict',
      `Listener for workspace ID '${workspaceId}' and compute ID '${listener.compute_id}' already exists.`,
    );
  }
}

/** Throws `not_found`, also for a listener of another workspace. */
export async function readListener(db: Database, workspaceId: string, id: string): Promise<Listener> {
  const found = await db
    .selectFrom('listeners')
    .select(COLUMNS)
    .where('id', '=', id)
    .where('workspace_id', '=', workspaceId)
    .executeTakeFirst();
  return found ?? notFound(id);
}

export async function changeListener(
  db: Database,
  workspaceId: string,
  id: string,
  { compute_config, version }: ListenerChange,
): Promise<Listener> {
  const changed = await db
    .updateTable('listeners')
    .set({
      updated_at: sql<Date>`now()`,
      ...(compute_config === undefined ? {} : { compute_config: JSON.stringify(compute_config) }),
      ...(version === undefined ? {} : { version }),
    })
    .where('id', '=', id)
    .where('workspace_id', '=', workspaceId)
    .returning(COLUMNS)
    .executeTakeFirst();
  return changed ?? notFound(id);
}

export async function deleteListener(db: Database, workspaceId: string, id: string): Promise<void> {
  const { numDeletedRows } = await db
    .deleteFrom('listeners')
    .where('id', '=', id)
    .where('workspace_id', '=', workspaceId)
    .executeTakeFirst();
  if (numDeletedRows === 0n) notFound(id);
}

function notFound(id: string): never {
  throw new DomainError('not_found', `Listener ID ${id} not found.`);
}
