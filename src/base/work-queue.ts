// Runs the work of one key in sequence, in the order given. Different keys do not wait for each other, and a failure does
// not stop the work after it.

export class WorkQueue {
  readonly #last: Map<string, Promise<void>> = new Map();

  /** Queues `work` and settles as it does. */
  run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const ended = (this.#last.get(key) ?? Promise.resolve()).then(work);
    const forget = (): void => {
      if (this.#last.get(key) === settled) this.#last.delete(key);
    };
    // A failure reaches the caller through `ended`.
    const settled: Promise<void> = ended.then(forget, forget);
    this.#last.set(key, settled);
    return ended;
  }

  /** Resolves when all work queued so far has settled. */
  async idle(): Promise<void> {
    await Promise.all(this.#last.values());
  }

  /** The number of keys with queued work. */
  get size(): number {
    return this.#last.size;
  }
}
