// An organization without an administrator or a key that manages it could not be repaired via its API: changes that
// would leave one are rejected. Checked at the end of a change, while the organization is locked.
import { DomainError } from '../../base/domain-error.ts';
import { type OrganizationRole, organizationRoles, permissionsOf } from '../identity/permission.ts';
import type { Database } from '../store/database.ts';
import { sql } from '../store/sql.ts';

const ADMIN: OrganizationRole = 'ORGANIZATION_ADMIN';
const MANAGERS = Object.keys(organizationRoles).filter((role) =>
  permissionsOf('organization', role).has('organization:manage'),
);
const LAST_ADMINISTRATOR =
  'The last administrator of an organization cannot be removed or demoted: add another one first';
const LAST_KEY = 'No API key would be left that can manage the organization: create another one first';

export async function requireAdministrator(trx: Database, organizationId: string): Promise<void> {
  await trx
    .selectFrom('organization_members')
    .select('id')
    .where('organization_id', '=', organizationId)
    .where('role', '=', ADMIN)
    .limit(1)
    .executeTakeFirstOrThrow(() => new DomainError('conflict', LAST_ADMINISTRATOR));
}

/** An unexpired key of the organization itself, or of a member who manages it. */
export async function requireManagerKey(trx: Database, organizationId: string): Promise<void> {
  await trx
    .selectFrom('api_keys as k')
    .leftJoin('organization_members as m', (join) =>
      join.onRef('m.organization_id', '=', 'k.organization_id').onRef('m.user_id', '=', 'k.user_id'),
    )
    .select('k.id')
    .where('k.organization_id', '=', organizationId)
    .where('k.workspace_id', 'is', null)
    .where((eb) => eb.or([eb('k.role', 'in', MANAGERS), eb('m.role', 'in', MANAGERS)]))
    .where((eb) => eb.or([eb('k.expires_at', 'is', null), eb('k.expires_at', '>', sql<Date>`now()`)]))
    .limit(1)
    .executeTakeFirstOrThrow(() => new DomainError('conflict', LAST_KEY));
}
