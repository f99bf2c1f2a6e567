// Readers that wait until somebody wakes them. Whoever is woken looks for itself whether there is something for it.

export class WaitingReaders {
  readonly #waiting = new Set<() => void>();

  wakeAll(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  /** Resolves when they are woken, and when the signal aborts. The signal must not have aborted before. */
  async wait(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = (): void => resolve();
    this.#waiting.add(wake);
    signal.addEventListener('abort', wake);
    await promise;
    signal.removeEventListener('abort', wake);
    this.#waiting.delete(wake);
  }
}
