// Reports once that the database cannot be reached, and once that it can again, for all pools of a process: who is on call
// reads two lines, not one for each connection and each attempt.
import { describeBug, type Log } from '../../base/log.ts';

export type Availability = {
  /** An idle connection broke. It is replaced. */
  onError(error: unknown): void;
  /** No connection could be opened. */
  onUnreachable(error: unknown): void;
  /** A connection was opened. */
  onConnected(): void;
};

/** `nowMs` is any clock that is not set back. */
export function createAvailability(
  log: Pick<Log, 'info' | 'warn' | 'error'>,
  nowMs: () => number = () => performance.now(),
): Availability {
  let isBreaking = false;
  let sinceMs: number | undefined;
  return {
    onError(error) {
      if (isBreaking || sinceMs !== undefined) return;
      isBreaking = true;
      log.warn(describeBug(error), 'a database connection broke');
    },
    onUnreachable(error) {
      if (sinceMs !== undefined) return;
      sinceMs = nowMs();
      log.error(describeBug(error), 'the database cannot be reached: requests that need it get a 503');
    },
    onConnected() {
      isBreaking = false;
      if (sinceMs === undefined) return;
      const seconds = Math.round((nowMs() - sinceMs) / 1000);
      sinceMs = undefined;
      log.info({ seconds }, 'the database can be reached again');
    },
  };
}
