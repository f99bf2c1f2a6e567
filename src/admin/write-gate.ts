// How many writes there may be: so many a second, so many at once, and one at a time on the state behind. A document can
// cost half a second of the one event loop, which serves the proxy too.
import { type AdminResponse, refused, retryAfter } from './answer.ts';
import type { RateLimit } from './rate-limit.ts';

export class WriteGate {
  readonly #max: number;
  readonly #rate: RateLimit;
  readonly #stallMs: number;
  #inside = 0;
  #last: Promise<void> = Promise.resolve();
  #isStalled = false;

  /** `stallMs`: how long one write may keep the others waiting. */
  constructor(max: number, rate: RateLimit, stallMs: number) {
    this.#max = max;
    this.#rate = rate;
    this.#stallMs = stallMs;
  }

  /** Lets a write in, who must `leave`, or says why not. */
  enter(): AdminResponse | undefined {
    if (this.#isStalled) return STALLED;
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

  /**
   * Runs `work` after all that was given before: what two writers do is decided by order, not by interleaving. Work whose
   * turn does not come is never done. Work that has begun is waited for, however long: what became of it is not known.
   */
  async run(work: () => AdminResponse | Promise<AdminResponse>): Promise<AdminResponse> {
    const turn = this.#last;
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    this.#last = turn.then(() => ended);
    try {
      if (!(await isWithin(turn, this.#stallMs))) {
        this.#isStalled = true;
        void turn.then(() => (this.#isStalled = false));
        return STALLED;
      }
      return await work();
    } finally {
      end();
    }
  }
}

async function isWithin(event: Promise<void>, ms: number): Promise<boolean> {
  const { promise: isLate, resolve } = Promise.withResolvers<false>();
  const limit = setTimeout(() => resolve(false), ms);
  try {
    return await Promise.race([event.then(() => true), isLate]);
  } finally {
    clearTimeout(limit);
  }
}

const STALLED: AdminResponse = refused({
  status: 503,
  reason: 'busy',
  detail:
    'An earlier write does not end, so nothing is changed: see to the disk that holds the state directory',
  fields: retryAfter(10_000),
});
const BUSY: AdminResponse = refused({
  status: 503,
  reason: 'busy',
  detail: 'Other writes are under way: try again',
  fields: retryAfter(1000),
});
