// The resident memory of a process as the kernel counts it, sampled ten times a second. Unlike the figures of the process
// itself, it includes what its allocator keeps.
import type { SpawnedProcess } from '../support/spawned-process.ts';

const SAMPLE_MS = 100;

export type ResidentSampler = Disposable & {
  /** The highest value seen since the sampler began. */
  readonly peakBytes: number;
  /** Resolves at the next sample, for tests that poll until a condition holds. */
  nextSample(): Promise<void>;
};

/** Samples until it is disposed of. */
export function sampleResident(process: SpawnedProcess): ResidentSampler {
  let peakBytes = process.usage().residentBytes;
  let pulse = Promise.withResolvers<void>();
  const timer = setInterval(() => {
    peakBytes = Math.max(peakBytes, process.usage().residentBytes);
    pulse.resolve();
    pulse = Promise.withResolvers();
  }, SAMPLE_MS);
  return {
    get peakBytes() {
      return peakBytes;
    },
    nextSample: () => pulse.promise,
    [Symbol.dispose]: () => clearInterval(timer),
  };
}
