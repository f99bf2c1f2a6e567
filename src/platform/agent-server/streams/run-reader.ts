// One reader of the events of a run: what it has seen, and what waits for it. A reader that does not read is cut, and neither
// the run nor other readers wait for it.
import { EndedEarly } from '../../../base/http/http-response.ts';
import { EventQueue, type KeptEvent, type RunEvent } from './event-queue.ts';

/** Of events that wait for a reader. */
export const MAX_BACKLOG_BYTES: number = 8 * 1024 * 1024;
/** Of events that are handed to it together: as much as one write to its socket should have. */
const BATCH_BYTES = 64 * 1024;

export class RunReader {
  /** The number of the last event that it has. */
  cursor: number;
  readonly #queue: EventQueue = new EventQueue();
  readonly #onRead: () => void;
  #cut: Error | undefined;
  #isWoken = false;
  #wake: (() => void) | undefined;

  /** `onRead` is called when some of what waited was read. */
  constructor(cursor: number, onRead: () => void) {
    this.cursor = cursor;
    this.#onRead = onRead;
  }

  get isBehind(): boolean {
    return this.#queue.bytes > MAX_BACKLOG_BYTES && this.#cut === undefined;
  }

  push(event: KeptEvent): void {
    if (this.#cut !== undefined) return;
    this.#queue.push(event);
    this.wake();
  }

  /** Its connection is to be cut: a client that goes on reconnects, and none takes a part for the whole. */
  cut(reason: string): void {
    this.#cut ??= new EndedEarly(reason);
    this.#queue.clear();
    this.wake();
  }

  throwIfCut(): void {
    if (this.#cut !== undefined) throw this.#cut;
  }

  /** The number of the first event that waits and is no repetition. */
  firstWaiting(): number | undefined {
    for (;;) {
      const { first } = this.#queue;
      if (first === undefined || first.number > this.cursor) return first?.number;
      this.#queue.shift();
    }
  }

  /** What follows the last event without a gap. */
  take(): RunEvent[] {
    const batch: RunEvent[] = [];
    let bytes = 0;
    while (bytes < BATCH_BYTES && this.firstWaiting() === this.cursor + 1) {
      const event = this.#queue.shift();
      if (event === undefined) break;
      batch.push(event.sent);
      bytes += event.bytes;
      this.cursor = event.number;
    }
    if (batch.length > 0) this.#onRead();
    return batch;
  }

  wake(): void {
    this.#isWoken = true;
    this.#wake?.();
  }

  /** Before looking for what `woken` waits for. */
  rest(): void {
    this.#isWoken = false;
  }

  /** Resolves with the first `wake` after `rest`. */
  async woken(): Promise<void> {
    if (this.#isWoken) return;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
  }
}
