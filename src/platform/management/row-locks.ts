// Row locks until the commit, so that what a change was checked against is still true when it is written.
import { DomainError } from '../../base/domain-error.ts';
import type { Database } from '../store/database.ts';

/** Throws `not_found` when the workspace was deleted after the request was authorized. */
export async function lockWorkspace(trx: Database, organizationId: string, workspaceId: string) {
  await trx
    .selectFrom('workspaces')
    .select('id')
    .where('organization_id', '=', organizationId)
    .where('id', '=', workspaceId)
    .forKeyShare()
    .executeTakeFirstOrThrow(() => new DomainError('not_found', 'Workspace not found'));
}

/** The membership of a user in the organization, with the role there. */
export async function lockMember(trx: Database, organizationId: string, userId: string) {
  return trx
    .selectFrom('organization_members')
    .select('role')
    .where('organization_id', '=', organizationId)
    .where('user_id', '=', userId)
    .forShare()
    .executeTakeFirstOrThrow(() => new DomainError('not_found', 'User not found in this organization'));
}
