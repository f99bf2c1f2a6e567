// How many requests a second somebody may send: a token bucket for each name. Who waits as long as the response says is
// served, when nobody else takes the tokens of the same name.
import { BoundedCache } from '../../../base/bounded-cache.ts';

export type RateLimit = {
  /** Takes a token; returns 0, or the milliseconds until there is one. */
  take(name: string): number;
};

type Bucket = { tokens: number; atMs: number };

/** `burst` tokens are there at first. `now` returns milliseconds. A bucket that was not used for long is forgotten, which fills it. */
export function createRateLimit(options: {
  readonly perSecond: number;
  readonly burst: number;
  readonly maxNames: number;
  now(): number;
}): RateLimit {
  const { perSecond, burst: full, maxNames, now } = options;
  const buckets = new BoundedCache<Bucket>({ max: maxNames, now });
  return {
    take(name) {
      const atMs = now();
      let bucket = buckets.get(name);
      if (bucket === undefined) buckets.set(name, (bucket = { tokens: full, atMs }));
      bucket.tokens = Math.min(full, bucket.tokens + ((atMs - bucket.atMs) * perSecond) / 1000);
      bucket.atMs = atMs;
      if (bucket.tokens < 1) return ((1 - bucket.tokens) * 1000) / perSecond;
      bucket.tokens -= 1;
      return 0;
    },
  };
}
