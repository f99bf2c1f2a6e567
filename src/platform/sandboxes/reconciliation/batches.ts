// Work on many boxes in transactions of a bounded length, so that nobody waits long for their rows.
import type { Store, Transaction } from '../../store/database.ts';

/** Rows of one transaction. */
export const BATCH = 100;

/** `work` resolves with the number of rows that it found, at most BATCH. Resolves with the sum. */
export async function inBatches(
  store: Pick<Store, 'write'>,
  work: (trx: Transaction) => Promise<number>,
): Promise<number> {
  for (let all = 0; ; ) {
    const count = await store.write(work);
    all += count;
    if (count < BATCH) return all;
  }
}
