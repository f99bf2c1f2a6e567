// A transaction on a connection of a pool as callers use it. Statements whose results are looked at later can be held back: they are
// sent with the next one, which saves their round trip.
import { type KyselyProps, KyselyTransaction } from '../sql.ts';
import type { Tables } from '../tables.ts';
import type { TransactionConnections } from './transaction.ts';

export class PooledTransaction extends KyselyTransaction<Tables> {
  readonly #connections: TransactionConnections;

  constructor(props: KyselyProps, connections: TransactionConnections) {
    super(props);
    this.#connections = connections;
  }

  /**
   * The named statements that `work` calls before it waits for anything are sent together with the next one, in the order of the calls.
   * They resolve then: nothing that leads to that next statement may wait for them.
   */
  holdBack<T>(work: () => Promise<T>): Promise<T> {
    return this.#connections.holdBack(work);
  }

  /** Sends what is held back without a statement behind it. */
  sendHeld(): void {
    this.#connections.sendHeld();
  }
}
