// The time for which this runner may rely on what it has. A runner that is not seen for half a minute has lost its deployments to another
// one: by then it has ended what it ran of them.
import { RUNNER_LOST_SECONDS, type Runner, registerRunner, renewRunner } from '../deployments/runners.ts';
import type { Database } from '../store/database.ts';

export type RunnerLease = {
  /** Rejects when the database does not respond; false: the row is gone. */
  renew(): Promise<boolean>;
  /** Takes a new one. What this runner had may be another's by now. */
  register(): Promise<void>;
  readonly isHeld: boolean;
};

/** To end what runs before another one begins it. */
const RESERVE_MS = 5_000;

export function createRunnerLease(
  db: Database,
  runner: Runner,
  now: () => number = () => performance.now(),
): RunnerLease {
  // By the monotonic clock of this machine. The statement is sent before the database begins to count, so this ends first.
  let heldUntil = Number.NEGATIVE_INFINITY;
  const holdFrom = (sentAt: number): void => {
    heldUntil = sentAt + RUNNER_LOST_SECONDS * 1000 - RESERVE_MS;
  };
  return {
    get isHeld() {
      return now() < heldUntil;
    },
    async renew() {
      const sentAt = now();
      const isThere = await renewRunner(db, runner.id);
      if (isThere) holdFrom(sentAt);
      else heldUntil = Number.NEGATIVE_INFINITY;
      return isThere;
    },
    async register() {
      const sentAt = now();
      await registerRunner(db, runner);
      holdFrom(sentAt);
    },
  };
}
