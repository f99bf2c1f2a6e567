// Repeats a transaction that the database rolled back in favour of another one.
import { setTimeout } from 'node:timers/promises';
import { DomainError } from '../../base/domain-error.ts';
import { codeOf } from './database-error.ts';

const MAX_ATTEMPTS = 5;
/** serialization_failure, deadlock_detected */
const ROLLED_BACK: ReadonlySet<unknown> = new Set(['40001', '40P01']);
/** Times the number of attempts so far. */
const MAX_PAUSE_MS = 20;
const RETRY_MS = 1_000;

/** Throws DomainError `unavailable` when every attempt was rolled back. `run` begins and ends the transaction. */
export async function retryRolledBack<T>(run: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await run();
    } catch (error) {
      if (!ROLLED_BACK.has(codeOf(error))) throw error;
      if (attempt === MAX_ATTEMPTS) throw busy(error);
    }
    // The other transaction still has to wake up: without a pause, this one would take its first lock again before that.
    await setTimeout(Math.random() * attempt * MAX_PAUSE_MS);
  }
}

function busy(cause: unknown): DomainError {
  const failure = new DomainError('unavailable', 'Others change the same things: try again', RETRY_MS);
  failure.cause = cause;
  return failure;
}
