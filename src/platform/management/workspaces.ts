// The workspaces of an organization.
import { DomainError } from '../../base/domain-error.ts';
import { z } from '../../base/schema.ts';
import type { Page } from '../api/paging.ts';
import { type Database, isDuplicate } from '../store/database.ts';
import { sql } from '../store/sql.ts';
import { time } from './fields.ts';
import { lockOrganization } from './row-locks.ts';

export const workspace = z
  .strictObject({
    id: z.uuid(),
    organization_id: z.uuid(),
    display_name: z.string(),
    tenant_handle: z.string().nullable(),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'Workspace' });
const COLUMNS = workspace.keyof().options;

/** Oldest first; with `memberId`, only those that this user is a member of. */
export async function listWorkspaces(
  db: Database,
  organizationId: string,
  memberId: string | undefined,
  { limit, offset }: Page,
) {
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

export async function createWorkspace(trx: Database, organizationId: string, name: string) {
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

export async function renameWorkspace(trx: Database, organizationId: string, id: string, name: string) {
  try {
    return await trx
      .updateTable('workspaces')
      .set({ display_name: name, updated_at: sql<Date>`now()` })
      .where('organization_id', '=', organizationId)
      .where('id', '=', id)
      .returning(COLUMNS)
      .executeTakeFirstOrThrow(notFound);
  } catch (error) {
    throw nameTaken(error);
  }
}

/** Deletes its keys and everything in it too. An organization must keep one workspace. */
export async function deleteWorkspace(trx: Database, organizationId: string, id: string): Promise<void> {
  await lockOrganization(trx, organizationId);
  await trx
    .deleteFrom('workspaces')
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .returning('id')
    .executeTakeFirstOrThrow(notFound);
  await trx
    .selectFrom('workspaces')
    .select('id')
    .where('organization_id', '=', organizationId)
    .limit(1)
    .executeTakeFirstOrThrow(() => new DomainError('conflict', LAST_WORKSPACE));
}

const LAST_WORKSPACE = 'The last workspace of an organization cannot be deleted: create another one first';

export const notFound = (): DomainError => new DomainError('not_found', 'Workspace not found');

function nameTaken(error: unknown): unknown {
  return isDuplicate(error, 'workspaces_name')
    ? new DomainError('conflict', 'A workspace with this name already exists')
    : error;
}
