// The retention of the records of sandboxes.
import type { Store } from '../store/database.ts';
import { sql } from '../store/sql.ts';

/** Rows of one delete statement: a long transaction would delay the vacuum of the table. */
const BATCH = 10_000;

/** Deletes the records received before `olderThan`; returns how many. */
export async function expireRecords({ db }: Pick<Store, 'db'>, olderThan: Date): Promise<number> {
  for (let expired = 0; ; ) {
    const { numAffectedRows = 0n } = await sql`
      delete from sandbox_records where ctid = any (array(
        select ctid from sandbox_records where received_at < ${olderThan} limit ${BATCH}))`.execute(db);
    expired += Number(numAffectedRows);
    if (numAffectedRows < BATCH) return expired;
  }
}

export const RECORD_RETENTION_MS = 30 * 24 * 60 * 60 * 1000;
