// The lock on a membership that a write was authorized by: until the commit nobody can end it or change its role.
import type { Database } from '../store/database.ts';
import { defineStatement } from '../store/statement.ts';

/** Outside a transaction, where a lock would end with its statement, it does nothing. */
export async function lockMembership(
  db: Database,
  table: 'organization_members' | 'workspace_members',
  /** Of the organization or of the workspace. */
  id: string,
  userId: string,
): Promise<void> {
  if (!db.isTransaction) return;
  await (table === 'organization_members' ? lockInOrganization : lockInWorkspace)(db, { id, userId });
}

type Membership = { readonly id: string; readonly userId: string };

// Not `for key share`: a change of the role must wait too.
const lockInOrganization = defineStatement('lock-organization-member', (db, { id, userId }: Membership) =>
  db
    .selectFrom('organization_members')
    .select('id')
    .where('organization_id', '=', id)
    .where('user_id', '=', userId)
    .forShare()
    .compile(),
);
const lockInWorkspace = defineStatement('lock-workspace-member', (db, { id, userId }: Membership) =>
  db
    .selectFrom('workspace_members')
    .select('id')
    .where('workspace_id', '=', id)
    .where('user_id', '=', userId)
    .forShare()
    .compile(),
);
