// How many runs of all threads wait, as this process knows it: it is counted now and then, and grows with what this process creates
// meanwhile. With several processes the limit is passed by what they create between two counts.
import { DomainError } from '../../../base/domain-error.ts';

const RETRY_MS = 10_000;

export class Backlog {
  readonly limit: number;
  #waiting = 0;
  /** By the clock of this process, which only goes forward; undefined where none is due. */
  #oldestMs: number | undefined;

  constructor(limit: number) {
    this.limit = limit;
  }

  /** Of all processes; a count above the limit need not be exact. `oldestMs`: how long the one has been due that has waited longest. */
  count(waiting: number, oldestMs?: number): void {
    this.#waiting = waiting;
    this.#oldestMs = oldestMs === undefined ? undefined : performance.now() - oldestMs;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** It grows while the database cannot be asked. */
  get oldestSeconds(): number {
    return this.#oldestMs === undefined ? 0 : Math.max(0, performance.now() - this.#oldestMs) / 1000;
  }

  /** One that this process has created and not claimed. */
  add(): void {
    this.#waiting += 1;
  }

  /** Throws `too_many`. */
  requirePlace(): void {
    if (this.#waiting >= this.limit)
      throw new DomainError(
        'too_many',
        `${this.limit} runs wait, as many as SALLYPORT_AGENT_PENDING_RUNS allows: create this one when some have ended`,
        RETRY_MS,
      );
  }
}
