// The connections of a pool as kysely uses them. Named statements and the ends of transactions go their own way through pg, and
// errors are those that the domain understands.
import { isStaleStatement, isTimeout, isUnreachable, toDomainError } from '../database-error.ts';
import type { CompiledQuery, DatabaseConnection, Driver, QueryResult, TransactionSettings } from '../sql.ts';
import { findStatement } from '../statement.ts';
import {
  type Group,
  type GroupedQueryClass,
  type GroupResult,
  type Sent,
  type StatementConfig,
  StatementGroups,
} from './statement-group.ts';
import type { StatementValue } from './run-message.ts';
import { type NamedStatement, StatementQuery, type StatementSession } from './statement-query.ts';
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
  readonly #groups: StatementGroups;
  /** Sends named statements together with the next one of the transaction. */
  readonly holding: DatabaseConnection;

  constructor(client: Client, grouped: GroupedQueryClass, hasNamedStatements: boolean) {
    this.#client = client;
    this.#grouped = grouped;
    this.#hasNamedStatements = hasNamedStatements;
    this.#session = { prepared: new Map(), findParser: (type) => client.getTypeParser(type, 'text') };
    this.#groups = new StatementGroups((statements, group) => this.#run(statements, group));
    this.holding = { executeQuery: (query) => this.#hold(query), streamQuery: () => this.streamQuery() };
  }

  async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    try {
      return toQueryResult(await this.#send(sql, parameters));
    } catch (error) {
      throw this.#explain(error);
    }
  }

  async #hold<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const { sql: text, parameters: values } = query;
    const { name } = findStatement(text) ?? {};
    if (name === undefined) return this.executeQuery(query);
    try {
      return toQueryResult(await this.#groups.hold({ text, values, name }));
    } catch (error) {
      throw this.#explain(error);
    }
  }

  /** Sends what is held without waiting for a statement that follows. */
  sendHeld(): void {
    this.#groups.sendHeld();
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

  async #execute(text: string): Promise<GroupResult> {
    try {
      return await this.#send(text, []);
    } catch (error) {
      throw this.#explain(error);
    }
  }

  #send(text: string, values: readonly unknown[]): Promise<GroupResult> {
    const { name, isSentWithCommit = false } = findStatement(text) ?? {};
    return this.#groups.send({ text, values, name }, isSentWithCommit);
  }

  #explain(error: unknown): unknown {
    // Further queries would wait behind the one that timed out, or run the same stale statement.
    if (isTimeout(error) || isStaleStatement(error)) void this.#client.end();
    // Its own stack ends where the response was read.
    if (error instanceof Error) Error.captureStackTrace(error);
    return toDomainError(error);
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

  #run(statements: readonly Sent[], group: Group): void {
    const last = statements.at(-1);
    if (last === undefined || last.config.name !== undefined) return this.#runNamed(statements, group);
    if (statements.length === 1) return this.#runBuilt(last, group);
    // One that is built for its run is sent by itself, once those ahead of it have begun the transaction.
    this.#runNamed(statements.slice(0, -1), { ...group, hasCommit: false }, (error) => {
      if (error !== undefined) last.done(error);
      else this.#runBuilt(last, { ...group, hasBegin: false });
    });
  }

  #runBuilt({ config, done }: Sent, group: Group): void {
    const { text, values = [] } = config;
    if (group.hasBegin || group.hasCommit) this.#client.query(new this.#grouped(config, group, done));
    else this.#client.query(text, [...values]).then((result) => done(undefined, result), done);
  }

  #runNamed(statements: readonly Sent[], group: Group, onEnd?: (error: unknown) => void): void {
    const run = { ...group, statements: statements.map(({ config }) => this.#toNamed(config)) };
    const query = new StatementQuery(this.#session, run, (error, results) => {
      for (let at = 0; at < statements.length; at += 1) statements[at]?.done(error, results[at]);
      onEnd?.(error);
    });
    this.#client.query(query);
  }

  /** `defineStatement` lets no other values in. */
  #toNamed({ name = '', text, values = [] }: StatementConfig): NamedStatement {
    const own = this.#hasNamedStatements ? name : '';
    return { name: own, text, values: values as readonly StatementValue[] };
  }
}

function toQueryResult<R>({ command, rowCount, rows }: GroupResult): QueryResult<R> {
  if (!CHANGING.has(command)) return { rows: rows as R[] };
  return { rows: rows as R[], numAffectedRows: BigInt(rowCount ?? 0) };
}
