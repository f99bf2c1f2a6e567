// When an agent server is started again: after it ended, could not be started, or did not respond for some checks. Pure.

export const HEALTH_INTERVAL_MS = 5_000;
const MAX_MISSES = 3;
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 60_000;
/** One that served for so long begins again with the first pause. */
const STABLE_MS = 60_000;

export type RestartPolicy = {
  /** It is ready. */
  began(nowMs: number): void;
  /** It ended, or could not be started. Returns how long to wait before the next start. */
  ended(nowMs: number): number;
  /** Returns whether it must be ended and started again. */
  checked(isHealthy: boolean): boolean;
};

export function createRestartPolicy(): RestartPolicy {
  let failures = 0;
  let misses = 0;
  let readyMs: number | undefined;
  return {
    began(nowMs) {
      readyMs = nowMs;
      misses = 0;
    },
    ended(nowMs) {
      if (readyMs !== undefined && nowMs - readyMs >= STABLE_MS) failures = 0;
      readyMs = undefined;
      const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** failures, MAX_PAUSE_MS);
      failures += 1;
      return pauseMs;
    },
    checked(isHealthy) {
      misses = isHealthy ? 0 : misses + 1;
      return misses >= MAX_MISSES;
    },
  };
}
