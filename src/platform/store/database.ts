// The only file that uses pg: a pool of connections, and transactions on it.
import { Client, Pool, type PoolClient, type PoolConfig, Query } from 'pg';
import { asPooled, type DriverOptions, PoolDriver } from './pool/pooled-connection.ts';
import {
  type ConnectionProvider,
  Kysely,
  type KyselyProps,
  type KyselyTransaction,
  PostgresDialect,
} from './sql.ts';
import { createGroupedQuery, type QueryClass } from './pool/statement-group.ts';
import type { Tables } from './tables.ts';
import { PooledTransaction } from './pool/pooled-transaction.ts';
import { runTransaction } from './pool/transaction.ts';
import { retryRolledBack } from './transaction-retries.ts';

export { brokenReferenceOf, isDuplicate } from './database-error.ts';

/** `host` may be a directory of unix sockets; `options` is sent when the connection is opened. */
export type Connection = PoolConfig;
export type { Client };

export type Database = Kysely<Tables>;
export type Transaction = KyselyTransaction<Tables>;
/** The database for reading alone. */
export type Reader = Pick<Database, 'selectFrom'>;

/** Decides when `work` may run. */
export type Gate = <T>(work: () => Promise<T>) => Promise<T>;

export type Store = {
  /** Its queries reject with a DomainError `unavailable` when the database cannot be reached or exceeds a limit. */
  readonly db: Database;
  /** Runs `work` in one transaction, and runs it again after a deadlock or a serialization failure. */
  write<T>(work: (trx: PooledTransaction) => Promise<T>): Promise<T>;
  /** The same connections, each of them taken, used and given back within `gate`. It must not be closed. */
  within(gate: Gate): Store;
  /** The largest number of connections. */
  readonly size: number;
  /** The connections of the pool, and the number of callers that wait for one. */
  connections(): { readonly size: number; readonly idle: number; readonly waiting: number };
  /** Waits for running queries. */
  close(): Promise<void>;
};

export type DatabaseOptions = DriverOptions & {
  readonly connection: Connection;
  readonly maxConnections: number;
  /** Those of `standardLimits` when absent. */
  readonly limits?: PoolLimits;
  /** An idle connection broke. The pool replaces it. */
  onError(error: Error): void;
  /** A connection was opened. */
  onConnected?(): void;
};

/** How long a caller waits for one thing; then the query rejects with `unavailable`. */
export type PoolLimits = {
  /** For a connection, new or returned to the pool. */
  readonly acquireMs: number;
  readonly lockMs: number;
  readonly statementMs: number;
};

/** By then most clients have disconnected. */
const CONNECT_TIMEOUT_MS = 10_000;

export const standardLimits: PoolLimits = {
  acquireMs: CONNECT_TIMEOUT_MS,
  lockMs: 10_000,
  statementMs: 30_000,
};

/** An idle transaction holds the locks of a process that hangs: the audit chain of an organization waits behind it. */
const IDLE_TRANSACTION_MS = 30_000;
/** How much longer than the server a client waits, for a server that hangs enforces none of its limits. */
const SILENCE_MS = 5_000;

function toPoolConfig({ acquireMs, lockMs, statementMs }: PoolLimits): PoolConfig {
  return {
    connectionTimeoutMillis: acquireMs,
    lock_timeout: lockMs,
    statement_timeout: statementMs,
    idle_in_transaction_session_timeout: IDLE_TRANSACTION_MS,
    query_timeout: statementMs + SILENCE_MS,
  };
}

/** Opens no connection before the first query. */
export function openDatabase(options: DatabaseOptions): Store {
  const pool = openPool(options);
  const driver = new PoolDriver(pool, GroupedQuery, options);
  // It compiles. Its own driver is not used.
  const dialect = new PostgresDialect({ pool });
  const compiler = new Kysely<Tables>({ dialect }).getExecutor();
  const propsOf = (provider: ConnectionProvider) => ({
    ...{ config: { dialect }, dialect, driver },
    executor: compiler.withConnectionProvider(provider),
  });
  const shared: Shared = { pool, driver, propsOf, size: options.maxConnections };
  return new PoolStore(driver, shared);
}

type Shared = Pick<Store, 'size'> & {
  readonly pool: Pool;
  readonly driver: PoolDriver;
  propsOf(provider: ConnectionProvider): KyselyProps;
};

