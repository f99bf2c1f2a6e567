// A write with a grant that is confirmed in its transaction. Where all statements of the confirmation are known in advance, they are
// sent together with the first statement of the write, which begins with the grant as it was when the request arrived.
import { isDeepStrictEqual } from 'node:util';
import { codeOf } from './database-error.ts';
import type { Store, Transaction } from './database.ts';
import type { PooledTransaction } from './pool/pooled-transaction.ts';

export type Confirmation<G> = {
  /** As it was when the request arrived. */
  readonly granted: G;
  /** Throws a DomainError where it ended. */
  confirm(trx: Transaction): Promise<G>;
  /** Whether `confirm` asks everything at once, by named statements. */
  readonly isAtOnce: boolean;
};

export type Confirmed<G, T> = { readonly granted: G; readonly result: T };
type Confirm<G> = <T>(work: (granted: G) => Promise<T>) => Promise<Confirmed<G, T>>;

/** `write` runs its work within the function that it is given, in a transaction that is rolled back where the grant has ended. */
export async function writeConfirmed<G, R>(
  store: Store,
  confirmation: Confirmation<G>,
  write: (trx: Transaction, confirmed: Confirm<G>) => Promise<R>,
): Promise<R> {
  const run = (isAtOnce: boolean): Promise<R> =>
    store.write((trx) =>
      write(trx, (work) => (isAtOnce ? confirmBeside : confirmFirst)(trx, confirmation, work)),
    );
  try {
    return await run(confirmation.isAtOnce);
  } catch (error) {
    if (error instanceof ChangedGrant) return run(false);
    throw error;
  }
}

/** The role of the caller, for example, is another one than when the request arrived. */
class ChangedGrant extends Error {}

async function confirmFirst<G, T>(
  trx: Transaction,
  { confirm }: Confirmation<G>,
  work: (granted: G) => Promise<T>,
): Promise<Confirmed<G, T>> {
  const granted = await confirm(trx);
  return { granted, result: await work(granted) };
}

/** in_failed_sql_transaction */
const TRANSACTION_FAILED = '25P02';

/** Whatever the work did or threw counts only with the very grant that it began with. */
async function confirmBeside<G, T>(
  trx: PooledTransaction,
  { granted: known, confirm }: Confirmation<G>,
  work: (granted: G) => Promise<T>,
): Promise<Confirmed<G, T>> {
  const confirming = trx.holdBack(() => confirm(trx));
  // Looked at when the work has ended.
  confirming.catch(() => undefined);
  const worked = await work(known).then(
    (result) => ({ hasFailed: false, result }) as const,
    (error: unknown) => ({ hasFailed: true, error }) as const,
  );
  trx.sendHeld();
  const granted = await confirming.catch((error: unknown) => {
    // What the work failed with has ended the transaction, and the confirmation had more to ask in it: it comes first then.
    throw worked.hasFailed && codeOf(error) === TRANSACTION_FAILED ? new ChangedGrant() : error;
  });
  if (!isDeepStrictEqual(granted, known)) throw new ChangedGrant();
  if (worked.hasFailed) throw worked.error;
  return { granted, result: worked.result };
}
