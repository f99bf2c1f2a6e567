// How many writes there may be: so many a second, so many at once, and one at a time on the state behind. A document can
// cost half a second of the one event loop, which serves the proxy too.
import { type AdminAnswer, refused, retryAfter } from './answer.ts';
import type { RateLimit } from './rate-limit.ts';

export class WriteGate {
  readonly #max: number;
  readonly #rate: RateLimit;
  #inside = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(max: number, rate: RateLimit) {
    this.#max = max;
    this.#rate = rate;
  }

  /** Lets a write in, who must `leave`, or says why not. */
  enter(): AdminAnswer | undefined {
    if (this.#inside >= this.#max) return BUSY;
    const waitMs = this.#rate.take();
    if (waitMs > 0)
      return refused({
        status: 429,
        reason: 'too_many_writes',
        detail: 'Too many writes: send fewer a second',
        fields: retryAfter(waitMs),
      });
    this.#inside += 1;
    return undefined;
  }

  leave(): void {
    this.#inside -= 1;
  }

  /** Runs `work` after all that was given before: what two writers do is decided by order, not by interleaving. */
  run<T>(work: () => T | Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    return done;
  }
}

const BUSY: AdminAnswer = refused({
  status: 503,
  reason: 'busy',
  detail: 'Other writes are under way: try again',
  fields: retryAfter(1000),
});
