// The time that a query of runs may take: the database ends a statement after that of its pool.
import { DomainError } from '../../../base/domain-error.ts';
import { codeOf } from '../../store/database-error.ts';

/** query_canceled, by the statement timeout. */
const CANCELED = '57014';

const SHORTER =
  'set start_time and end_time to a shorter time, name the project in session, or filter by trace';

/** Throws `timeout` with a cure where the database has ended the statement. */
export async function withinTime<T>(query: () => Promise<T>, cure: string = SHORTER): Promise<T> {
  try {
    return await query();
  } catch (error) {
    if (!(error instanceof Error) || codeOf(error.cause) !== CANCELED) throw error;
    const failure = new DomainError('timeout', `The query took longer than 10 s: ${cure}`);
    failure.cause = error.cause;
    throw failure;
  }
}
