// Why a call to a worker has failed, with what its caller decides by: whether clients see it, and whether it may be tried again.
import type { CallFailure, CancelReason } from '../../../agent-worker/protocol/messages.ts';

/**
 * `lost`: the worker has ended. `blocked`: it did not respond. `protocol`: it broke the protocol, and was ended. `unavailable`: no
 * worker could take the call, which has reached none. The others are the result of the call, as the worker gave it.
 */
export type WorkerErrorKind = 'lost' | 'blocked' | 'protocol' | 'unavailable' | CallFailure['kind'];

/** What code of the deployment threw. */
export type Thrown = Omit<Extract<CallFailure, { readonly kind: 'thrown' }>, 'kind'>;

const MESSAGES: Readonly<Record<Exclude<WorkerErrorKind, CallFailure['kind']>, string>> = {
  lost: 'The worker has ended',
  blocked: 'The worker does not respond',
  protocol: 'The worker has broken the protocol',
  unavailable: 'No worker can take the call',
};

export class WorkerError extends Error {
  override readonly name: string = 'WorkerError';
  readonly kind: WorkerErrorKind;
  /** What the worker responded; undefined where it did not. */
  readonly failure: CallFailure | undefined;
  /** What has become of the worker, after `its worker`: `was ended by SIGSEGV`. */
  readonly why: string | undefined;

  constructor(failure: CallFailure | keyof typeof MESSAGES, why?: string) {
    super(typeof failure === 'string' ? MESSAGES[failure] : describe(failure));
    this.kind = typeof failure === 'string' ? failure : failure.kind;
    this.failure = typeof failure === 'string' ? undefined : failure;
    this.why = why;
  }

  /** What code of the deployment threw: an error of its own, or an HTTPException of a handler with status and headers. */
  get thrown(): Thrown | undefined {
    return this.failure?.kind === 'thrown' ? this.failure : undefined;
  }

  /** Why the worker refused. */
  get code(): 'not_found' | 'invalid' | 'unsupported' | undefined {
    return this.failure?.kind === 'refused' ? this.failure.code : undefined;
  }

  get reason(): CancelReason | undefined {
    return this.failure?.kind === 'cancelled' ? this.failure.reason : undefined;
  }

  /** Whether the same call may succeed on another worker: the deployment has given no result. */
  get isRetryable(): boolean {
    return this.failure === undefined;
  }
}

function describe(failure: CallFailure): string {
  return failure.kind === 'cancelled' ? `The call was cancelled (${failure.reason})` : failure.message;
}
