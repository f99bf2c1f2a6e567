// One call of the server, while it runs: what its method gets as context.
import type { Send } from './channel.ts';
import { EventSender } from './event-sender.ts';
import { CallCancelled, type CallContext } from './method.ts';
import type { ServerCalls } from './protocol/calls.ts';
import type { CancelReason, LogLevel, WorkerEvent } from './protocol/messages.ts';

/** More of a line than the server writes. */
const MAX_LOG_CHARS = 16 * 1024;

/** Calls the server as part of this call. */
export type CallServer = (id: number, method: string, params: unknown) => Promise<unknown>;

export class RunningCall implements CallContext {
  readonly #id: number;
  readonly #send: Send;
  readonly #callServer: CallServer;
  readonly #controller: AbortController = new AbortController();
  readonly #events: EventSender;

  constructor(id: number, send: Send, callServer: CallServer) {
    this.#id = id;
    this.#send = send;
    this.#callServer = callServer;
    this.#events = new EventSender(id, send);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  readonly emit = async (events: readonly WorkerEvent[]): Promise<void> => {
    this.signal.throwIfAborted();
    await this.#events.emit(events);
    this.signal.throwIfAborted();
  };

  readonly callServer = <M extends keyof ServerCalls>(
    method: M,
    params: ServerCalls[M]['params'],
  ): Promise<ServerCalls[M]['result']> =>
    this.#callServer(this.#id, method, params) as Promise<ServerCalls[M]['result']>;

  readonly log = (level: LogLevel, message: string): void =>
    void this.#send({ type: 'log', level, message: message.slice(0, MAX_LOG_CHARS), of: this.#id });

  /** Before code of the deployment runs: from here on the server begins the run nowhere else. */
  begin(): void {
    this.#events.begin();
  }

  cancel(reason: CancelReason): void {
    this.#controller.abort(new CallCancelled(reason));
    this.#events.close();
  }

  /** Throws a ProtocolError. */
  grant(bytes: number): void {
    this.#events.grant(bytes);
  }

  /** Resolves when all events are sent: the result comes after them. */
  finish(): Promise<void> {
    return this.#events.finish();
  }
}