class PoolStore implements Store {
  readonly #provider: ConnectionProvider;
  readonly #shared: Shared;
  #db: Database | undefined;

  constructor(provider: ConnectionProvider, shared: Shared) {
    this.#provider = provider;
    this.#shared = shared;
  }

  /** Made with its first use: most requests only read, or only write. */
  get db(): Database {
    return (this.#db ??= new Kysely<Tables>(this.#shared.propsOf(this.#provider)));
  }

  readonly write = <T>(work: (trx: PooledTransaction) => Promise<T>): Promise<T> => {
    const { propsOf } = this.#shared;
    return retryRolledBack(() =>
      this.#provider.provideConnection((connection) =>
        runTransaction(asPooled(connection), (own) => work(new PooledTransaction(propsOf(own), own))),
      ),
    );
  };

  within(gate: Gate): Store {
    const { driver } = this.#shared;
    return new PoolStore(
      { provideConnection: (work) => gate(() => driver.provideConnection(work)) },
      this.#shared,
    );
  }

  get size(): number {
    return this.#shared.size;
  }

  connections(): ReturnType<Store['connections']> {
    const { pool } = this.#shared;
    return { size: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount };
  }

  close(): Promise<void> {
    return this.#shared.driver.destroy();
  }
}

const GroupedQuery = createGroupedQuery(Query as unknown as QueryClass);

/** The pool itself, for callers with SQL of their own. */
export function openPool(options: Omit<DatabaseOptions, 'hasNamedStatements'>): Pool {
  const { connection, maxConnections, limits = standardLimits, onError, onConnected } = options;
  const pool = new Pool({
    application_name: 'sallyport',
    ...toPoolConfig(limits),
    ...withSearchPath(connection),
    max: maxConnections,
    idleTimeoutMillis: 30_000,
    // After a failover, connections to the server that is now a replica must not live for ever.
    maxLifetimeSeconds: 3600,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  });
  pool.on('error', onError);
  // The pool handles errors of idle connections only: one that breaks between two statements of a transaction would end
  // the process. With this listener its next statement rejects instead.
  pool.on('connect', (client) => {
    client.on('error', () => undefined);
    onConnected?.();
  });
  return pool;
}

/** Opens one connection without those limits for the duration of `work`. */
export async function connectOnce<T>(
  connection: Connection,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = new Client({ connectionTimeoutMillis: CONNECT_TIMEOUT_MS, ...withSearchPath(connection) });
  // A running query rejects with the same error.
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** A connection for notifications. */
export type Listener = AsyncDisposable & {
  run(statement: string): Promise<void>;
  /** Resolves with the reason when the connection has ended. */
  readonly ended: Promise<Error>;
};

/** How long the server may take for a statement of a listener. */
const LISTENER_TIMEOUT_MS = 10_000;

export async function openListener(
  connection: Connection,
  onNotification: (channel: string, payload: string) => void,
): Promise<Listener> {
  const client = new Client({
    application_name: 'sallyport notifications',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: LISTENER_TIMEOUT_MS,
    keepAlive: true,
    ...withSearchPath(connection),
  });
  const ended = Promise.withResolvers<Error>();
  client.on('error', (error) => ended.resolve(error));
  client.on('end', () => ended.resolve(new Error('the connection for notifications has ended')));
  client.on('notification', ({ channel, payload = '' }) => onNotification(channel, payload));
  await client.connect();
  return {
    async run(statement) {
      await client.query(statement);
    },
    ended: ended.promise,
    // Not waited for: a server that hangs ends nothing.
    [Symbol.asyncDispose]: async () => void client.end().catch(() => undefined),
  };
}

// Never empty: with an empty string pg would read PGOPTIONS.
function withSearchPath(connection: Connection): Connection {
  return { ...connection, options: `${connection.options ?? ''} -c search_path=public`.trim() };
}

/** Runs what kysely cannot do, such as COPY, on the connection of the transaction. */
export function runOnClient<T>(trx: Transaction, work: (client: PoolClient) => Promise<T>): Promise<T> {
  return trx
    .getExecutor()
    .provideConnection((connection) =>
      asPooled(connection).runOnClient((client) => work(client as PoolClient)),
    );
}
