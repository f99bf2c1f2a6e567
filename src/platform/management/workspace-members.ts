// The members of a workspace, each of them a member of its organization.
import { DomainError } from '../../base/domain-error.ts';
import type { Page } from '../api/paging.ts';
import { requireNoEscalation } from '../identity/authorization.ts';
import { type WorkspaceRole, permissionsOf } from '../identity/permission.ts';
import { type Database, isDuplicate } from '../store/database.ts';
import type { Member, Permissions } from './members.ts';
import { lockMember, lockWorkspace } from './row-locks.ts';

export type WorkspaceScope = { readonly organizationId: string; readonly workspaceId: string };

const COLUMNS = ['w.id', 'w.user_id', 'u.email', 'm.full_name', 'w.role', 'w.created_at'] as const;

/** Oldest first. Administrators of the organization have access without being listed. */
export async function listWorkspaceMembers(
  db: Database,
  scope: WorkspaceScope,
  { limit, offset }: Page,
): Promise<readonly Member[]> {
  return selectMembers(db, scope)
    .orderBy('w.created_at')
    .orderBy('w.id')
    .limit(limit)
    .offset(offset)
    .execute();
}

export async function addWorkspaceMember(
  trx: Database,
  scope: WorkspaceScope,
  { user_id, role }: { readonly user_id: string; readonly role: WorkspaceRole },
  own: Permissions,
): Promise<Member> {
  const { organizationId, workspaceId } = scope;
  requireNoEscalation(own, permissionsOf('workspace', role));
  await lockWorkspace(trx, organizationId, workspaceId);
  await lockMember(trx, organizationId, user_id);
  try {
    const added = await trx
      .insertInto('workspace_members')
      .values({ organization_id: organizationId, workspace_id: workspaceId, user_id, role })
      .returning('id')
      .executeTakeFirstOrThrow();
    return await selectMembers(trx, scope).where('w.id', '=', added.id).executeTakeFirstOrThrow();
  } catch (error) {
    if (!isDuplicate(error, 'workspace_members_user')) throw error;
    throw new DomainError('conflict', 'This user is already a member of the workspace');
  }
}

export async function changeWorkspaceMember(
  trx: Database,
  scope: WorkspaceScope,
  id: string,
  role: WorkspaceRole,
  own: Permissions,
): Promise<Member> {
  const before = await readMember(trx, scope, id, own);
  requireNoEscalation(own, permissionsOf('workspace', role));
  const changed = await trx
    .updateTable('workspace_members')
    .set({ role })
    .where('id', '=', id)
    .executeTakeFirst();
  return changed.numUpdatedRows === 0n ? notFound() : { ...before, role };
}

export async function removeWorkspaceMember(
  trx: Database,
  scope: WorkspaceScope,
  id: string,
  own: Permissions,
): Promise<void> {
  await readMember(trx, scope, id, own);
  const removed = await trx.deleteFrom('workspace_members').where('id', '=', id).executeTakeFirst();
  if (removed.numDeletedRows === 0n) notFound();
}

async function readMember(
  trx: Database,
  scope: WorkspaceScope,
  id: string,
  own: Permissions,
): Promise<Member> {
  const found = (await selectMembers(trx, scope).where('w.id', '=', id).executeTakeFirst()) ?? notFound();
  requireNoEscalation(own, permissionsOf('workspace', found.role));
  return found;
}

function notFound(): never {
  throw new DomainError('not_found', 'Member not found');
}

function selectMembers(db: Database, { organizationId, workspaceId }: WorkspaceScope) {
  return db
    .selectFrom('workspace_members as w')
    .innerJoin('users as u', 'u.id', 'w.user_id')
    .innerJoin('organization_members as m', (join) =>
      join.onRef('m.organization_id', '=', 'w.organization_id').onRef('m.user_id', '=', 'w.user_id'),
    )
    .select(COLUMNS)
    .where('w.organization_id', '=', organizationId)
    .where('w.workspace_id', '=', workspaceId);
}
