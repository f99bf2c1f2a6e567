// The only file that uses pg: a pool of connections, and transactions on it.
import { Client, Pool, type PoolClient, type PoolConfig, Query } from 'pg';
import { isStaleStatement, isTimeout, isUnreachable, toDomainError } from './database-error.ts';
import {
  CompiledQuery,
  type ConnectionProvider,
  Kysely,
  type KyselyTransaction,
  PostgresDialect,
  type PostgresPool,
} from './sql.ts';
import { findStatement } from './statement.ts';
import {
  createGroupedQuery,
  type Group,
  type GroupResult,
  groupStatements,
  type QueryClass,
  type StatementConfig,
} from './statement-group.ts';
import type { Tables } from './tables.ts';
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
  write<T>(work: (trx: Transaction) => Promise<T>): Promise<T>;
  /** The same connections, each of them taken, used and given back within `gate`. It must not be closed. */
  within(gate: Gate): Store;
  /** The largest number of connections. */
  readonly size: number;
  /** The connections of the pool, and the number of callers that wait for one. */
  connections(): { readonly size: number; readonly idle: number; readonly waiting: number };
  /** Waits for running queries. */
  close(): Promise<void>;
};

export type DatabaseOptions = {
  readonly connection: Connection;
  readonly maxConnections: number;
  /** Those of `standardLimits` when absent. */
  readonly limits?: PoolLimits;
  /** False for a pooler that gives each transaction another connection; true when absent. */
  readonly hasNamedStatements?: boolean;
  /** An idle connection broke. The pool replaces it. */
  onError(error: Error): void;
  /** The server could not be reached. */
  onUnreachable?(error: unknown): void;
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
  const dialect = new PostgresDialect({ pool: guardPool(pool, options) });
  const db: Database = new Kysely({ dialect });
  // It begins and ends transactions on connections that it is given.
  const driver = dialect.createDriver();
  const createStore = (scope: Database): Store => ({
    db: scope,
    write: (work) => retryRolledBack(() => scope.transaction().execute(work)),
    within(gate) {
      const provider: ConnectionProvider = {
        provideConnection: (consumer) => gate(() => db.getExecutor().provideConnection(consumer)),
      };
      const executor = db.getExecutor().withConnectionProvider(provider);
      return createStore(new Kysely({ config: { dialect }, dialect, driver, executor }));
    },
    size: options.maxConnections,
    connections: () => ({ size: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount }),
    close: () => db.destroy(),
  });
  return createStore(db);
}

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
export async function runOnClient<T>(trx: Transaction, work: (client: PoolClient) => Promise<T>): Promise<T> {
  // The BEGIN is sent with the first statement.
  await trx.executeQuery(CompiledQuery.raw('select 1'));
  const { rows } = await trx.executeQuery<T>(CompiledQuery.raw('', [new ClientWork(work)]));
  return rows[0] as T;
}

/** Takes the place of a statement on its way through kysely. */
class ClientWork {
  readonly #work: (client: PoolClient) => Promise<unknown>;

  constructor(work: (client: PoolClient) => Promise<unknown>) {
    this.#work = work;
  }

  async run(client: PoolClient): Promise<GroupResult> {
    return { command: 'COPY', rows: [await this.#work(client)] };
  }
}

type Guarding = Pick<DatabaseOptions, 'hasNamedStatements' | 'onUnreachable'>;

/** The pool as kysely uses it, with errors that the domain understands. */
function guardPool(pool: Pool, options: Guarding): PostgresPool {
  const guarded = new WeakMap<PoolClient, GuardedClient>();
  return {
    options: pool.options,
    end: () => pool.end(),
    async connect() {
      const client = await pool.connect().catch((error: unknown) => {
        if (isUnreachable(error)) options.onUnreachable?.(error);
        return rethrow(error);
      });
      const known = guarded.get(client) ?? guardClient(client, options);
      guarded.set(client, known);
      return known;
    },
  };
}

type GuardedClient = Awaited<ReturnType<PostgresPool['connect']>>;

function guardClient(client: PoolClient, { hasNamedStatements = true }: Guarding): GuardedClient {
  const run = groupStatements((config, group) =>
    send(client, config, group).catch((error: unknown) => {
      // Further queries would wait behind the one that timed out, or run the same stale statement.
      if (isTimeout(error) || isStaleStatement(error)) void client.end();
      return rethrow(error);
    }),
  );
  const query = (text: string, values: unknown[]): Promise<GroupResult> => {
    const [work] = values;
    if (work instanceof ClientWork) return work.run(client).catch(rethrow);
    const { name, isSentWithCommit = false } = findStatement(text) ?? {};
    const config = { text, values, ...(name !== undefined && hasNamedStatements ? { name } : {}) };
    return run({ config, isSentWithCommit });
  };
  return {
    // kysely's other overload is for cursors, which would need another package.
    query: query as GuardedClient['query'],
    release: (isBroken) => client.release(isBroken),
  };
}

const GroupedQuery = createGroupedQuery(Query as unknown as QueryClass);

async function send(client: PoolClient, config: StatementConfig, group: Group): Promise<GroupResult> {
  if (!group.hasBegin && !group.hasCommit) return client.query(config);
  const { promise, resolve, reject } = Promise.withResolvers<readonly GroupResult[]>();
  const done = (error: Error | undefined, results: unknown): void =>
    error ? reject(error) : resolve(results as readonly GroupResult[]);
  client.query(new GroupedQuery(config, group, done) as unknown as Query);
  const results = await promise;
  return results.at(-1) ?? rethrow(new Error('a group of statements has no result'));
}

function rethrow(error: unknown): never {
  throw toDomainError(error);
}
