// A transaction on a connection of a pool. Its statements run one at a time, and none of them after its end: the connection is
// somebody else's then.
import type { ConnectionProvider, DatabaseConnection } from '../sql.ts';

/** A connection that can begin and end a transaction. */
export type TransactionalConnection = DatabaseConnection & {
  begin(): Promise<void>;
  commit(): Promise<void>;
  rollback(): Promise<void>;
};

/** Commits what `work` did by its connections; rolls it back where `work` or the commit rejects. */
export async function runTransaction<T>(
  connection: TransactionalConnection,
  work: (connections: ConnectionProvider) => Promise<T>,
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

class TransactionConnections implements ConnectionProvider {
  readonly #connection: DatabaseConnection;
  /** Resolves when the statement before has ended. */
  #last: Promise<unknown> = Promise.resolve();
  #hasEnded = false;

  constructor(connection: DatabaseConnection) {
    this.#connection = connection;
  }

  provideConnection<T>(work: (connection: DatabaseConnection) => Promise<T>): Promise<T> {
    const result = this.#last.then(() => {
      if (this.#hasEnded) throw new Error('the transaction has ended');
      return work(this.#connection);
    });
    this.#last = result.catch(() => undefined);
    return result;
  }

  end(): void {
    this.#hasEnded = true;
  }
}
