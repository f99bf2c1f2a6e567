// How many writes there may be: so many a second, so many at once, and one at a time on the state behind. A document can
// cost half a second of the one event loop, which serves the proxy too.
import type { RateLimit } from '../base/rate-limit.ts';
import { adminError, type AdminResponse } from './admin-errors.ts';

export class WriteGate {
  readonly #max: number;
  readonly #rate: RateLimit;
  readonly #stallMs: number;
  #inside = 0;
  #last: Promise<void> = Promise.resolve();
  #isStalled = false;

  /** `stallMs`: how long one write may delay the others. */
  constructor(max: number, rate: RateLimit, stallMs: number) {
    this.#max = max;
    this.#rate = rate;
    this.#stallMs = stallMs;
  }

  /** Admits a write, which must `leave`, or returns why not. */
  enter(): AdminResponse | undefined {
    if (this.#isStalled) return STALLED;
    if (this.#inside >= this.#max) return adminError('busy', { waitMs: 1000 });
    const waitMs = this.#rate.take();
    if (waitMs > 0) return adminError('too_many_writes', { waitMs });
    this.#inside += 1;
    return undefined;
  }

  leave(): void {
    this.#inside -= 1;
  }

  /**
   * Runs `work` after all earlier work: the order decides what two writers do, not the interleaving. Work that does not
   * start within `stallMs` is never done. Work that has started is waited for, however long: its result is not known.
   */
  async run(work: () => AdminResponse | Promise<AdminResponse>): Promise<AdminResponse> {
    const earlier = this.#last;
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    this.#last = earlier.then(() => ended);
    try {
      if (!(await isWithin(earlier, this.#stallMs))) {
        this.#isStalled = true;
        void earlier.then(() => (this.#isStalled = false));
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

const STALLED: AdminResponse = adminError('busy', {
  detail: 'An earlier write does not end, so nothing is changed: check the disk of the state directory',
  waitMs: 10_000,
});
