// The connections of a pool as kysely uses them. Named statements and the ends of transactions go their own way through pg, and
// errors are those that the domain understands.
import { isStaleStatement, isTimeout, isUnreachable, toDomainError } from '../database-error.ts';
import type { CompiledQuery, DatabaseConnection, Driver, QueryResult, TransactionSettings } from '../sql.ts';
import { findStatement } from '../statement.ts';
import {
  type Done,
  type Group,
  type GroupedQueryClass,
  type GroupResult,
  groupStatements,
  type SentStatement,
  type StatementConfig,
} from '../statement-group.ts';
import type { StatementValue } from './run-message.ts';
import { StatementQuery, type StatementSession } from './statement-query.ts';
import type { TransactionalConnection } from './transaction.ts';

export type DriverOptions = {
  /** False for a pooler that gives each transaction another connection; true when absent. */
  readonly hasNamedStatements?: boolean;
  /** The server could not be reached. */
  onUnreachable?(error: unknown): void;
};

/** What is used of pg's pool. */
type Pool = { connect(): Promise<Client>; end(): Promise<void> };
/** What is used of a client of it. */
export type Client = {
  query(text: string, values: unknown[]): Promise<GroupResult>;
  query(query: { submit(connection: never): unknown }): unknown;
  getTypeParser(type: number, format: 'text'): (text: string) => unknown;
  end(): unknown;
  release(isBroken: boolean): void;
};

export class PoolDriver implements Driver {
  readonly #pool: Pool;
  readonly #grouped: GroupedQueryClass;
  readonly #options: DriverOptions;
  readonly #known = new WeakMap<Client, PooledConnection>();
  #ended: Promise<void> | undefined;

  constructor(pool: Pool, grouped: GroupedQueryClass, options: DriverOptions) {
    this.#pool = pool;
    this.#grouped = grouped;
    this.#options = options;
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<PooledConnection> {
    try {
      const client = await this.#pool.connect();
      const known = this.#known.get(client);
      if (known !== undefined) return known;
      const connection = new PooledConnection(
        client,
        this.#grouped,
        this.#options.hasNamedStatements ?? true,
      );
      this.#known.set(client, connection);
      return connection;
    } catch (error) {
      if (isUnreachable(error)) this.#options.onUnreachable?.(error);
      throw toDomainError(error);
    }
  }

  /** Acquires a connection, uses it and releases it. */
  async provideConnection<T>(work: (connection: PooledConnection) => Promise<T>): Promise<T> {
    const connection = await this.acquireConnection();
    try {
      return await work(connection);
    } finally {
      connection.release();
    }
  }

  async releaseConnection(connection: DatabaseConnection): Promise<void> {
    asPooled(connection).release();
  }

  beginTransaction(connection: DatabaseConnection, settings: TransactionSettings): Promise<void> {
    return asPooled(connection).begin(settings);
  }

  commitTransaction(connection: DatabaseConnection): Promise<void> {
    return asPooled(connection).commit();
  }

  rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    return asPooled(connection).rollback();
  }

  /** Waits for running queries. */
  destroy(): Promise<void> {
    return (this.#ended ??= this.#pool.end());
  }
}

export function asPooled(connection: DatabaseConnection): PooledConnection {
  if (connection instanceof PooledConnection) return connection;
  throw new Error('the connection belongs to no pool');
}

const CHANGING: ReadonlySet<string> = new Set(['INSERT', 'UPDATE', 'DELETE', 'MERGE']);

class PooledConnection implements TransactionalConnection {
  /** It is in a transaction that could not be ended: nobody else may get it. */
  #isBroken = false;
  readonly #client: Client;
  readonly #grouped: GroupedQueryClass;
  readonly #hasNamedStatements: boolean;
  readonly #session: StatementSession;
  readonly #send: (statement: SentStatement) => Promise<GroupResult>;

  constructor(client: Client, grouped: GroupedQueryClass, hasNamedStatements: boolean) {
    this.#client = client;
    this.#grouped = grouped;
    this.#hasNamedStatements = hasNamedStatements;
    this.#session = { prepared: new Map(), findParser: (type) => client.getTypeParser(type, 'text') };
    this.#send = groupStatements((config, group) => this.#run(config, group));
  }

  async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    const { command, rowCount, rows } = await this.#execute(sql, parameters);
    if (!CHANGING.has(command)) return { rows: rows as R[] };
    return { rows: rows as R[], numAffectedRows: BigInt(rowCount ?? 0) };
  }

  /** kysely's rows by a cursor, which would need another package. */
  streamQuery(): never {
    throw new Error('this connection has no cursors');
  }

  async begin({ isolationLevel: level, accessMode: mode }: TransactionSettings = {}): Promise<void> {
    const modes = [level && `isolation level ${level}`, mode].filter((each) => each !== undefined);
    await this.#execute(modes.length === 0 ? 'begin' : `start transaction ${modes.join(' ')}`);
  }

  /** Rejects where the server rolls back instead, as it does after a failed statement. */
  async commit(): Promise<void> {
    const { command } = await this.#execute('commit');
    if (command === 'ROLLBACK') throw new Error('a statement of the transaction failed: it was rolled back');
  }

  async rollback(): Promise<void> {
    try {
      await this.#execute('rollback');
    } catch (error) {
      this.#isBroken = true;
      throw error;
    }
  }

  async #execute(text: string, values: readonly unknown[] = []): Promise<GroupResult> {
    const { name, isSentWithCommit = false } = findStatement(text) ?? {};
    try {
      return await this.#send({ config: { text, values, name }, isSentWithCommit });
    } catch (error) {
      // Further queries would wait behind the one that timed out, or run the same stale statement.
      if (isTimeout(error) || isStaleStatement(error)) void this.#client.end();
      // Its own stack ends where the response was read.
      if (error instanceof Error) Error.captureStackTrace(error);
      throw toDomainError(error);
    }
  }

  /** What kysely cannot do, such as COPY. */
  async runOnClient<T>(work: (client: Client) => Promise<T>): Promise<T> {
    // The BEGIN is sent with the first statement.
    await this.#execute('select 1');
    return work(this.#client).catch((error: unknown) => {
      throw toDomainError(error);
    });
  }

  release(): void {
    this.#client.release(this.#isBroken);
  }

  #run(config: StatementConfig, group: Group): Promise<GroupResult> {
    const { text, values = [], name } = config;
    if (name === undefined && !group.hasBegin && !group.hasCommit)
      return this.#client.query(text, [...values]);
    const { promise, resolve, reject } = Promise.withResolvers<GroupResult>();
    const done = (error: unknown, result?: GroupResult): void =>
      result === undefined ? reject(error) : resolve(result);
    this.#client.query(
      name === undefined ? new this.#grouped(config, group, done) : this.#toQuery(name, config, group, done),
    );
    return promise;
  }

  /** `defineStatement` lets no other values in. */
  #toQuery(given: string, { text, values }: StatementConfig, group: Group, done: Done): StatementQuery {
    const name = this.#hasNamedStatements ? given : '';
    const run = { name, text, values: (values ?? []) as readonly StatementValue[], ...group };
    return new StatementQuery(this.#session, run, done);
  }
}
