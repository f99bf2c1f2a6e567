// What a worker can do, by the name of the method: graphs, authentication and the application each bring theirs. A method gets
// its parameters and the context of its call, and returns the result.
import type { ServerCalls, WorkerCalls } from './protocol/calls.ts';
import type { CancelReason, LogLevel, WorkerEvent } from './protocol/messages.ts';

export type CallContext = {
  /** Aborts with a CallCancelled when the server cancels the call, and when the channel to it has ended. */
  readonly signal: AbortSignal;
  /**
   * Sends events of the stream, in the order of the calls. Resolves when more may be sent: a method that awaits it is no faster
   * than who reads. Rejects with the reason of the signal once that has aborted.
   */
  emit(events: readonly WorkerEvent[]): Promise<void>;
  /** Rejects with a Refusal where the server refuses. A cancelled call may still store what it has done. */
  callServer<M extends keyof ServerCalls>(
    method: M,
    params: ServerCalls[M]['params'],
  ): Promise<ServerCalls[M]['result']>;
  /** For the log of the server. */
  log(level: LogLevel, message: string): void;
};

/** A method with one result. `http.request` streams bodies: it is in app/. */
export type Method<M extends keyof WorkerCalls> = (
  params: WorkerCalls[M]['params'],
  context: CallContext,
) => Promise<WorkerCalls[M]['result']>;

/** What one part of the worker brings. What no part brings is refused as `unsupported`. */
export type Methods = { readonly [M in Exclude<keyof WorkerCalls, 'http.request'>]?: Method<M> };

/** The reason of the signal of a call. A method that throws it, or anything once its signal has aborted, ends as cancelled. */
export class CallCancelled extends Error {
  override readonly name: string = 'CallCancelled';
  readonly reason: CancelReason;

  constructor(reason: CancelReason) {
    super(`the call was cancelled (${reason})`);
    this.reason = reason;
  }
}

/** What was asked for is not there, or cannot be done: no error of the deployment. */
export class Refusal extends Error {
  override readonly name: string = 'Refusal';
  readonly code: 'not_found' | 'invalid' | 'unsupported';

  constructor(code: 'not_found' | 'invalid' | 'unsupported', message: string) {
    super(message);
    this.code = code;
  }
}

/** The deployment cannot be loaded: `key` of its configuration is where to look. */
export class LoadError extends Error {
  override readonly name: string = 'LoadError';
  readonly key: string;

  constructor(key: string, message: string) {
    super(message);
    this.key = key;
  }
}
