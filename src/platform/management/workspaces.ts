// The workspaces of an organization.
import { DomainError } from '../../base/domain-error.ts';
import { z } from '../../base/schema.ts';
import type { Page } from '../api/paging.ts';
import { cancelExportsOf } from '../bulk-export/contract.ts';
import type { Organization } from '../identity/authentication.ts';
import { lockOrganization } from '../identity/organization-lock.ts';
import { type Database, isDuplicate, type Transaction } from '../store/database.ts';
import { sql } from '../store/sql.ts';
import { time } from './fields.ts';

export const workspace = z
  .strictObject({
    id: z.uuid(),
    organization_id: z.uuid(),
    display_name: z.string(),
    tenant_handle: z.string().nullable(),
    is_personal: z.boolean(),
    is_deleted: z.literal(false).describe('A deleted workspace is gone'),
    data_plane_url: z.null(),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'Workspace' });
const COLUMNS = [
  'id',
  'organization_id',
  'display_name',
  'tenant_handle',
  'created_at',
  'updated_at',
] as const;

/** In the shape of the public API. A workspace is personal when its organization is. */
export function toWorkspace<R>(row: R, { isPersonal }: Pick<Organization, 'isPersonal'>) {
  return { ...row, is_personal: isPersonal, is_deleted: false as const, data_plane_url: null };
}

/** Oldest first, each with the role of the user; without `isEvery`, only those that this user is a member of. */
export async function listWorkspaces(
  db: Database,
  organizationId: string,
  { userId, isEvery }: { readonly userId: string | undefined; readonly isEvery: boolean },
  { limit, offset }: Page,
) {
  return db
    .selectFrom('workspaces as w')
    .leftJoin('workspace_members as m', (join) =>
      join.onRef('m.workspace_id', '=', 'w.id').on('m.user_id', '=', userId ?? null),
    )
    .select([
      'w.id',
      'w.organization_id',
      'w.display_name',
      'w.tenant_handle',
      'w.created_at',
      'w.updated_at',
    ])
    .select('m.role')
    .where('w.organization_id', '=', organizationId)
    .$if(!isEvery, (query) => query.where('m.id', 'is not', null))
    .orderBy('w.created_at')
    .orderBy('w.id')
    .limit(limit)
    .offset(offset)
    .execute();
}

export async function createWorkspace(
  trx: Database,
  organizationId: string,
  name: string,
  handle: string | null = null,
) {
  try {
    return await trx
      .insertInto('workspaces')
      .values({ organization_id: organizationId, display_name: name, tenant_handle: handle })
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

/** Deletes its keys and everything in it too; its bulk exports are cancelled first. An organization must keep one workspace. */
export async function deleteWorkspace(trx: Transaction, organizationId: string, id: string): Promise<void> {
  await lockOrganization(trx, organizationId);
  await cancelExportsOf(trx, { organizationId, workspaceId: id });
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
  if (isDuplicate(error, 'workspaces_name'))
    return new DomainError('conflict', 'A workspace with this name already exists');
  return isDuplicate(error, 'workspaces_handle')
    ? new DomainError('conflict', 'This tenant_handle is taken')
    : error;
}
