// Who belongs to an organization. It must not know HTTP, nor who asks.
import { DomainError } from '../../base/domain-error.ts';
import type { OrganizationRole, Permission } from '../identity/permission.ts';
import { permissionsOf } from '../identity/permission.ts';
import { requireWithin } from '../identity/standing.ts';
import { type Database, isDuplicate } from '../store/database.ts';
import type { Page } from './fields.ts';
import { holdOrganization } from './holding.ts';
import { requireAdministrator, requireManagerKey } from './manager-left.ts';

export type Member = {
  readonly id: string;
  readonly user_id: string;
  readonly email: string;
  readonly full_name: string | null;
  readonly role: string;
  readonly created_at: Date;
};

export type NewMember = {
  readonly email: string;
  readonly role: OrganizationRole;
  readonly fullName: string | null;
};

/** What is undefined stays as it is. */
export type MemberChange = {
  readonly role: OrganizationRole | undefined;
  readonly fullName: string | null | undefined;
};

/** What whoever changes something may himself. */
export type Held = ReadonlySet<Permission>;

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

/** The user may be known from another organization; the answer is the same. */
export async function addMember(
  trx: Database,
  organizationId: string,
  { email, role, fullName }: NewMember,
  held: Held,
): Promise<Member> {
  requireWithin(held, permissionsOf('organization', role));
  const user = await trx
    .insertInto('users')
    .values({ email })
    .onConflict((conflict) => conflict.constraint('users_email').doUpdateSet({ email }))
    .returning('id')
    .executeTakeFirstOrThrow();
  try {
    const made = await trx
      .insertInto('organization_members')
      .values({ organization_id: organizationId, user_id: user.id, full_name: fullName, role })
      .returning(['id', 'created_at'])
      .executeTakeFirstOrThrow();
    return { ...made, user_id: user.id, email, full_name: fullName, role };
  } catch (error) {
    if (!isDuplicate(error, 'organization_members_user')) throw error;
    throw new DomainError('conflict', 'This user is a member of the organization already');
  }
}

export async function changeMember(
  trx: Database,
  organizationId: string,
  id: string,
  { role, fullName }: MemberChange,
  held: Held,
): Promise<Member> {
  const before = await holdMembership(trx, organizationId, id, held);
  if (role !== undefined) requireWithin(held, permissionsOf('organization', role));
  const after = {
    role: role ?? before.role,
    full_name: fullName === undefined ? before.full_name : fullName,
  };
  await trx.updateTable('organization_members').set(after).where('id', '=', id).execute();
  if (before.role !== after.role) await requireRest(trx, organizationId, before.role);
  return { ...before, ...after };
}

/** With his personal tokens and his places in workspaces. */
export async function removeMember(
  trx: Database,
  organizationId: string,
  id: string,
  held: Held,
): Promise<void> {
  const { role } = await holdMembership(trx, organizationId, id, held);
  await trx.deleteFrom('organization_members').where('id', '=', id).execute();
  await requireRest(trx, organizationId, role);
}

/** The organization is held first: of two administrators who remove each other one comes too late. */
async function holdMembership(
  trx: Database,
  organizationId: string,
  id: string,
  held: Held,
): Promise<Member> {
  await holdOrganization(trx, organizationId);
  const found = await selectMembers(trx, organizationId).where('m.id', '=', id).executeTakeFirst();
  if (found === undefined) throw new DomainError('not_found', 'Member not found');
  requireWithin(held, permissionsOf('organization', found.role));
  return found;
}

async function requireRest(trx: Database, organizationId: string, formerRole: string): Promise<void> {
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
