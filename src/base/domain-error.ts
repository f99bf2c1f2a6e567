// What the domain refuses, as an error with a kind. One file of the API maps kinds to statuses; whoever throws one must
// not know HTTP. `message` is shown to the caller, so it never holds what was sent.
import type { Issue } from './schema.ts';

export type DomainErrorKind =
  /** Nobody known is asking. */
  | 'unauthenticated'
  /** Somebody known may not. */
  | 'forbidden'
  | 'not_found'
  /** It is there already, or in a state that does not allow this. */
  | 'conflict'
  /** The request is well formed and cannot be done. */
  | 'unusable'
  | 'too_many'
  /** Something that this needs is not there now: try again. */
  | 'unavailable';

export class DomainError extends Error {
  override readonly name: string = 'DomainError';
  readonly kind: DomainErrorKind;
  /** When to come back, for `too_many` and `unavailable`. */
  readonly retryMs: number | undefined;

  constructor(kind: DomainErrorKind, message: string, retryMs?: number) {
    super(message);
    this.kind = kind;
    this.retryMs = retryMs;
  }
}

/** What was sent does not fit: every issue at once, each with its place in the request. */
export class InvalidInput extends Error {
  override readonly name: string = 'InvalidInput';
  readonly issues: readonly Issue[];

  constructor(issues: readonly Issue[]) {
    super('the input is invalid');
    this.issues = issues;
  }
}
