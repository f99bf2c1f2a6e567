// Tells readers that something changed, not what: one that is slow misses nothing by being notified once.

export class Changes {
  readonly #waiting = new Set<() => void>();
  #count = 0;
  #readers = 0;
  readonly #onReaders: (count: number) => void;

  /** `onReaders` is called when the number of readers changes. */
  constructor(onReaders: (count: number) => void = () => undefined) {
    this.#onReaders = onReaders;
  }

  notify(): void {
    this.#count += 1;
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  /** Yields at once, and after each change. Ends with the signal. */
  async *read(signal: AbortSignal): AsyncGenerator<number, void, undefined> {
    this.#setReaders(1);
    try {
      for (let seen = -1; !signal.aborted; ) {
        if (seen === this.#count) await this.#changed(signal);
        // Before it is yielded: what changes while the reader is busy is reported afterwards.
        seen = this.#count;
        if (!signal.aborted) yield seen;
      }
    } finally {
      this.#setReaders(-1);
    }
  }

  async #changed(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = (): void => resolve();
    this.#waiting.add(wake);
    signal.addEventListener('abort', wake);
    await promise;
    signal.removeEventListener('abort', wake);
    this.#waiting.delete(wake);
  }

  #setReaders(step: number): void {
    this.#readers += step;
    this.#onReaders(this.#readers);
  }
}
