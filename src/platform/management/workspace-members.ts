// Who of the members of an organization works in a workspace, and as what. It must not know HTTP, nor who asks.
import { DomainError } from '../../base/domain-error.ts';
import { type WorkspaceRole, permissionsOf } from '../identity/permission.ts';
import { requireWithin } from '../identity/standing.ts';
import { type Database, isDuplicate } from '../store/database.ts';
import type { Page } from './fields.ts';
import { holdMember, holdWorkspace } from './holding.ts';
import type { Held, Member } from './members.ts';

export type Place = { readonly organizationId: string; readonly workspaceId: string };

const COLUMNS = ['w.id', 'w.user_id', 'u.email', 'm.full_name', 'w.role', 'w.created_at'] as const;

/** Oldest first. Administrators of the organization are everywhere without being listed. */
export async function listWorkspaceMembers(
  db: Database,
  place: Place,
  { limit, offset }: Page,
): Promise<readonly Member[]> {
  return selectMembers(db, place)
    .orderBy('w.created_at')
    .orderBy('w.id')
    .limit(limit)
    .offset(offset)
    .execute();
}

export async function addWorkspaceMember(
  trx: Database,
  place: Place,
  { userId, role }: { readonly userId: string; readonly role: WorkspaceRole },
  held: Held,
): Promise<Member> {
  const { organizationId, workspaceId } = place;
  requireWithin(held, permissionsOf('workspace', role));
  await holdWorkspace(trx, organizationId, workspaceId);
  await holdMember(trx, organizationId, userId);
  try {
    const made = await trx
      .insertInto('workspace_members')
      .values({ organization_id: organizationId, workspace_id: workspaceId, user_id: userId, role })
      .returning('id')
      .executeTakeFirstOrThrow();
    return await selectMembers(trx, place).where('w.id', '=', made.id).executeTakeFirstOrThrow();
  } catch (error) {
    if (!isDuplicate(error, 'workspace_members_user')) throw error;
    throw new DomainError('conflict', 'This user is a member of the workspace already');
  }
}

export async function changeWorkspaceMember(
  trx: Database,
  place: Place,
  id: string,
  role: WorkspaceRole,
  held: Held,
): Promise<Member> {
  const before = await readMember(trx, place, id, held);
  requireWithin(held, permissionsOf('workspace', role));
  const changed = await trx
    .updateTable('workspace_members')
    .set({ role })
    .where('id', '=', id)
    .executeTakeFirst();
  return changed.numUpdatedRows === 0n ? notFound() : { ...before, role };
}

export async function removeWorkspaceMember(
  trx: Database,
  place: Place,
  id: string,
  held: Held,
): Promise<void> {
  await readMember(trx, place, id, held);
  const removed = await trx.deleteFrom('workspace_members').where('id', '=', id).executeTakeFirst();
  if (removed.numDeletedRows === 0n) notFound();
}

async function readMember(trx: Database, place: Place, id: string, held: Held): Promise<Member> {
  const found = (await selectMembers(trx, place).where('w.id', '=', id).executeTakeFirst()) ?? notFound();
  requireWithin(held, permissionsOf('workspace', found.role));
  return found;
}

function notFound(): never {
  throw new DomainError('not_found', 'Member not found');
}

function selectMembers(db: Database, { organizationId, workspaceId }: Place) {
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
