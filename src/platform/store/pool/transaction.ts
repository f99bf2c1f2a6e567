// A transaction on a connection of a pool. Its statements run one at a time, and none of them after its end: the connection is
// somebody else's then.
import type { ConnectionProvider, DatabaseConnection } from '../sql.ts';

/** A connection that can begin and end a transaction. */
export type TransactionalConnection = DatabaseConnection & {
  begin(): Promise<void>;
  commit(): Promise<void>;
  rollback(): Promise<void>;
  /** Sends its named statements together with the next one of the connection itself, and resolves them then. */
  readonly holding: DatabaseConnection;
  /** Sends what is held where no statement follows. */
  sendHeld(): void;
};

/** Commits what `work` did by its connections; rolls it back where `work` or the commit rejects. */
export async function runTransaction<T>(
  connection: TransactionalConnection,
  work: (connections: TransactionConnections) => Promise<T>,
): Promise<T> {
  await connection.begin();
  const own = new TransactionConnections(connection);
  try {
    const result = await work(own);
    own.end();
    await connection.commit();
    return result;
  } catch (error) {
    own.end();
    // What failed first is the reason. A connection that cannot roll back is given to nobody else, and its end rolls back.
    await connection.rollback().catch(() => undefined);
    throw error;
  }
}

export class TransactionConnections implements ConnectionProvider {
  readonly #connection: TransactionalConnection;
  /** Resolves when the statement before has ended; absent while none runs. */
  #last: Promise<void> | undefined;
  #isHolding = false;
  #hasEnded = false;

  constructor(connection: TransactionalConnection) {
    this.#connection = connection;
  }

  provideConnection<T>(work: (connection: DatabaseConnection) => Promise<T>): Promise<T> {
    if (this.#isHolding) return work(this.#connection.holding);
    const result = this.#last === undefined ? this.#run(work) : this.#last.then(() => this.#run(work));
    const onEnd = (): void => {
      if (this.#last === last) this.#last = undefined;
    };
    const last = result.then(onEnd, onEnd);
    this.#last = last;
    return result;
  }

  /** The statements that `work` asks for before it waits for anything are sent together with the next one of the transaction. */
  holdBack<T>(work: () => Promise<T>): Promise<T> {
    this.#isHolding = true;
    try {
      return work();
    } finally {
      this.#isHolding = false;
    }
  }

  sendHeld(): void {
    if (!this.#hasEnded) this.#connection.sendHeld();
  }

  end(): void {
    this.#hasEnded = true;
  }

  async #run<T>(work: (connection: DatabaseConnection) => Promise<T>): Promise<T> {
    if (this.#hasEnded) throw new Error('the transaction has ended');
    return work(this.#connection);
  }
}
