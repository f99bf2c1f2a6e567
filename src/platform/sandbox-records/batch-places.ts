// How many batches of records are taken in at a time: in all, since each holds a connection of the database, and of one
// sandbox, so that it cannot keep out the others. Who finds no place is told when to come back.
import { DomainError } from '../../base/domain-error.ts';

export type BatchPlaces = {
  /** Runs `work` in a place of `key`; throws DomainError when there is none. */
  run<T>(key: string, work: () => Promise<T>): Promise<T>;
};

/** A batch takes milliseconds to tens of them. */
const RETRY_MS = 1_000;

export function createBatchPlaces(limits: { readonly inAll: number; readonly ofOne: number }): BatchPlaces {
  const taken = new Map<string, number>();
  let inAll = 0;
  return {
    async run(key, work) {
      const own = taken.get(key) ?? 0;
      if (inAll >= limits.inAll || own >= limits.ofOne)
        throw new DomainError(
          'too_many',
          'Too many batches of records at a time: send this one again',
          RETRY_MS,
        );
      inAll += 1;
      taken.set(key, own + 1);
      try {
        return await work();
      } finally {
        inAll -= 1;
        const left = (taken.get(key) ?? 1) - 1;
        if (left === 0) taken.delete(key);
        else taken.set(key, left);
      }
    },
  };
}
