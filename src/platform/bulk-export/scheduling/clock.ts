// The clock by which exports are scheduled: that of the database, because processes of several machines share their rows.
import type { Database } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';

export type Clock = (db: Database) => Promise<Date>;

export const databaseClock: Clock = async (db) => {
  const { rows } = await sql<{ now: Date }>`select clock_timestamp() as now`.execute(db);
  const [row] = rows;
  if (row === undefined) throw new Error('the database did not say what time it is');
  return row.now;
};

export function addMs(time: Date, ms: number): Date {
  return new Date(time.getTime() + ms);
}
