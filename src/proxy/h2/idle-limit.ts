// An idle limit for HTTP/2 streams. The timer of node:http2 outlives a destroyed stream and would hold its data until it
// fires. Activity costs one look at the clock, not a timer.
export class IdleLimit {
  readonly #limitMs: number;
  readonly #onIdle: () => void;
  #lastActivityMs: number = performance.now();
  #timer: NodeJS.Timeout;

  /** Starts at once. `onIdle` is called once; `restart` starts again. */
  constructor(limitMs: number, onIdle: () => void) {
    this.#limitMs = limitMs;
    this.#onIdle = onIdle;
    this.#timer = this.#wait(limitMs);
  }

  refresh(): void {
    this.#lastActivityMs = performance.now();
  }

  restart(): void {
    this.refresh();
    clearTimeout(this.#timer);
    this.#timer = this.#wait(this.#limitMs);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #wait(ms: number): NodeJS.Timeout {
    return setTimeout(() => {
      const leftMs = this.#lastActivityMs + this.#limitMs - performance.now();
      // The clock of timers may be a millisecond ahead of this one.
      if (leftMs > 1) this.#timer = this.#wait(leftMs);
      else this.#onIdle();
    }, ms);
  }
}
