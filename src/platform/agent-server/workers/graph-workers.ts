// What the agent server asks of its workers: the processes with the code of the deployment. A call goes to the worker with the
// least to do; one that ends or does not respond is replaced, and its calls fail with a WorkerError.
import type {
  AppRequest,
  AppResponse,
  RunEnd,
  RunToStart,
  ServerCalls,
  WorkerCalls,
} from '../../../agent-worker/protocol/calls.ts';
import type { CancelReason, Loaded, WorkerEvent } from '../../../agent-worker/protocol/messages.ts';

/** Serves what a graph asks for while one call runs; a DomainError `not_found` reaches the graph as such. */
export type ServerCallPort = {
  handle<M extends keyof ServerCalls>(
    method: M,
    params: ServerCalls[M]['params'],
  ): Promise<ServerCalls[M]['result']>;
};

/** Calls with one result. */
export type CallName = Exclude<keyof WorkerCalls, 'run.start' | 'http.request'>;

export type CallOptions = {
  /** The caller has left: the call ends with `cancelled` at once, and what it still does is discarded. */
  readonly signal?: AbortSignal;
  /** Absent: the call has no checkpoints. */
  readonly checkpoints?: ServerCallPort;
};

export type RunOptions = {
  /** Its reason is the CancelReason of the run. */
  readonly cancel: AbortSignal;
  /** In a worker that is started for this run, and ends with it. */
  readonly isAlone?: boolean;
  readonly checkpoints: ServerCallPort;
  /** One at a time. Resolves when more may come: until then the graph is slowed. What it throws cancels the run as `lost`. */
  onEvents(events: readonly WorkerEvent[]): Promise<void>;
};

export type AppOptions = { readonly signal: AbortSignal };

/** The body is read no faster than it is consumed; leaving it ends the request in the application. */
export type StreamedAppResponse = AppResponse & { readonly body: AsyncIterable<Uint8Array> };

/** Every method rejects with a WorkerError. */
export type GraphWorkers = {
  call<M extends CallName>(
    method: M,
    params: WorkerCalls[M]['params'],
    options?: CallOptions,
  ): Promise<WorkerCalls[M]['result']>;
  run(params: RunToStart, options: RunOptions): Promise<RunEnd>;
  request(
    request: AppRequest,
    body: AsyncIterable<Uint8Array> | undefined,
    options: AppOptions,
  ): Promise<StreamedAppResponse>;
  /** Of the first worker. */
  readonly loaded: Loaded;
  /** Ends the workers; what runs fails with `lost`. */
  close(): Promise<void>;
};

/** The reason of a signal that cancels a run. An abort without one of these is `lost`: nobody wants the result. */
export function cancelReasonOf(signal: AbortSignal): CancelReason {
  const reason: unknown = signal.reason;
  return REASONS.find((one) => one === reason) ?? 'lost';
}

const REASONS: readonly CancelReason[] = ['interrupt', 'rollback', 'timeout', 'lost'];
