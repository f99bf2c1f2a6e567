// What one call of a worker may reach: the checkpoints of one thread, and nothing of another, whose user may be another one.
import { DomainError } from '../../../base/domain-error.ts';

/** The only thread of a port, and as whom it writes. */
export type CheckpointScope = {
  readonly threadId: string;
  /** Of a run: written is only while this attempt runs. Without it, only while the thread has no run. */
  readonly lease?: { readonly runId: string; readonly attempt: number };
  /** For reading the state: every write is refused. */
  readonly isReadOnly?: true;
};

/** Throws DomainError for another thread. */
export function requireOwnThread(scope: CheckpointScope, threadId: string): void {
  if (threadId.toLowerCase() !== scope.threadId.toLowerCase())
    throw new DomainError('conflict', `${FOREIGN}: leave thread_id of the config as it was given`);
}

/** Throws DomainError where the call may only read. */
export function requireWritable({ isReadOnly }: CheckpointScope): void {
  if (isReadOnly === true)
    throw new DomainError('conflict', 'Reading the state of a thread writes no checkpoint');
}

const FOREIGN = 'A call reaches the checkpoints of its own thread alone';

const LATE = {
  attempt_ended: 'This attempt of the run has ended: nothing was written',
  thread_gone: 'The thread was deleted meanwhile: nothing was written',
  run_begun:
    'A run of the thread has begun meanwhile: nothing was written. Update the state when it has ended',
  state_changed:
    'The state of the thread has changed since this update read it: nothing was written. Read the state, and update it again',
} as const;

/** The attempt has ended, or an update of the state came too late: nothing was written. */
export class LateWrite extends DomainError {
  constructor(reason: keyof typeof LATE) {
    super('conflict', LATE[reason]);
  }
}
