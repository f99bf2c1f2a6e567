// The members of an organization.
import { DomainError } from '../../base/domain-error.ts';
import type { OrganizationGrant } from '../api/access.ts';
import type { Page } from '../api/paging.ts';
import type { Handling } from '../api/route.ts';
import { requireNoEscalation } from '../identity/authorization.ts';
import { lockOrganization } from '../identity/organization-lock.ts';
import { type OrganizationRole, permissionsOf } from '../identity/permission.ts';
import { type Database, isDuplicate } from '../store/database.ts';
import { requireAdministrator, requireManagerKey } from './last-administrator.ts';

/** `R` is its role: in the organization, or in one workspace. */
export type Member<R extends string> = {
  readonly id: string;
  readonly user_id: string;
  readonly email: string;
  readonly full_name: string | null;
  readonly role: R;
  readonly created_at: Date;
};

/** Which members are listed; all when everything is absent. */
export type MemberFilter = {
  readonly emails?: readonly string[] | undefined;
  readonly userIds?: readonly string[] | undefined;
  readonly isNewestFirst?: boolean;
};

/** Undefined fields are not changed. */
type MemberChange = {
  readonly role?: OrganizationRole | undefined;
  readonly full_name?: string | null | undefined;
};
type NewMember = MemberChange & { readonly email: string; readonly role: OrganizationRole };

/** The organization of a request. The caller's permissions limit the roles that they can assign or take away. */
type Scope = Pick<OrganizationGrant, 'organizationId' | 'permissions'> & Handling;

const COLUMNS = ['m.id', 'm.user_id', 'u.email', 'm.full_name', 'm.role', 'm.created_at'] as const;
const ADMIN: OrganizationRole = 'ORGANIZATION_ADMIN';

export async function listMembers(
  db: Database,
  organizationId: string,
  { limit, offset }: Page,
  { emails = [], userIds = [], isNewestFirst = false }: MemberFilter = {},
) {
  const direction = isNewestFirst ? 'desc' : 'asc';
  return selectMembers(db, organizationId)
    .select((eb) =>
      eb
        .selectFrom('workspace_members as w')
        .select(({ fn }) => fn.agg<string[] | null>('array_agg', ['w.workspace_id']).as('ids'))
        .whereRef('w.organization_id', '=', 'm.organization_id')
        .whereRef('w.user_id', '=', 'm.user_id')
        .as('workspaces'),
    )
    .$if(emails.length > 0, (query) =>
      query.where(
        'u.email',
        'in',
        emails.map((email) => email.toLowerCase()),
      ),
    )
    .$if(userIds.length > 0, (query) => query.where('m.user_id', 'in', userIds))
    .orderBy('m.created_at', direction)
    .orderBy('m.id', direction)
    .limit(limit)
    .offset(offset)
    .execute();
}

/** The user may already be a member of another organization: the result does not show it. */
export async function addMember(
  { db, organizationId, permissions }: Scope,
  { email, role, full_name = null }: NewMember,
): Promise<Member<OrganizationRole>> {
  requireNoEscalation(permissions, permissionsOf('organization', role));
  const user = await findOrAddUser(db, email);
  try {
    const added = await db
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

/** Locks no user that exists: the organizations that share it must not wait for each other. */
async function findOrAddUser(db: Database, email: string): Promise<{ readonly id: string }> {
  const found = db.selectFrom('users').select('id').where('email', '=', email);
  const added = db
    .insertInto('users')
    .values({ email })
    .onConflict((conflict) => conflict.constraint('users_email').doNothing())
    .returning('id');
  return (
    (await found.executeTakeFirst()) ??
    (await added.executeTakeFirst()) ??
    // Another organization has added it meanwhile.
    (await found.executeTakeFirstOrThrow())
  );
}

export async function changeMember(
  scope: Scope,
  id: string,
  { role, full_name }: MemberChange,
): Promise<Member<OrganizationRole>> {
  const before = await lockMembership(scope, id);
  if (role !== undefined) requireNoEscalation(scope.permissions, permissionsOf('organization', role));
  const after = {
    role: role ?? before.role,
    full_name: full_name === undefined ? before.full_name : full_name,
  };
  await scope.db.updateTable('organization_members').set(after).where('id', '=', id).execute();
  if (before.role !== after.role) await requireManagers(scope, before.role);
  return { ...before, ...after };
}

/** Also removes the member's personal tokens and workspace memberships. */
export async function removeMember(scope: Scope, id: string): Promise<void> {
  const { role } = await lockMembership(scope, id);
  await scope.db.deleteFrom('organization_members').where('id', '=', id).execute();
  await requireManagers(scope, role);
}

/** The organization is locked first: of two administrators who remove each other, the second is rejected. */
async function lockMembership({ db, organizationId, permissions }: Scope, id: string) {
  await lockOrganization(db, organizationId);
  const found = await selectMembers(db, organizationId)
    .where('m.id', '=', id)
    .executeTakeFirstOrThrow(noMember);
  requireNoEscalation(permissions, permissionsOf('organization', found.role));
  return found;
}

async function requireManagers({ db, organizationId }: Scope, formerRole: string): Promise<void> {
  if (formerRole === ADMIN) await requireAdministrator(db, organizationId);
  if (permissionsOf('organization', formerRole).has('organization:manage'))
    await requireManagerKey(db, organizationId);
}

export const noMember = (): DomainError => new DomainError('not_found', 'Member not found');

function selectMembers(db: Database, organizationId: string) {
  return db
    .selectFrom('organization_members as m')
    .innerJoin('users as u', 'u.id', 'm.user_id')
    .select(COLUMNS)
    .$narrowType<{ role: OrganizationRole }>()
    .where('m.organization_id', '=', organizationId);
}
