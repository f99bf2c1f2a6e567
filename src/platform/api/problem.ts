// Errors as answers: the one place that knows which status a kind of refusal has. Nothing here repeats what was sent.
import { DomainError, type DomainErrorKind, InvalidInput } from '../../base/domain-error.ts';
import { capIssues } from '../../base/schema.ts';

export type Reply = {
  readonly status: number;
  /** JSON; none when undefined. */
  readonly body?: unknown;
  readonly fields?: Readonly<Record<string, string>>;
};

const STATUS: Readonly<Record<DomainErrorKind, number>> = {
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  unusable: 400,
  too_many: 429,
  unavailable: 503,
};

/** The answer to what a handler threw; undefined for a bug. */
export function respondWithError(error: unknown): Reply | undefined {
  if (error instanceof InvalidInput) return { status: 422, body: { detail: capIssues(error.issues) } };
  if (error instanceof Unreadable) return refusal(error.status, error.message);
  if (!(error instanceof DomainError)) return undefined;
  const fields = {
    ...(error.kind === 'unauthenticated' ? { 'WWW-Authenticate': 'Bearer' } : {}),
    ...(error.retryMs === undefined ? {} : { 'Retry-After': inSeconds(error.retryMs) }),
  };
  return { ...refusal(STATUS[error.kind], error.message), fields };
}

/** A body that cannot be taken as it came. */
export class Unreadable extends Error {
  override readonly name: string = 'Unreadable';
  readonly status: 400 | 408 | 413 | 415 | 431;

  constructor(status: 400 | 408 | 413 | 415 | 431, message: string) {
    super(message);
    this.status = status;
  }
}

export function refusal(status: number, detail: string): Reply {
  return { status, body: { detail } };
}

export const bug: Reply = refusal(
  500,
  'This is a fault of the platform: its log names it beside the X-Request-Id of this answer',
);

/** Rounded up: a client that comes back too early is refused again. */
function inSeconds(ms: number): string {
  return String(Math.max(1, Math.ceil(ms / 1000)));
}
