// Errors that the domain throws on purpose, each with a kind. One file of the API maps kinds to HTTP statuses. The
// message is shown to the caller, so it never contains what the caller sent.
import type { Issue } from './schema.ts';

export type DomainErrorKind =
  /** The caller is not known. */
  | 'unauthenticated'
  /** The caller is known and lacks the permission. */
  | 'forbidden'
  | 'not_found'
  /** It exists already, or is in a state that does not allow this. */
  | 'conflict'
  /** The request is well formed and cannot be carried out. */
  | 'unusable'
  /** The resource is not in the state that this needs; it may be later. */
  | 'not_ready'
  /** It was begun, and has not happened in the time that the caller waits. */
  | 'timeout'
  /** What was asked for exists, and does not run. */
  | 'start_failed'
  | 'too_many'
  /** A quota is used up: unlike `too_many`, waiting alone does not help. */
  | 'quota_exceeded'
  /** What it would be stored in is full: deleting something helps. */
  | 'storage_full'
  /** This installation cannot do it. */
  | 'not_supported'
  /** Something that this needs is temporarily missing: try again. */
  | 'unavailable';

export class DomainError extends Error {
  override readonly name: string = 'DomainError';
  readonly kind: DomainErrorKind;
  /** Time to wait before the next attempt, for `too_many` and `unavailable`. */
  readonly retryMs: number | undefined;

  constructor(kind: DomainErrorKind, message: string, retryMs?: number) {
    super(message);
    this.kind = kind;
    this.retryMs = retryMs;
  }
}

/** The input is invalid: every issue at once, each with its location in the request. */
export class InvalidInput extends Error {
  override readonly name: string = 'InvalidInput';
  readonly issues: readonly Issue[];

  constructor(issues: readonly Issue[]) {
    super('the input is invalid');
    this.issues = issues;
  }
}

/** A refusal that code of a deployment has decided, with its status and header fields. */
export class GivenRefusal extends Error {
  override readonly name: string = 'GivenRefusal';
  /** 400 to 599 */
  readonly status: number;
  readonly fields: Readonly<Record<string, string>>;

  constructor(status: number, message: string, fields: Readonly<Record<string, string>> = {}) {
    super(message);
    this.status = status;
    this.fields = fields;
  }
}
