// Work for one key is done one piece after the other, in the order in which it was given; different keys do not wait for
// each other. A piece that fails does not stop those after it.

export class WorkQueue {
  readonly #last: Map<string, Promise<void>> = new Map();

  /** Settles as the work does. */
  run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const ended = (this.#last.get(key) ?? Promise.resolve()).then(work);
    const forget = (): void => {
      if (this.#last.get(key) === settled) this.#last.delete(key);
    };
    // The caller has `ended` for the failure.
    const settled: Promise<void> = ended.then(forget, forget);
    this.#last.set(key, settled);
    return ended;
  }

  /** Resolves when everything given so far has settled. */
  async idle(): Promise<void> {
    await Promise.all(this.#last.values());
  }

  /** Keys with work. */
  get size(): number {
    return this.#last.size;
  }
}
