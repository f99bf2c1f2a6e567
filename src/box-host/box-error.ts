// Why the box host did not do what it was asked. A message is shown to the users of a box: it contains no secret and no path
// of the machine.
import type { Issue } from '../base/schema.ts';

export type BoxErrorKind =
  | 'invalid_policy'
  | 'invalid_snapshot'
  | 'no_capacity'
  | 'not_supported'
  | 'unavailable'
  | 'failed'
  | 'not_found'
  | 'port_refused'
  | 'not_listening'
  | 'agent_lost';

export class BoxError extends Error {
  override readonly name: string = 'BoxError';
  readonly kind: BoxErrorKind;
  /** Of an invalid policy, relative to its document. */
  readonly issues: readonly Issue[];

  constructor(kind: BoxErrorKind, message: string, issues: readonly Issue[] = []) {
    super(message);
    this.kind = kind;
    this.issues = issues;
  }
}
