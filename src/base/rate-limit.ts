// At most a number of events in any window of time.

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

  /** Counts one event and returns 0, or counts nothing and returns the milliseconds to wait. */
  take(): number {
    const now = this.#now();
    while (this.#times.length > 0 && now - this.#times[0]! >= this.#windowMs) this.#times.shift();
    if (this.#times.length >= this.#count) return this.#times[0]! + this.#windowMs - now;
    this.#times.push(now);
    return 0;
  }
}
