// An idle limit for HTTP/2 streams. It has no timer: the ticks of the client's session ask whether it has passed, so it is
// exact to two of them. Activity costs one assignment and no look at the clock.
export class IdleLimit {
  readonly #limitMs: number;
  #lastActivityMs: number = performance.now();
  #isActive = false;

  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  refresh(): void {
    this.#isActive = true;
  }

  /** Whether nothing happened for the limit before `nowMs`. */
  hasPassed(nowMs: number): boolean {
    if (this.#isActive) {
      this.#isActive = false;
      this.#lastActivityMs = nowMs;
    }
    return nowMs - this.#lastActivityMs >= this.#limitMs;
  }
}
