// Exact percentiles over all samples, and medians with their spread over rounds. Nearest rank, no interpolation, no buckets:
// every figure is a measured latency.

export type Percentiles = {
  readonly count: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
};

export type Spread = { readonly median: number; readonly low: number; readonly high: number };

/** The smallest sample that at least `share` of all samples do not exceed. */
export function percentile(sorted: ArrayLike<number>, share: number): number {
  // A share such as 0.999 has no exact binary form: 0.999 * 1000 must stay rank 999.
  const rank = Math.ceil(share * sorted.length - 1e-9);
  return sorted[Math.max(rank, 1) - 1] ?? Number.NaN;
}

export function percentilesOf(samples: readonly Float64Array[]): Percentiles {
  const sorted = new Float64Array(samples.reduce((count, each) => count + each.length, 0));
  let at = 0;
  for (const each of samples) {
    sorted.set(each, at);
    at += each.length;
  }
  sorted.sort();
  return {
    count: sorted.length,
    p50: percentile(sorted, 0.5),
    p90: percentile(sorted, 0.9),
    p99: percentile(sorted, 0.99),
    p999: percentile(sorted, 0.999),
    max: percentile(sorted, 1),
  };
}

/** The middle value, or the mean of the two in the middle. */
export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const upper = sorted[sorted.length >> 1] ?? Number.NaN;
  const lower = sorted[(sorted.length - 1) >> 1] ?? Number.NaN;
  return {
    median: (lower + upper) / 2,
    low: sorted[0] ?? Number.NaN,
    high: sorted.at(-1) ?? Number.NaN,
  };
}
