// The records of one token on their way: collected for a moment, sent one batch at a time in their order, again until
// they are taken. It must not know HTTP, nor what a record holds.
import type { Log } from '../../base/log.ts';
import type { Posted } from './record-post.ts';
import type { RecordQueue } from './record-queue.ts';

/** What there is of a delivery to count. */
export type DeliveryCounts = { taken: number; lost: number };

export type DeliveryOptions = {
  readonly queue: RecordQueue;
  readonly counts: DeliveryCounts;
  readonly log: Log;
  /** Whose records, for the log. */
  readonly name: string;
  readonly pace: Pace;
  send(records: readonly string[], signal: AbortSignal): Promise<Posted>;
};

export type Pace = {
  readonly maxCount: number;
  readonly maxChars: number;
  /** How long a record waits for company. */
  readonly lingerMs: number;
  /** The first pause after a failure; each next one is twice as long, up to the last. */
  readonly firstPauseMs: number;
  readonly lastPauseMs: number;
};

/** While it ends, no pause is longer. */
const LAST_PAUSE_AT_END_MS = 500;

export class Delivery {
  readonly #options: DeliveryOptions;
  readonly #end: AbortController = new AbortController();
  #run: Promise<void> | undefined;
  #wake: () => void = () => undefined;
  #isEnding = false;
  #failures = 0;
  /** Smaller than the pace says while a record is looked for that is not taken. */
  #maxCount: number;

  constructor(options: DeliveryOptions) {
    this.#options = options;
    this.#maxCount = options.pace.maxCount;
  }

  get isIdle(): boolean {
    return this.#run === undefined;
  }

  /** Whether the last batch was not taken. */
  get isFailing(): boolean {
    return this.#failures > 0;
  }

  /** There is something new in the queue. */
  notice(): void {
    if (this.#run === undefined) this.#start();
    else if (this.#failures === 0 && this.#isEnough()) this.#wake();
  }

  /** Sends what is left until `signal` aborts; what is left then is lost. */
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
    this.#lose(this.#options.queue.length, 'shutting down');
  }

  #start(): void {
    const run = this.#deliver().finally(() => {
      this.#run = undefined;
      // One that came after the last look at the queue.
      if (this.#options.queue.length > 0 && !this.#end.signal.aborted) this.#start();
    });
    this.#run = run;
  }

  async #deliver(): Promise<void> {
    const { queue, pace, send } = this.#options;
    while (queue.length > 0 && !this.#end.signal.aborted) {
      if (this.#failures === 0 && !this.#isEnough()) await this.#pause(pace.lingerMs);
      const batch = queue.peek(this.#maxCount, pace.maxChars);
      const pauseMs = this.#settle(await send(batch, this.#end.signal), batch.length);
      if (pauseMs > 0) await this.#pause(pauseMs);
    }
  }

  /** Takes note of what became of a batch; answers how long to wait before the next. */
  #settle(posted: Posted, count: number): number {
    const { queue, counts, log, name } = this.#options;
    if (posted.kind === 'later') return this.#putOff(posted);
    if (this.#failures > 0) log.info({ sandbox: name }, 'records are taken again');
    this.#failures = 0;
    if (posted.kind === 'unfit' && count > 1) {
      // One of them is at fault: the others shall not be lost with it.
      this.#maxCount = Math.ceil(count / 2);
      return 0;
    }
    queue.remove(count);
    this.#maxCount = Math.min(this.#options.pace.maxCount, this.#maxCount * 2);
    if (posted.kind === 'taken') counts.taken += count;
    else this.#lose(count, posted.cause, true);
    return 0;
  }

  #putOff({ cause, afterMs }: Posted & { readonly kind: 'later' }): number {
    const { log, name, pace } = this.#options;
    if (this.#failures === 0 && !this.#end.signal.aborted)
      log.warn({ sandbox: name, cause }, 'records are not taken; they are sent again');
    const last = this.#isEnding ? LAST_PAUSE_AT_END_MS : pace.lastPauseMs;
    const pauseMs = Math.min(last, pace.firstPauseMs * 2 ** Math.min(this.#failures, 20));
    this.#failures += 1;
    const asked = this.#isEnding ? Math.min(afterMs, LAST_PAUSE_AT_END_MS) : afterMs;
    // Not all at one moment, when many sidecars lost one platform.
    return Math.max(asked, pauseMs * (0.5 + Math.random() / 2));
  }

  #lose(count: number, cause: string, isRemoved = false): void {
    const { queue, counts, log, name } = this.#options;
    if (count === 0) return;
    if (!isRemoved) queue.remove(count);
    counts.lost += count;
    log.error({ sandbox: name, cause, lost: count }, 'records are lost to the platform');
  }

  #isEnough(): boolean {
    const { queue, pace } = this.#options;
    return this.#isEnding || queue.fills(this.#maxCount, pace.maxChars);
  }

  /** Ends early by `#wake`. */
  async #pause(ms: number): Promise<void> {
    if (this.#end.signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const timer = setTimeout(resolve, ms);
    await promise;
    clearTimeout(timer);
  }
}
