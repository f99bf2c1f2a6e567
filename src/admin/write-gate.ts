// How many writes there may be: for each sandbox so many a second, so many bytes of documents in a time and so many at
// once; and one at a time on the state behind. A document costs time by its size, of the event loop that serves the proxy too.
import { BoundedCache } from '../base/bounded-cache.ts';
import { RateLimit } from '../base/rate-limit.ts';
import { adminError, type AdminResponse } from './admin-errors.ts';
import { ByteBudget } from './byte-budget.ts';

export type WriteLimits = {
  /** Of all sandboxes together; each write may hold a document in memory. */
  readonly writesInAll: number;
  /** Of one sandbox, as are the limits below. */
  readonly writesAtOnce: number;
  readonly writesPerSecond: number;
  /** Of one document. Twice as many are accepted in a row, then as many every four seconds. */
  readonly bodyBytes: number;
  /** How long one write may delay others. */
  readonly stallMs: number;
};

/** What one sandbox may still write. */
type Share = { inside: number; readonly rate: RateLimit; readonly bytes: ByteBudget };

// Shares of sandboxes that have not written for long are forgotten. There are at most a thousand sandboxes.
const MAX_SHARES = 2_048;
const FILL_SECONDS = 4;

export class WriteGate {
  readonly #limits: WriteLimits;
  readonly #now: () => number;
  readonly #shares = new BoundedCache<Share>({ max: MAX_SHARES });
  #inside = 0;
  #last: Promise<void> = Promise.resolve();
  #isStalled = false;

  /** `now` must be monotonic, in milliseconds. */
  constructor(limits: WriteLimits, now: () => number) {
    this.#limits = limits;
    this.#now = now;
  }

  /**
   * Admits a write, which must `leave`, or returns why not. One sandbox's writes do not use up those of another. `bytes`: as
   * its head announces them; undefined: the write has no document.
   */
  enter(sandbox: string, bytes: number | undefined): AdminResponse | undefined {
    if (this.#isStalled) return STALLED;
    const { writesAtOnce, writesInAll } = this.#limits;
    const share = this.#shareOf(sandbox);
    if (this.#inside >= writesInAll) return adminError('busy', { waitMs: 1000 });
    if (share.inside >= writesAtOnce) return adminError('too_many_writes', { waitMs: 1000 });
    // Before the count: a write that is rejected for what came before it uses up nothing.
    const waitMs = (bytes === undefined ? 0 : share.bytes.waitMs(bytes)) || share.rate.take();
    if (waitMs > 0) return adminError('too_many_writes', { waitMs });
    share.inside += 1;
    this.#inside += 1;
    return undefined;
  }

  /** Admits the document of a write that was admitted, or returns why not: others may have arrived sooner. */
  admitDocument(sandbox: string, bytes: number): AdminResponse | undefined {
    const waitMs = this.#shareOf(sandbox).bytes.take(bytes);
    return waitMs > 0 ? adminError('too_many_writes', { waitMs }) : undefined;
  }

  leave(sandbox: string): void {
    const share = this.#shareOf(sandbox);
    share.inside = Math.max(0, share.inside - 1);
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
      if (!(await isWithin(earlier, this.#limits.stallMs))) {
        this.#isStalled = true;
        void earlier.then(() => (this.#isStalled = false));
        return STALLED;
      }
      return await work();
    } finally {
      end();
    }
  }

  #shareOf(sandbox: string): Share {
    const known = this.#shares.get(sandbox);
    if (known !== undefined) return known;
    const { writesPerSecond, bodyBytes } = this.#limits;
    const now = this.#now;
    const share = {
      inside: 0,
      rate: new RateLimit(writesPerSecond, 1000, now),
      bytes: new ByteBudget({ max: bodyBytes, perSecond: bodyBytes / FILL_SECONDS, now }),
    };
    this.#shares.set(sandbox, share);
    return share;
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
