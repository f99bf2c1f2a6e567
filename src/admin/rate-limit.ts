// At most so many events in any window of time. It must not know what is counted.

export class RateLimit {
  readonly #times: number[] = [];
  readonly #count: number;
  readonly #windowMs: number;
  readonly #now: () => number;

  /** `now` must be monotonic, in milliseconds. */
  constructor(count: number, windowMs: number, now: () => number) {
    this.#count = count;
    this.#windowMs = windowMs;
    this.#now = now;
  }

  /** Counts one event and answers 0, or counts nothing and answers how long to wait. */
  take(): number {
    const now = this.#now();
    while (this.#times.length > 0 && now - this.#times[0]! >= this.#windowMs) this.#times.shift();
    if (this.#times.length >= this.#count) return this.#times[0]! + this.#windowMs - now;
    this.#times.push(now);
    return 0;
  }
}
