// Tells readers that something changed, not what: one that is slow misses nothing by being notified once.
import { WaitingReaders } from './waiting-readers.ts';

export class Changes {
  readonly #waiting = new WaitingReaders();
  #count = 0;
  #readers = 0;
  readonly #onReaders: (count: number) => void;

  /** `onReaders` is called when the number of readers changes. */
  constructor(onReaders: (count: number) => void = () => undefined) {
    this.#onReaders = onReaders;
  }

  notify(): void {
    this.#count += 1;
    this.#waiting.wakeAll();
  }

  /** Yields at once, and after each change. Ends with the signal. */
  async *read(signal: AbortSignal): AsyncGenerator<number, void, undefined> {
    this.#setReaders(1);
    try {
      for (let seen = -1; !signal.aborted; ) {
        if (seen === this.#count) await this.#waiting.wait(signal);
        // Before it is yielded: what changes while the reader is busy is reported afterwards.
        seen = this.#count;
        if (!signal.aborted) yield seen;
      }
    } finally {
      this.#setReaders(-1);
    }
  }

  #setReaders(step: number): void {
    this.#readers += step;
    this.#onReaders(this.#readers);
  }
}
