// A limit of silence, for streams of HTTP/2. That of node:http2 outlives a stream that is destroyed, and would hold what
// lies in it for as long as the limit is. A sign of life costs a look at the clock, not a timer.
export class Silence {
  readonly #limitMs: number;
  readonly #onSilence: () => void;
  #lastActivityMs: number = performance.now();
  #timer: NodeJS.Timeout;

  /** Begins at once. `onSilence` is called once; `restart` begins anew. */
  constructor(limitMs: number, onSilence: () => void) {
    this.#limitMs = limitMs;
    this.#onSilence = onSilence;
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
      // The clock of timers may run a millisecond ahead of this one.
      if (leftMs > 1) this.#timer = this.#wait(leftMs);
      else this.#onSilence();
    }, ms);
  }
}
