// A connection that the server refuses, or that cannot be opened, as what the operator must change: the variable that it comes from.
import { InputError } from '../../base/input-error.ts';
import type { Connection } from './database.ts';
import { codeOf, isUnreachable } from './database-error.ts';

/** No such role or password, no such database. */
const REFUSALS: ReadonlySet<string> = new Set(['28000', '28P01', '3D000']);

/** An error of the connection names the variable that the connection comes from; the text of PostgreSQL names no password. */
export async function namingVariable<T>(
  { host, port }: Connection,
  variable: string,
  work: Promise<T>,
): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    const { message } = cause as Error;
    if (REFUSALS.has(codeOf(cause) ?? ''))
      throw new InputError(`${variable}: the server refuses the connection: ${message}`, { cause });
    const isSilent = message === 'timeout expired';
    if (!isUnreachable(cause) && !isSilent) throw cause;
    // A name with several addresses has an error for each, and no text.
    const reason = isSilent ? 'it does not respond' : message || codeOf(cause);
    throw new Error(`The database that ${variable} names (${host}:${port}) cannot be reached: ${reason}`, {
      cause,
    });
  }
}
