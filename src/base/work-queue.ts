// Runs work one piece after the other, in the order in which it was given. A piece that fails does not stop the next.

export class WorkQueue {
  #last: Promise<unknown> = Promise.resolve();

  /** Settles as `work` does. */
  run<T>(work: () => Promise<T>): Promise<T> {
    const ended = this.#last.then(work);
    // The caller of run() gets the failure.
    this.#last = ended.catch(() => undefined);
    return ended;
  }

  /** Resolves when everything given so far has settled. */
  async idle(): Promise<void> {
    await this.#last;
  }
}
