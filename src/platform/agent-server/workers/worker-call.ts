// One call to a worker while it runs, as the channel sees it, and calls with one result.
import type { WorkerCalls } from '../../../agent-worker/protocol/calls.ts';
import { ProtocolError } from '../../../agent-worker/protocol/frame.ts';
import type { CancelReason, Message } from '../../../agent-worker/protocol/messages.ts';
import { checkResult } from './call-shapes.ts';
import type { ServerCallPort } from './graph-workers.ts';
import { WorkerError } from './worker-error.ts';

export type CallMessage = Extract<
  Message,
  { readonly type: 'result' | 'error' | 'events' | 'data' | 'credit' }
>;

/** How a call sends to its worker. */
export type CallLink = {
  readonly id: number;
  send(message: Message): number;
  /** Nobody waits for the call any more: it counts for a while as one that runs, and then not. */
  leave(): void;
};

export type WorkerCall = {
  /** Undefined: what the worker asks for as part of it is refused. */
  readonly port: ServerCallPort | undefined;
  /** True when this was its last message. Throws a ProtocolError. */
  receive(message: CallMessage, bytes: number): boolean;
  /** The worker has asked for something as part of it. */
  begun?(): void;
  /** The worker does not respond; whether the call may be made elsewhere is up to the call. */
  block?(): void;
  /** The worker has ended. */
  fail(error: WorkerError): void;
};

/** A call with one result. */
export class SingleCall<M extends keyof WorkerCalls> implements WorkerCall {
  readonly #link: CallLink;
  readonly #method: M;
  readonly #result: PromiseWithResolvers<WorkerCalls[M]['result']> = Promise.withResolvers();
  readonly #isRepeatable: boolean;
  #port: ServerCallPort | undefined;

  constructor(
    link: CallLink,
    method: M,
    options: { port: ServerCallPort | undefined; isRepeatable: boolean },
  ) {
    this.#link = link;
    this.#method = method;
    this.#port = options.port;
    this.#isRepeatable = options.isRepeatable;
  }

  get port(): ServerCallPort | undefined {
    return this.#port;
  }

  get result(): Promise<WorkerCalls[M]['result']> {
    return this.#result.promise;
  }

  receive(message: CallMessage): boolean {
    if (message.type === 'error') {
      this.#result.reject(new WorkerError(message.error));
      return true;
    }
    if (message.type !== 'result') throw new ProtocolError(`a message ${message.type} of ${this.#method}`);
    checkResult(this.#method, message.value);
    this.#result.resolve(message.value as WorkerCalls[M]['result']);
    return true;
  }

  /** Nobody waits for the result any more. What the worker still stores for it is refused. */
  cancel(reason: CancelReason, error: WorkerError = new WorkerError({ kind: 'cancelled', reason })): void {
    this.#port = undefined;
    this.#link.send({ type: 'cancel', id: this.#link.id, reason });
    this.#link.leave();
    this.#result.reject(error);
  }

  block(): void {
    if (this.#isRepeatable) this.cancel('lost', new WorkerError('blocked'));
  }

  fail(error: WorkerError): void {
    this.#result.reject(error);
  }
}
