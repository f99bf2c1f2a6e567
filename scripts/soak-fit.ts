// A straight line through samples over time, by least squares, and an upper bound of its slope. Independent of what is sampled.

export type Sample = { readonly atMs: number; readonly value: number };
export type Slope = { readonly perHour: number; readonly upperPerHour: number };

/** One-sided, for the many samples of a run. */
const Z_95 = 1.645;
const HOUR_MS = 3_600_000;

/** `upperPerHour`: the slope is below it with 95 % confidence, if the samples scatter about the line independently. */
export function fitSlope(samples: readonly Sample[]): Slope {
  const count = samples.length;
  if (count < 3) throw new Error('a line and its error need three samples');
  const meanAt = mean(samples.map(({ atMs }) => atMs));
  const meanValue = mean(samples.map(({ value }) => value));
  const spread = total(samples, ({ atMs }) => (atMs - meanAt) ** 2);
  const slope = total(samples, ({ atMs, value }) => (atMs - meanAt) * (value - meanValue)) / spread;
  const residual = total(samples, ({ atMs, value }) => (value - meanValue - slope * (atMs - meanAt)) ** 2);
  const error = Math.sqrt(residual / (count - 2) / spread);
  return { perHour: slope * HOUR_MS, upperPerHour: (slope + Z_95 * error) * HOUR_MS };
}

export function medianOf(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function total(samples: readonly Sample[], of: (sample: Sample) => number): number {
  return samples.reduce((sum, sample) => sum + of(sample), 0);
}
