// How many bytes of documents may be written in a time: an account that fills steadily up to a limit. A document is accepted
// while the account is not overdrawn, and may overdraw it, so that a large one need not wait until it is full. A document
// that had to wait goes before smaller ones: a steady stream of those would otherwise reject it each time.

/** How long a document that was rejected may take to come back once the account is filled; `Retry-After` is in seconds. */
const TURN_MS = 2_000;

export class ByteBudget {
  readonly #max: number;
  readonly #perMs: number;
  readonly #now: () => number;
  #balance: number;
  #atMs: number;
  /** The largest document that was rejected since the last one that was accepted. */
  #waiting = 0;
  #turnEndsMs = 0;

  /** `now` must be monotonic, in milliseconds. */
  constructor(given: { readonly max: number; readonly perSecond: number; readonly now: () => number }) {
    this.#max = given.max;
    this.#perMs = given.perSecond / 1000;
    this.#now = given.now;
    this.#balance = given.max;
    this.#atMs = given.now();
  }

  /** The milliseconds until a document of this size is accepted; 0: now. */
  waitMs(bytes: number): number {
    const now = this.#now();
    this.#balance = Math.min(this.#max, this.#balance + (now - this.#atMs) * this.#perMs);
    this.#atMs = now;
    if (this.#balance < 0) {
      const waitMs = -this.#balance / this.#perMs;
      this.#waiting = Math.max(this.#waiting, bytes);
      this.#turnEndsMs = now + waitMs + TURN_MS;
      return waitMs;
    }
    return bytes < this.#waiting ? Math.max(0, this.#turnEndsMs - now) : 0;
  }

  /** Accepts the document and returns 0, or takes nothing and returns the milliseconds to wait. */
  take(bytes: number): number {
    const waitMs = this.waitMs(bytes);
    if (waitMs === 0) {
      this.#balance -= bytes;
      this.#waiting = 0;
    }
    return waitMs;
  }
}
