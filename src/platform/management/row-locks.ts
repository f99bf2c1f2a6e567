// Rows that are held until the commit, so that what is judged by them is still so when it is written.
import { DomainError } from '../../base/domain-error.ts';
import type { Database } from '../store/database.ts';

/** One change at a time of what an organization must always have: an administrator, a workspace, a key. */
export async function holdOrganization(trx: Database, organizationId: string): Promise<void> {
  // Not `for update`, for which every insert that refers to the organization would wait.
  await trx
    .selectFrom('organizations')
    .select('id')
    .where('id', '=', organizationId)
    .forNoKeyUpdate()
    .executeTakeFirst();
}

/** The workspace may have gone since the request was let in. */
export async function holdWorkspace(
  trx: Database,
  organizationId: string,
  workspaceId: string,
): Promise<void> {
  const found = await trx
    .selectFrom('workspaces')
    .select('id')
    .where('organization_id', '=', organizationId)
    .where('id', '=', workspaceId)
    .forKeyShare()
    .executeTakeFirst();
  if (found === undefined) throw new DomainError('not_found', 'Workspace not found');
}

/** A member of the organization, by his user; what he may there. */
export async function holdMember(
  trx: Database,
  organizationId: string,
  userId: string,
): Promise<{ readonly role: string }> {
  const found = await trx
    .selectFrom('organization_members')
    .select('role')
    .where('organization_id', '=', organizationId)
    .where('user_id', '=', userId)
    .forShare()
    .executeTakeFirst();
  if (found === undefined) throw new DomainError('not_found', 'User not found in this organization');
  return found;
}
