// What is counted of the callbacks of a process, over all of its sandboxes.
import { NamedCounts, NamedDurations } from '../base/metrics/counts.ts';

/** How a resolution without a cached response ended: `rejected`: too many calls were running, so none was made. */
export const callResults = ['ok', 'failed', 'rejected'] as const;

/** Of the callbacks of all tenants; the others share one label. */
const MAX_NAMES = 64;
/** In seconds: a callback delays each request that waits for it. */
const BOUNDS: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export class CallbackCounters {
  cacheHits = 0;
  /** Also resolutions that joined a call under way. */
  cacheMisses = 0;
  /** By the name of the callback and the result. */
  readonly calls: NamedCounts = new NamedCounts(MAX_NAMES, callResults.length);
  /** Of the calls that were made, whatever their result. */
  readonly seconds: NamedDurations = new NamedDurations(MAX_NAMES, BOUNDS);

  countLookup(isHit: boolean): void {
    if (isHit) this.cacheHits += 1;
    else this.cacheMisses += 1;
  }

  countRejected(callback: string): void {
    this.calls.add(callback, callResults.indexOf('rejected'));
  }

  /** Counts the call when it has ended. It must not reject. */
  async measure<T extends { readonly ok: boolean }>(callback: string, call: Promise<T>): Promise<T> {
    const startedMs = performance.now();
    const ended = await call;
    this.calls.add(callback, callResults.indexOf(ended.ok ? 'ok' : 'failed'));
    this.seconds.add(callback, (performance.now() - startedMs) / 1000);
    return ended;
  }
}
