// Delivers the records of one token: collects them for a moment, sends one batch at a time in order, and retries until
// the platform accepts it. Independent of HTTP and of the content of records.
import type { Log } from '../../base/log.ts';
import type { Posted } from './record-post.ts';
import type { RecordQueue } from './record-queue.ts';

export type DeliveryCounts = { accepted: number; lost: number };

export type DeliveryOptions = {
  readonly queue: RecordQueue;
  readonly counts: DeliveryCounts;
  readonly log: Log;
  /** Whose records, for the log. */
  readonly name: string;
  readonly pace: Pace;
  send(records: readonly string[], signal: AbortSignal): Promise<Posted>;
};

export const defaultPace = {
  maxCount: 500,
  maxChars: 256 * 1024,
  /** How long a record waits for others to be sent with it. */
  lingerMs: 1_000,
  /** The first pause after a failure; it doubles after each further failure, up to the last. */
  firstPauseMs: 500,
  lastPauseMs: 30_000,
};
export type Pace = Readonly<typeof defaultPace>;

/** The longest pause during shutdown. */
const LAST_PAUSE_AT_END_MS = 500;

export class Delivery {
  readonly #options: DeliveryOptions;
  readonly #end = new AbortController();
  #run: Promise<void> | undefined;
  #wake: () => void = () => undefined;
  #isEnding = false;
  #failures = 0;
  /** Below the pace's limit while a rejected batch is halved to find the record that the platform rejects. */
  #maxCount: number;

  constructor(options: DeliveryOptions) {
    this.#options = options;
    this.#maxCount = options.pace.maxCount;
  }

  get isIdle(): boolean {
    return this.#run === undefined;
  }

  /** Whether the last attempt must be retried. */
  get isFailing(): boolean {
    return this.#failures > 0;
  }

  /** Must be called after each push to the queue. */
  notify(): void {
    if (this.#run === undefined) this.#start();
    else if (this.#failures === 0 && this.#isEnough()) this.#wake();
  }

  /** Sends the waiting records until `signal` aborts; the remaining ones are lost. */
  async close(signal: AbortSignal): Promise<void> {
    this.#isEnding = true;
    this.#wake();
    const abort = (): void => {
      this.#end.abort();
      this.#wake();
    };
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort);
    while (this.#run !== undefined) await this.#run;
    signal.removeEventListener('abort', abort);
    const { queue } = this.#options;
    const left = queue.length;
    queue.remove(left);
    this.#countLost(left, 'shutting down');
  }

  #start(): void {
    this.#run = this.#deliver().finally(() => {
      this.#run = undefined;
      // A record may have come after the last look at the queue.
      if (this.#options.queue.length > 0 && !this.#end.signal.aborted) this.#start();
    });
  }

  async #deliver(): Promise<void> {
    const { queue, pace, send } = this.#options;
    while (queue.length > 0 && !this.#end.signal.aborted) {
      if (this.#failures === 0 && !this.#isEnough()) await this.#pause(pace.lingerMs);
      const batch = queue.peek(this.#maxCount, pace.maxChars);
      const posted = await send(batch, this.#end.signal);
      if (posted.kind === 'retry') await this.#pause(this.#countFailure(posted));
      else this.#settle(posted, batch.length);
    }
  }

  #settle(posted: Exclude<Posted, { readonly kind: 'retry' }>, count: number): void {
    const { queue, counts, log, name, pace } = this.#options;
    if (this.#failures > 0) log.info({ sandbox: name }, 'the platform accepts records again');
    this.#failures = 0;
    if (posted.kind === 'rejected' && count > 1) {
      // The platform rejects one of them: the others must not be lost with it.
      this.#maxCount = Math.ceil(count / 2);
      return;
    }
    queue.remove(count);
    this.#maxCount = Math.min(pace.maxCount, this.#maxCount * 2);
    if (posted.kind === 'accepted') counts.accepted += count;
    else this.#countLost(count, posted.cause);
  }

  /** Returns how long to wait before the next attempt. */
  #countFailure({ cause, afterMs }: Posted & { readonly kind: 'retry' }): number {
    const { log, name, pace } = this.#options;
    if (this.#failures === 0 && !this.#end.signal.aborted)
      log.warn({ sandbox: name, cause }, 'the platform did not accept the records; retrying');
    const last = this.#isEnding ? LAST_PAUSE_AT_END_MS : pace.lastPauseMs;
    const pauseMs = Math.min(last, pace.firstPauseMs * 2 ** Math.min(this.#failures, 20));
    this.#failures += 1;
    const requested = this.#isEnding ? Math.min(afterMs, LAST_PAUSE_AT_END_MS) : afterMs;
    // Random: many sidecars that lost one platform must not all retry at the same moment.
    return Math.max(requested, pauseMs * (0.5 + Math.random() / 2));
  }

  #countLost(count: number, cause: string): void {
    const { counts, log, name } = this.#options;
    if (count === 0) return;
    counts.lost += count;
    log.error({ sandbox: name, cause, lost: count }, 'records were lost before they reached the platform');
  }

  #isEnough(): boolean {
    const { queue, pace } = this.#options;
    return this.#isEnding || queue.fills(this.#maxCount, pace.maxChars);
  }

  /** `#wake` ends it early. */
  async #pause(ms: number): Promise<void> {
    if (this.#end.signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const timer = setTimeout(resolve, ms);
    await promise;
    clearTimeout(timer);
  }
}
