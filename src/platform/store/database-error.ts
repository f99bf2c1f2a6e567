// Classifies the errors of PostgreSQL and of the connection to it.
import { DomainError } from '../../base/domain-error.ts';

/** The constraint that an error names where a database has reached the limit of its deployment: the disk of the server is not full. */
export const SIZE_LIMIT = 'sallyport_database_bytes';
const DISK_FULL = '53100';

/** By then a connection has been replaced, and a lock is mostly free. */
const RETRY_MS = 1000;

// SQLSTATE codes (PostgreSQL manual, appendix A), and system error codes.
const UNAVAILABLE: ReadonlySet<string> = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'ENOENT', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH'],
  ...['ENOTFOUND', 'EAI_AGAIN'],
  // The server shuts down or starts, or an administrator ended the session; too many connections; no disk, no memory.
  ...['57P01', '57P02', '57P03', '57P05', '53300', '53100', '53200'],
  // Our own limits: statement, lock, idle in a transaction. A replica after a failover.
  ...['57014', '55P03', '25P03', '25006'],
]);
/** pg has no codes for these errors. */
const TIMEOUT_MESSAGE = 'Query read timeout';
const CONNECTION_LOST =
  /^(Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Client was closed)/;

/**
 * A DomainError with `error` as its cause: `storage_full` for a database that has reached its limit, `unavailable` when another attempt may
 * succeed; otherwise `error`.
 */
export function toDomainError(error: unknown): unknown {
  const isFull = isAboveLimit(error);
  if (!isFull && !isUnavailable(error)) return error;
  const failure = isFull
    ? new DomainError('storage_full', sentenceOf(error))
    : new DomainError('unavailable', 'The database is not available: try again', RETRY_MS);
  failure.cause = error;
  return failure;
}

/** unique_violation of this constraint: such a row exists already. */
export function isDuplicate(error: unknown, constraint: string): boolean {
  return codeOf(error) === '23505' && (error as { readonly constraint?: unknown }).constraint === constraint;
}

/** foreign_key_violation: the constraint whose row was deleted in the meantime; undefined for every other error. */
export function brokenReferenceOf(error: unknown): string | undefined {
  if (codeOf(error) !== '23503') return undefined;
  return String((error as { readonly constraint?: unknown }).constraint);
}

/** Whether no server listens, or the server is starting or shutting down. */
export function isNotReady(error: unknown): boolean {
  return (
    ['ENOENT', 'ECONNREFUSED', 'ECONNRESET', '57P03'].includes(codeOf(error) ?? '') || isConnectionLost(error)
  );
}

// The server shuts down or starts, or an administrator ended the session; no route, no name, no listener.
const UNREACHABLE: ReadonlySet<string> = new Set([
  ...[
    '57P01',
    '57P02',
    '57P03',
    'ECONNREFUSED',
    'ECONNRESET',
    'ENOENT',
    'EPIPE',
    'ETIMEDOUT',
    'EHOSTUNREACH',
  ],
  ...['ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN'],
]);

/** Whether no connection to the server can be opened; false for a pool without a free one. `error` may be a copy of one. */
export function isUnreachable(error: unknown): boolean {
  const code = codeOf(error) ?? '';
  if (UNREACHABLE.has(code) || code.startsWith('08')) return true;
  const { message } = Object(error) as { readonly message?: unknown };
  return typeof message === 'string' && message.startsWith('Connection terminated');
}

/** The SQLSTATE or the system error code, if the error has one. */
export function codeOf(error: unknown): string | undefined {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : undefined;
}

/** Whether the client gave up on a statement because the server did not respond. */
export function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.message === TIMEOUT_MESSAGE;
}

/**
 * Whether a named statement is no longer what this connection prepared: a table was changed meanwhile, or a pooler has
 * put another server connection behind it.
 */
export function isStaleStatement(error: unknown): boolean {
  const code = codeOf(error);
  // invalid_sql_statement_name, duplicate_prepared_statement
  if (code === '26000' || code === '42P05') return true;
  return code === '0A000' && error instanceof Error && error.message.startsWith('cached plan');
}

function isAboveLimit(error: unknown): error is Error {
  return (
    error instanceof Error &&
    codeOf(error) === DISK_FULL &&
    (error as { readonly constraint?: unknown }).constraint === SIZE_LIMIT
  );
}

/** What the runner of the deployment wrote. */
function sentenceOf({ message }: Error): string {
  return message.charAt(0).toUpperCase() + message.slice(1);
}

function isUnavailable(error: unknown): boolean {
  const code = codeOf(error) ?? '';
  if (UNAVAILABLE.has(code) || code.startsWith('08')) return true;
  return isConnectionLost(error) || isTimeout(error) || isStaleStatement(error);
}

function isConnectionLost(error: unknown): boolean {
  return error instanceof Error && CONNECTION_LOST.test(error.message);
}
