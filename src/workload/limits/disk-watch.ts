// Ends workloads that write more than they may. A program can exceed its limit by what the disk takes within a second.
import { exceeds, type Measured, measureUse, needsCount, readFree } from './disk-usage.ts';

export type DiskWatched = {
  readonly limitBytes: number;
  /** The directories that it may write to. */
  readonly paths: readonly string[];
  exceed(): void;
};

const PERIOD_MS = 1_000;
/** Counting reads the disk that all workloads share. */
const MAX_COUNTS = 4;

export class DiskWatch {
  readonly #watched = new Map<DiskWatched, Measured | undefined>();
  readonly #counted = new Set<DiskWatched>();
  #timer: NodeJS.Timeout | undefined;

  /** Returns what ends the watch. */
  add(one: DiskWatched): () => void {
    this.#watched.set(one, undefined);
    this.#timer ??= setInterval(() => void this.check().catch(() => undefined), PERIOD_MS).unref();
    return () => {
      this.#watched.delete(one);
      if (this.#watched.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    };
  }

  /** Resolves when the workloads that may exceed their limits are counted; those that wait for another count are left out. */
  async check(nowMs: number = performance.now()): Promise<void> {
    await Promise.all([...this.#watched].map(([one, measured]) => this.#checkOne(one, measured, nowMs)));
  }

  async #checkOne(one: DiskWatched, measured: Measured | undefined, nowMs: number): Promise<void> {
    const free = await readFree(one.paths);
    if (this.#counted.has(one) || this.#counted.size >= MAX_COUNTS) return;
    if (!needsCount(measured, free, nowMs, one.limitBytes)) return;
    this.#counted.add(one);
    try {
      const use = await measureUse(one.paths);
      if (!this.#watched.has(one)) return;
      if (use === undefined) return;
      // A tree that cannot be counted in time is larger than any that is allowed.
      if (use === 'late' || exceeds(use, one.limitBytes)) one.exceed();
      else this.#watched.set(one, { use, free, atMs: nowMs });
    } finally {
      this.#counted.delete(one);
    }
  }
}
