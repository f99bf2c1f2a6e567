// The result of each request of a load as the client saw it, and as the proxy recorded it. One byte per request, so that a
// million need little memory.
import { type Percentiles, percentilesOf } from '../../bench/support/percentiles.ts';
import type { LogRecord } from '../support/spawned-process.ts';
import type { Ended, Verdict } from './h2-load-request.ts';

const VERDICTS: readonly Verdict[] = ['whole', 'reset', 'cancelled', 'unread', 'lost', 'crossed'];
/** The outcomes that a record of a request may have. */
const RECORDED: Readonly<Record<Verdict, readonly string[]>> = {
  whole: ['injected'],
  reset: ['upstream_reset'],
  // The reset may have crossed the end of the response, or may have arrived first.
  cancelled: ['client_gone', 'injected', 'upstream_reset'],
  unread: ['upstream_reset'],
  lost: [],
  crossed: [],
};
const KEPT_ERRORS = 20;

export class LoadLedger {
  readonly #verdicts: Uint8Array;
  /** Of the record: its index in `#words`; 255 for more than one record. */
  readonly #recorded: Uint8Array;
  readonly #words: string[] = [];
  readonly #latencies: Float64Array;
  #measured = 0;
  /** The first few violations. */
  readonly errors: string[] = [];
  readonly counts: Record<Verdict, number> = {
    whole: 0,
    reset: 0,
    cancelled: 0,
    unread: 0,
    lost: 0,
    crossed: 0,
  };
  ended = 0;

  constructor(requests: number) {
    this.#verdicts = new Uint8Array(requests);
    this.#recorded = new Uint8Array(requests);
    this.#latencies = new Float64Array(requests);
  }

  end(n: number, { verdict, error }: Ended, latencyMs: number): void {
    if (this.#verdicts[n] !== 0) this.#blame(`request ${n} ended twice`);
    this.#verdicts[n] = VERDICTS.indexOf(verdict) + 1;
    this.counts[verdict] += 1;
    this.ended += 1;
    if (error !== undefined) this.#blame(error);
    if (verdict !== 'whole') return;
    this.#latencies[this.#measured] = latencyMs;
    this.#measured += 1;
  }

  record({ path, outcome, reason, cause, protocol }: LogRecord): void {
    const n = Number(/^\/\w+\/n(\d+)\//.exec(String(path))?.[1]);
    if (!(n < this.#recorded.length) || protocol !== 'h2') {
      // The reason for the end of a connection explains all others: it comes first.
      this.errors.unshift(
        `${String(path ?? 'a connection')} is recorded: ${String(reason)} ${String(cause)}`,
      );
      return;
    }
    if (this.#recorded[n] !== 0) return this.#blame(`request ${n} is recorded twice`);
    this.#recorded[n] = this.#placeOf(String(outcome === 'injected' ? outcome : reason));
  }

  /** Starts a new series of latencies. */
  forgetLatencies(): void {
    this.#measured = 0;
  }

  get latency(): Percentiles {
    return percentilesOf([this.#latencies.subarray(0, this.#measured)]);
  }

  /** Requests that have ended without a record so far. */
  get unrecorded(): number {
    let count = 0;
    for (const [n, verdict] of this.#verdicts.entries())
      if (verdict !== 0 && this.#recorded[n] === 0 && VERDICTS[verdict - 1] !== 'cancelled') count += 1;
    return count;
  }

  /** Requests whose record is missing or differs from what their client saw. */
  get misrecorded(): number {
    let count = 0;
    for (const [n, place] of this.#verdicts.entries()) {
      const verdict = VERDICTS[place - 1];
      if (verdict === undefined) continue;
      const word = this.#words[(this.#recorded[n] ?? 0) - 1];
      // A request that is reset immediately may never have been sent.
      const isRight = word === undefined ? verdict === 'cancelled' : RECORDED[verdict].includes(word);
      if (isRight) continue;
      count += 1;
      this.#blame(`request ${n} was ${verdict} and is recorded as ${word ?? 'nothing'}`);
    }
    return count;
  }

  #placeOf(word: string): number {
    const at = this.#words.indexOf(word);
    return at === -1 ? this.#words.push(word) : at + 1;
  }

  #blame(error: string): void {
    if (this.errors.length < KEPT_ERRORS) this.errors.push(error);
  }
}
