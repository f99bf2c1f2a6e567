// How many writes of one organization run at a time. The audit chain serializes them in any case: more of them at once
// would only occupy connections of the database, for which every other tenant then waits.
import { DomainError } from '../../base/domain-error.ts';
import type { Store, Transaction } from '../store/database.ts';

/** Runs `work` in a transaction in its turn; throws DomainError when the turn does not come in time. */
export type Write = <T>(organizationId: string, work: (trx: Transaction) => Promise<T>) => Promise<T>;

export type TurnLimits = {
  readonly ofOne: number;
  readonly waitMs: number;
};

/** As long as a request waits for the database. */
export const defaultTurns: TurnLimits = { ofOne: 4, waitMs: 10_000 };

const RETRY_MS = 1_000;

type Line = {
  running: number;
  /** First come, first served. */
  readonly waiting: Set<() => void>;
};

export function createWriteTurns(store: Pick<Store, 'write'>, { ofOne, waitMs }: TurnLimits): Write {
  const lines = new Map<string, Line>();

  const enter = async (key: string): Promise<Line> => {
    const line = lines.get(key) ?? { running: 0, waiting: new Set() };
    lines.set(key, line);
    if (line.running < ofOne) line.running += 1;
    else await turnIn(line, waitMs);
    return line;
  };
  const leave = (key: string, line: Line): void => {
    const [next] = line.waiting;
    // A write that ends passes its turn on.
    if (next !== undefined) return next();
    line.running -= 1;
    if (line.running === 0) lines.delete(key);
  };

  return async (key, work) => {
    const line = await enter(key);
    try {
      return await store.write(work);
    } finally {
      leave(key, line);
    }
  };
}

function turnIn({ waiting }: Line, waitMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const take = (): void => {
      clearTimeout(timer);
      waiting.delete(take);
      resolve();
    };
    const timer = setTimeout(() => {
      waiting.delete(take);
      reject(new DomainError('too_many', 'Too many concurrent writes of this organization', RETRY_MS));
    }, waitMs);
    waiting.add(take);
  });
}
