// Waits until a statement on this database waits for a lock.
import type { Database } from '../../../../src/platform/store/database.ts';
import { sql } from '../../../../src/platform/store/sql.ts';

export async function untilSomebodyWaits(db: Database): Promise<void> {
  for (;;) {
    const { rows } = await sql`
      select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.execute(
      db,
    );
    if (rows.length > 0) return;
  }
}
