// Why a run of an export has failed, in fixed sentences: what an endpoint or the database has sent is never part of them.

export type FailureKind =
  | 'credentials'
  | 'bucket'
  | 'permissions'
  | 'destination'
  | 'unavailable'
  | 'serialization'
  | 'resources'
  | 'timeout';

/** Those that another attempt cannot change. */
const FINAL: ReadonlySet<FailureKind> = new Set(['credentials', 'bucket', 'permissions', 'destination']);

export class ExportFailure extends Error {
  override readonly name = 'ExportFailure';
  readonly kind: FailureKind;

  constructor(kind: FailureKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }

  /** False: the run fails at once. */
  get isRetryable(): boolean {
    return !FINAL.has(this.kind);
  }
}
