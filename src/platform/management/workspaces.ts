// The workspaces of an organization.
import { DomainError } from '../../base/domain-error.ts';
import type { Page } from '../api/paging.ts';
import { type Database, isDuplicate } from '../store/database.ts';
import { type Selectable, sql } from '../store/sql.ts';
import type { WorkspaceRow } from '../store/tables.ts';
import { lockOrganization } from './row-locks.ts';

export type Workspace = Selectable<WorkspaceRow>;

const COLUMNS = [
  'id',
  'organization_id',
  'display_name',
  'tenant_handle',
  'created_at',
  'updated_at',
] as const;

/** Oldest first; with `memberId`, only those that this user is a member of. */
export async function listWorkspaces(
  db: Database,
  organizationId: string,
  memberId: string | undefined,
  { limit, offset }: Page,
): Promise<readonly Workspace[]> {
  return db
    .selectFrom('workspaces as w')
    .select(COLUMNS)
    .where('organization_id', '=', organizationId)
    .$if(memberId !== undefined, (query) =>
      query.where(({ exists, selectFrom }) =>
        exists(
          selectFrom('workspace_members as m')
            .select('m.id')
            .whereRef('m.workspace_id', '=', 'w.id')
            .where('m.user_id', '=', memberId!),
        ),
      ),
    )
    .orderBy('created_at')
    .orderBy('id')
    .limit(limit)
    .offset(offset)
    .execute();
}

export async function createWorkspace(
  trx: Database,
  organizationId: string,
  name: string,
): Promise<Workspace> {
  try {
    return await trx
      .insertInto('workspaces')
      .values({ organization_id: organizationId, display_name: name, tenant_handle: null })
      .returning(COLUMNS)
      .executeTakeFirstOrThrow();
  } catch (error) {
    throw nameTaken(error);
  }
}

export async function renameWorkspace(
  trx: Database,
  organizationId: string,
  id: string,
  name: string,
): Promise<Workspace> {
  try {
    const renamed = await trx
      .updateTable('workspaces')
      .set({ display_name: name, updated_at: sql<Date>`now()` })
      .where('organization_id', '=', organizationId)
      .where('id', '=', id)
      .returning(COLUMNS)
      .executeTakeFirst();
    return renamed ?? notFound();
  } catch (error) {
    throw nameTaken(error);
  }
}

/** Deletes its keys and everything in it too. An organization must keep one workspace. */
export async function deleteWorkspace(trx: Database, organizationId: string, id: string): Promise<void> {
  await lockOrganization(trx, organizationId);
  const deleted = await trx
    .deleteFrom('workspaces')
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .returning('id')
    .executeTakeFirst();
  if (deleted === undefined) notFound();
  const another = await trx
    .selectFrom('workspaces')
    .select('id')
    .where('organization_id', '=', organizationId)
    .limit(1)
    .executeTakeFirst();
  if (another === undefined)
    throw new DomainError(
      'conflict',
      'The last workspace of an organization cannot be deleted: create another one first',
    );
}

export function notFound(): never {
  throw new DomainError('not_found', 'Workspace not found');
}

function nameTaken(error: unknown): unknown {
  return isDuplicate(error, 'workspaces_name')
    ? new DomainError('conflict', 'A workspace with this name already exists')
    : error;
}
