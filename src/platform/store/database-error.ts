// What an error of the database means. It must not know what was asked.
import { DomainError } from '../../base/domain-error.ts';

/** When to come back: by then a connection is new, and a lock mostly free. */
const RETRY_MS = 1000;

// PostgreSQL's codes (appendix A of its manual), and the system's.
const UNAVAILABLE: ReadonlySet<string> = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'ENOENT', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH'],
  ...['ENOTFOUND', 'EAI_AGAIN'],
  // It is shutting down, starting, or an administrator ended the session; too many connections; no disk, no memory.
  ...['57P01', '57P02', '57P03', '57P05', '53300', '53100', '53200'],
  // Our own bounds: statement, lock, idle in a transaction. A replica after a failover.
  ...['57014', '55P03', '25P03', '25006'],
]);
/** pg has no codes for these. */
const TIMEOUT_SAYING = 'Query read timeout';
const UNAVAILABLE_SAYINGS =
  /^(Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Client was closed)/;

/** `unavailable` for what may work in a moment, with the error as its cause; anything else as it is. */
export function toDomainError(error: unknown): unknown {
  if (!isUnavailable(error)) return error;
  const failure = new DomainError('unavailable', 'The database is not available: try again', RETRY_MS);
  failure.cause = error;
  return failure;
}

/** Whether `error` is the database's word that a row like this is there already, by the name of the constraint. */
export function isDuplicate(error: unknown, constraint: string): boolean {
  return codeOf(error) === '23505' && (error as { readonly constraint?: unknown }).constraint === constraint;
}

/** Whether `error` is the database's word that what a row refers to is not there: it went while we were on the way. */
export function isOrphan(error: unknown): boolean {
  return codeOf(error) === '23503';
}

/** Whether nobody listens yet, or a server that is on its way up or down. */
export function isNotReady(error: unknown): boolean {
  return ['ENOENT', 'ECONNREFUSED', 'ECONNRESET', '57P03'].includes(codeOf(error) ?? '') || isCutOff(error);
}

/** The code of the database or of the system, if it has one. */
export function codeOf(error: unknown): string | undefined {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : undefined;
}

/** Whether the server said nothing for so long that nobody waits for its answer any more. */
export function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.message === TIMEOUT_SAYING;
}

function isUnavailable(error: unknown): boolean {
  const code = codeOf(error) ?? '';
  return UNAVAILABLE.has(code) || code.startsWith('08') || isCutOff(error) || isTimeout(error);
}

function isCutOff(error: unknown): boolean {
  return error instanceof Error && UNAVAILABLE_SAYINGS.test(error.message);
}
