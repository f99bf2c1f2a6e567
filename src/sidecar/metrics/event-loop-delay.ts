// How late timers of this process are, which is how long a request waits until the process looks at it. Sampled, and counted from the
// first reading on: a process whose metrics nobody reads is not woken for them.
import { Durations, type ReadDurations } from '../../base/metrics/counts.ts';

const INTERVAL_MS = 50;
/** In seconds. */
const BOUNDS: readonly number[] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

export type EventLoopDelay = Disposable & { read(): ReadDurations };

export function createEventLoopDelay(): EventLoopDelay {
  const delays = new Durations(BOUNDS);
  let dueMs = performance.now() + INTERVAL_MS;
  const timer = setInterval(() => {
    const now = performance.now();
    delays.add(Math.max(0, now - dueMs) / 1000);
    // An interval is counted from when its function was called.
    dueMs = now + INTERVAL_MS;
  }, INTERVAL_MS).unref();
  return { read: () => delays.read(), [Symbol.dispose]: () => clearInterval(timer) };
}
