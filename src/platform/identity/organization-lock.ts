// The lock on an organization by which its revocations take turns. It comes before all other locks: of two administrators who
// remove each other, each holds what it was authorized by, which the other one waits for.
import type { Database } from '../store/database.ts';

/** Until the commit, also what an organization must always have stays as it is: an administrator, a workspace, a key. */
export async function lockOrganization(trx: Database, organizationId: string): Promise<void> {
  // Not `for update`: every insert that refers to the organization would wait for it.
  await trx
    .selectFrom('organizations')
    .select('id')
    .where('id', '=', organizationId)
    .forNoKeyUpdate()
    .executeTakeFirst();
}
