// Cancellations of runs that this process may be about to start: while a place is reserved for a run, its transaction may be committed and
// somebody may cancel it before the process has started it. Each is kept no longer than the places that were reserved when it came. Pure.

export type Watch = { readonly since: number };

const MAX_KEPT = 10_000;

export class RecentCancellations {
  readonly #max: number;
  /** By the id of the run, in the order in which they came. */
  readonly #runs = new Map<string, number>();
  /** In the order in which they began. */
  readonly #watches = new Set<Watch>();
  #sequence = 0;
  /** Of those that were left out, because too many came while one place was reserved. */
  #lastLeftOut = 0;

  constructor(max: number = MAX_KEPT) {
    this.#max = max;
  }

  get kept(): number {
    return this.#runs.size;
  }

  watch(): Watch {
    const watch = { since: this.#sequence };
    this.#watches.add(watch);
    return watch;
  }

  end(watch: Watch): void {
    this.#watches.delete(watch);
    const [oldest] = this.#watches;
    this.#removeUntil(oldest === undefined ? this.#sequence : oldest.since);
  }

  add(runId: string): void {
    if (this.#watches.size === 0) return;
    this.#sequence += 1;
    this.#runs.delete(runId);
    this.#runs.set(runId, this.#sequence);
    if (this.#runs.size <= this.#max) return;
    const [[first, sequence] = ['', 0]] = this.#runs;
    this.#runs.delete(first);
    this.#lastLeftOut = sequence;
  }

  /** Since that watch has begun. Also true where it is not known any more. */
  mayHave(runId: string, { since }: Watch): boolean {
    return this.#lastLeftOut > since || (this.#runs.get(runId) ?? 0) > since;
  }

  #removeUntil(last: number): void {
    for (const [runId, sequence] of this.#runs) {
      if (sequence > last) return;
      this.#runs.delete(runId);
    }
  }
}
