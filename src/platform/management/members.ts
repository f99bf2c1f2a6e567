// The members of an organization.
import { DomainError } from '../../base/domain-error.ts';
import type { Page } from '../api/paging.ts';
import { requireNoEscalation } from '../identity/authorization.ts';
import { type OrganizationRole, type Permission, permissionsOf } from '../identity/permission.ts';
import { type Database, isDuplicate } from '../store/database.ts';
import { requireAdministrator, requireManagerKey } from './last-administrator.ts';
import { lockOrganization } from './row-locks.ts';

export type Member = {
  readonly id: string;
  readonly user_id: string;
  readonly email: string;
  readonly full_name: string | null;
  readonly role: string;
  readonly created_at: Date;
};

export type NewMember = Pick<Member, 'email' | 'full_name'> & { readonly role: OrganizationRole };

/** Undefined fields are not changed. */
export type MemberChange = {
  readonly role?: OrganizationRole | undefined;
  readonly full_name?: string | null | undefined;
};

/** The permissions of the caller, which limit the roles that they can assign or take away. */
export type Permissions = ReadonlySet<Permission>;

const COLUMNS = ['m.id', 'm.user_id', 'u.email', 'm.full_name', 'm.role', 'm.created_at'] as const;
const ADMIN: OrganizationRole = 'ORGANIZATION_ADMIN';

/** Oldest first. */
export async function listMembers(
  db: Database,
  organizationId: string,
  { limit, offset }: Page,
): Promise<readonly Member[]> {
  return selectMembers(db, organizationId)
    .orderBy('m.created_at')
    .orderBy('m.id')
    .limit(limit)
    .offset(offset)
    .execute();
}

/** The user may already be a member of another organization: the result does not show it. */
export async function addMember(
  trx: Database,
  organizationId: string,
  { email, role, full_name }: NewMember,
  own: Permissions,
): Promise<Member> {
  requireNoEscalation(own, permissionsOf('organization', role));
  const user = await trx
    .insertInto('users')
    .values({ email })
    .onConflict((conflict) => conflict.constraint('users_email').doUpdateSet({ email }))
    .returning('id')
    .executeTakeFirstOrThrow();
  try {
    const added = await trx
      .insertInto('organization_members')
      .values({ organization_id: organizationId, user_id: user.id, full_name, role })
      .returning(['id', 'created_at'])
      .executeTakeFirstOrThrow();
    return { ...added, user_id: user.id, email, full_name, role };
  } catch (error) {
    if (!isDuplicate(error, 'organization_members_user')) throw error;
    throw new DomainError('conflict', 'This user is already a member of the organization');
  }
}

export async function changeMember(
  trx: Database,
  organizationId: string,
  id: string,
  { role, full_name }: MemberChange,
  own: Permissions,
): Promise<Member> {
  const before = await lockMembership(trx, organizationId, id, own);
  if (role !== undefined) requireNoEscalation(own, permissionsOf('organization', role));
  const after = {
    role: role ?? before.role,
    full_name: full_name === undefined ? before.full_name : full_name,
  };
  await trx.updateTable('organization_members').set(after).where('id', '=', id).execute();
  if (before.role !== after.role) await requireManagers(trx, organizationId, before.role);
  return { ...before, ...after };
}

/** Also removes the member's personal tokens and workspace memberships. */
export async function removeMember(
  trx: Database,
  organizationId: string,
  id: string,
  own: Permissions,
): Promise<void> {
  const { role } = await lockMembership(trx, organizationId, id, own);
  await trx.deleteFrom('organization_members').where('id', '=', id).execute();
  await requireManagers(trx, organizationId, role);
}

/** The organization is locked first: of two administrators who remove each other, the second is rejected. */
async function lockMembership(
  trx: Database,
  organizationId: string,
  id: string,
  own: Permissions,
): Promise<Member> {
  await lockOrganization(trx, organizationId);
  const found = await selectMembers(trx, organizationId).where('m.id', '=', id).executeTakeFirst();
  if (found === undefined) throw new DomainError('not_found', 'Member not found');
  requireNoEscalation(own, permissionsOf('organization', found.role));
  return found;
}

async function requireManagers(trx: Database, organizationId: string, formerRole: string): Promise<void> {
  if (formerRole === ADMIN) await requireAdministrator(trx, organizationId);
  if (permissionsOf('organization', formerRole).has('organization:manage'))
    await requireManagerKey(trx, organizationId);
}

function selectMembers(db: Database, organizationId: string) {
  return db
    .selectFrom('organization_members as m')
    .innerJoin('users as u', 'u.id', 'm.user_id')
    .select(COLUMNS)
    .where('m.organization_id', '=', organizationId);
}
