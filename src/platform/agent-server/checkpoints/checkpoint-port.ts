// What a worker may do with checkpoints during one call: those of one thread alone, and while a run owns the thread's lease, only
// as that attempt of that run.
import type { ServerCalls } from '../../../agent-worker/protocol/calls.ts';
import type { CallFailure } from '../../../agent-worker/protocol/messages.ts';

/** Serves the calls of a worker. */
export type CheckpointPort = {
  /** Rejects with CheckpointRefusal where the worker asks for what it may not have. */
  handle<M extends keyof ServerCalls>(
    method: M,
    params: ServerCalls[M]['params'],
  ): Promise<ServerCalls[M]['result']>;
};

/** The only thread of a port, and as whom it writes. */
export type CheckpointScope = {
  readonly threadId: string;
  /** Of a run: written is only while this attempt runs. Without it, only while the thread has no run. */
  readonly lease?: { readonly runId: string; readonly attempt: number };
  /** For reading the state: every write is refused. */
  readonly isReadOnly?: true;
};

type RefusalCode = Extract<CallFailure, { readonly kind: 'refused' }>['code'];

/** Nothing was written. The worker gets it as the failure `refused` of its call. */
export class CheckpointRefusal extends Error {
  override readonly name = 'CheckpointRefusal';
  readonly code: RefusalCode;

  constructor(code: RefusalCode, message: string) {
    super(message);
    this.code = code;
  }
}
