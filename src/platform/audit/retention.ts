// Removes events that are older than the retention time, oldest first and in slices, since the writers of an organization
// wait for each slice. The database itself refuses to remove any younger event.
import type { Store } from '../store/database.ts';
import { sql } from '../store/sql.ts';

const RETENTION_MS = 400 * 24 * 60 * 60 * 1000;
const SLICE = 5000;

/** Returns the number of removed events. */
export async function expireEvents({ db }: Store, now: Date): Promise<number> {
  const before = new Date(now.getTime() - RETENTION_MS);
  const heads = await db
    .selectFrom('audit_heads')
    .select('organization_id')
    .whereRef('floor_seq', '<', 'seq')
    .execute();
  let removed = 0;
  for (const { organization_id } of heads) {
    for (let slice = SLICE; slice === SLICE; removed += slice) {
      const expire = sql<{ readonly removed: number }>`
        select public.audit_expire(${organization_id}, ${before}, ${SLICE}) as removed`;
      slice = (await expire.execute(db)).rows[0]?.removed ?? 0;
    }
  }
  return removed;
}
