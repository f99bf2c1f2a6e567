// Calls of a worker about the state of one thread, and their failures as clients see them.
import type { WorkerCalls } from '../../../agent-worker/protocol/calls.ts';
import { DomainError } from '../../../base/domain-error.ts';
import { type CheckpointPort, createCheckpointPort } from '../checkpoints/checkpoint-port.ts';
import { LateWrite } from '../checkpoints/checkpoint-scope.ts';
import { WorkerError } from '../workers/worker-error.ts';
import type { ThreadParts } from './thread-route.ts';

type StateCall = 'state.get' | 'state.history' | 'state.update';

/**
 * Throws DomainError: `not_found` for a checkpoint that is not there, `conflict` for an update that a run has overtaken, `storage_full` for
 * one that the database does not take, `unavailable` where the worker was lost.
 */
export async function callState<M extends StateCall>(
  { workers, store }: Pick<ThreadParts, 'workers' | 'store'>,
  method: M,
  params: WorkerCalls[M]['params'],
  signal: AbortSignal,
): Promise<WorkerCalls[M]['result']> {
  const access = method === 'state.update' ? {} : { isReadOnly: true as const };
  const port = createCheckpointPort(store, { threadId: params.thread_id, ...access });
  const { checkpoints, refused } = watchWrites(port);
  try {
    return await workers.call(method, params, { signal, checkpoints });
  } catch (error) {
    signal.throwIfAborted();
    // The worker reports it as an error of its own, which says nothing of the thread.
    const refusal = refused();
    if (refusal !== undefined) throw refusal;
    throw error instanceof WorkerError ? toDomainError(error) : error;
  }
}

function watchWrites(port: CheckpointPort): {
  readonly checkpoints: CheckpointPort;
  refused(): DomainError | undefined;
} {
  let found: DomainError | undefined;
  const checkpoints: CheckpointPort = {
    async handle(method, params) {
      try {
        return await port.handle(method, params);
      } catch (error) {
        const isFull = error instanceof DomainError && error.kind === 'storage_full';
        if (error instanceof LateWrite || isFull) found ??= error;
        throw error;
      }
    },
  };
  return { checkpoints, refused: () => found };
}

const RETRY_MS = 1_000;

function toDomainError(error: WorkerError): DomainError {
  const { thrown, code } = error;
  const failure =
    code === 'not_found'
      ? new DomainError('not_found', error.message)
      : thrown !== undefined
        ? new DomainError('unusable', `${thrown.error}: ${thrown.message}`)
        : code === undefined
          ? new DomainError('unavailable', `${error.message}: try again`, RETRY_MS)
          : new DomainError('unusable', error.message);
  failure.cause = error;
  return failure;
}
