// The members of a workspace, each of them a member of its organization.
import { DomainError } from '../../base/domain-error.ts';
import type { WorkspaceGrant } from '../api/access.ts';
import type { Page } from '../api/paging.ts';
import type { Handling } from '../api/route.ts';
import { requireNoEscalation } from '../identity/authorization.ts';
import { type WorkspaceRole, permissionsOf } from '../identity/permission.ts';
import { isDuplicate } from '../store/database.ts';
import { type Member, noMember } from './members.ts';
import { lockMember, lockWorkspace } from './row-locks.ts';

/** The workspace of a request. The caller's permissions limit the roles that they can assign or take away. */
type Scope = Pick<WorkspaceGrant, 'organizationId' | 'workspaceId' | 'permissions'> & Handling;

const COLUMNS = ['w.id', 'w.user_id', 'u.email', 'm.full_name', 'w.role', 'w.created_at'] as const;

/** Oldest first. Administrators of the organization have access without being listed. */
export async function listWorkspaceMembers(scope: Omit<Scope, 'permissions'>, { limit, offset }: Page) {
  return selectMembers(scope).orderBy('w.created_at').orderBy('w.id').limit(limit).offset(offset).execute();
}

export async function addWorkspaceMember(
  scope: Scope,
  { user_id, role }: { readonly user_id: string; readonly role: WorkspaceRole },
): Promise<Member<WorkspaceRole>> {
  const { db, organizationId, workspaceId, permissions } = scope;
  requireNoEscalation(permissions, permissionsOf('workspace', role));
  await lockWorkspace(db, organizationId, workspaceId);
  await lockMember(db, organizationId, user_id);
  try {
    const added = await db
      .insertInto('workspace_members')
      .values({ organization_id: organizationId, workspace_id: workspaceId, user_id, role })
      .returning('id')
      .executeTakeFirstOrThrow();
    return await selectMembers(scope).where('w.id', '=', added.id).executeTakeFirstOrThrow();
  } catch (error) {
    if (!isDuplicate(error, 'workspace_members_user')) throw error;
    throw new DomainError('conflict', 'This user is already a member of the workspace');
  }
}

/** Without a role nothing is changed. */
export async function changeWorkspaceMember(
  scope: Scope,
  id: string,
  wanted: WorkspaceRole | undefined,
): Promise<Member<WorkspaceRole>> {
  const before = await readMember(scope, id);
  const role = wanted ?? before.role;
  requireNoEscalation(scope.permissions, permissionsOf('workspace', role));
  const change = scope.db.updateTable('workspace_members').set({ role }).where('id', '=', id);
  await change.returning('id').executeTakeFirstOrThrow(noMember);
  return { ...before, role };
}

export async function removeWorkspaceMember(scope: Scope, id: string): Promise<void> {
  await readMember(scope, id);
  const removal = scope.db.deleteFrom('workspace_members').where('id', '=', id);
  await removal.returning('id').executeTakeFirstOrThrow(noMember);
}

async function readMember(scope: Scope, id: string): Promise<Member<WorkspaceRole>> {
  const found = await selectMembers(scope).where('w.id', '=', id).executeTakeFirstOrThrow(noMember);
  requireNoEscalation(scope.permissions, permissionsOf('workspace', found.role));
  return found;
}

function selectMembers({ db, organizationId, workspaceId }: Omit<Scope, 'permissions'>) {
  return db
    .selectFrom('workspace_members as w')
    .innerJoin('users as u', 'u.id', 'w.user_id')
    .innerJoin('organization_members as m', (join) =>
      join.onRef('m.organization_id', '=', 'w.organization_id').onRef('m.user_id', '=', 'w.user_id'),
    )
    .select(COLUMNS)
    .$narrowType<{ role: WorkspaceRole }>()
    .where('w.organization_id', '=', organizationId)
    .where('w.workspace_id', '=', workspaceId);
}
