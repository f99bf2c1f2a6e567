// The time that a query of runs may take, however many statements it consists of: the database ends each of them by then.
import { DomainError } from '../../../base/domain-error.ts';
import type { Database, Reader } from '../../store/database.ts';
import { codeOf } from '../../store/database-error.ts';
import { sql } from '../../store/sql.ts';

/** Also of each statement of the pool that requests read by (`store/pools.ts`). */
const QUERY_MS = 10_000;

/** query_canceled, by the statement timeout. */
const CANCELED = '57014';

const SHORTER =
  'set start_time and end_time to a shorter time, name the project in session, or filter by trace';

/** When a query that begins now has to end, by `performance.now()`. */
export function startDeadline(): number {
  return performance.now() + QUERY_MS;
}

/** A statement that is as good as the first one of its query needs no limit of its own. */
const FIRST_MS = 100;

/** Runs one statement. Throws `timeout` with a cure where the deadline has passed, or the database has ended it. */
export async function withinTime<T>(
  db: Reader,
  deadlineMs: number,
  query: (db: Reader) => Promise<T>,
  cure: string = SHORTER,
): Promise<T> {
  const leftMs = Math.ceil(deadlineMs - performance.now());
  if (leftMs <= 0) throw toTimeout(cure);
  try {
    return leftMs > QUERY_MS - FIRST_MS ? await query(db) : await limited(db, leftMs, query);
  } catch (error) {
    if (!(error instanceof Error) || codeOf(error.cause) !== CANCELED) throw error;
    throw toTimeout(cure, error.cause);
  }
}

function toTimeout(cure: string, cause?: unknown): DomainError {
  const failure = new DomainError('timeout', `The query took longer than 10 s: ${cure}`);
  failure.cause = cause;
  return failure;
}

/** In a transaction, with which the limit ends: the next user of the connection has that of the pool. */
function limited<T>(db: Reader, leftMs: number, query: (db: Reader) => Promise<T>): Promise<T> {
  // Every reader is a whole database, of which its type hides the rest.
  const whole = db as Database;
  const run = async (trx: Database): Promise<T> => {
    await sql`select set_config('statement_timeout', ${String(leftMs)}, true)`.execute(trx);
    return query(trx);
  };
  return whole.isTransaction ? run(whole) : whole.transaction().execute(run);
}
