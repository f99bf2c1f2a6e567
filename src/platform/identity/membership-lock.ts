// The lock on a membership that a write was authorized by: until the commit nobody can end it or change its role.
import type { Database } from '../store/database.ts';

/** Outside a transaction, where a lock would end with its statement, it does nothing. */
export async function lockMembership(
  db: Database,
  table: 'organization_members' | 'workspace_members',
  /** Of the organization or of the workspace. */
  id: string,
  userId: string,
): Promise<void> {
  if (!db.isTransaction) return;
  const column = table === 'organization_members' ? 'organization_id' : 'workspace_id';
  // Not `for key share`: a change of the role must wait too.
  await db
    .selectFrom(table)
    .select('id')
    .where(column, '=', id)
    .where('user_id', '=', userId)
    .forShare()
    .execute();
}
