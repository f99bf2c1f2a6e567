// One run in a worker: its events are handed on in order, one batch at a time, and what is handed on is granted again. The end
// comes after the last event.
import type { RunEnd } from '../../../agent-worker/protocol/calls.ts';
import { ReceiveCredit } from '../../../agent-worker/protocol/credit.ts';
import { ProtocolError } from '../../../agent-worker/protocol/frame.ts';
import type { CancelReason, WorkerEvent } from '../../../agent-worker/protocol/messages.ts';
import { checkResult } from './call-shapes.ts';
import { cancelReasonOf, type RunOptions, type ServerCallPort } from './graph-workers.ts';
import type { CallLink, CallMessage, WorkerCall } from './worker-call.ts';
import { WorkerError } from './worker-error.ts';

export class RunCall implements WorkerCall {
  readonly #link: CallLink;
  readonly #options: RunOptions;
  readonly #cancelMs: number;
  readonly #credit: ReceiveCredit = new ReceiveCredit();
  readonly #result: PromiseWithResolvers<RunEnd> = Promise.withResolvers();
  #waiting: { readonly events: readonly WorkerEvent[]; readonly bytes: number }[] = [];
  #handing: Promise<void> | undefined;
  #hasBegun = false;
  #isOver = false;
  #limit: NodeJS.Timeout | undefined;

  constructor(link: CallLink, options: RunOptions, cancelMs: number) {
    this.#link = link;
    this.#options = options;
    this.#cancelMs = cancelMs;
  }

  get port(): ServerCallPort | undefined {
    return this.#isOver ? undefined : this.#options.checkpoints;
  }

  get result(): Promise<RunEnd> {
    return this.#result.promise;
  }

  /** Once the call is sent. */
  watch(): void {
    const { cancel } = this.#options;
    if (cancel.aborted) this.#cancel();
    else cancel.addEventListener('abort', this.#cancel, { once: true });
  }

  begun(): void {
    this.#hasBegun = true;
  }

  /** Another run holds up its worker: one of which nothing has come is begun elsewhere. */
  block(): void {
    if (this.#hasBegun || this.#options.isAlone === true) return;
    this.#abandon('lost', new WorkerError('blocked', 'did not respond when the run was to begin'));
  }

  receive(message: CallMessage, bytes: number): boolean {
    this.#hasBegun = true;
    if (message.type === 'events') {
      this.#credit.receive(bytes);
      if (this.#isOver) return false;
      // A run begins with a frame that has none.
      if (message.events.length === 0) this.#grant(bytes);
      else this.#hand(message.events, bytes);
      return false;
    }
    if (message.type === 'error') this.#end(new WorkerError(message.error));
    else if (message.type === 'result') {
      checkResult('run.start', message.value);
      this.#end(message.value as RunEnd);
    } else throw new ProtocolError(`a message ${message.type} of run.start`);
    return true;
  }

  fail(error: WorkerError): void {
    this.#end(error);
  }

  #hand(events: readonly WorkerEvent[], bytes: number): void {
    this.#waiting.push({ events, bytes });
    this.#handing ??= this.#handOn();
  }

  async #handOn(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      try {
        await this.#options.onEvents(batch.flatMap(({ events }) => events));
      } catch (error) {
        this.#waiting = [];
        this.#abandon('lost', error);
        break;
      }
      this.#grant(batch.reduce((sum, { bytes }) => sum + bytes, 0));
    }
    this.#handing = undefined;
  }

  #grant(consumed: number): void {
    const bytes = this.#credit.consume(consumed);
    if (bytes > 0 && !this.#isOver) this.#link.send({ type: 'credit', id: this.#link.id, bytes });
  }

  /** What has come is handed on first. */
  #end(outcome: RunEnd | WorkerError): void {
    if (this.#isOver) return;
    this.#leave();
    void (this.#handing ?? Promise.resolve()).then(() =>
      outcome instanceof WorkerError ? this.#result.reject(outcome) : this.#result.resolve(outcome),
    );
  }

  readonly #cancel = (): void => {
    const reason = cancelReasonOf(this.#options.cancel);
    this.#link.send({ type: 'cancel', id: this.#link.id, reason });
    const onLate = (): void => {
      this.#link.leave();
      this.#end(new WorkerError({ kind: 'cancelled', reason }));
    };
    this.#limit = setTimeout(onLate, this.#cancelMs);
  };

  /** Nobody waits for the result any more. What the worker still stores for it is refused. */
  #abandon(reason: CancelReason, error: unknown): void {
    if (!this.#isOver) {
      this.#link.send({ type: 'cancel', id: this.#link.id, reason });
      this.#link.leave();
    }
    this.#leave();
    this.#result.reject(error);
  }

  #leave(): void {
    this.#isOver = true;
    clearTimeout(this.#limit);
    this.#options.cancel.removeEventListener('abort', this.#cancel);
  }
}
