// The door to pg: one pool of connections, and transactions on it. It must not know what is stored.
import { Client, Pool, type PoolClient, type PoolConfig } from 'pg';
import { codeOf, isTimeout, toDomainError } from './database-error.ts';
import { Kysely, type KyselyTransaction, PostgresDialect, type PostgresPool } from './sql.ts';
import type { Tables } from './tables.ts';

export { isDuplicate, isOrphan } from './database-error.ts';

/** A host or, as `host`, a directory of unix sockets; `options` is what is sent on connecting. */
export type Connection = PoolConfig;
export type { Client };

export type Database = Kysely<Tables>;
export type Transaction = KyselyTransaction<Tables>;

export type Store = {
  /** What it does ends with a DomainError `unavailable` when the database cannot be reached, or gives up on it. */
  readonly db: Database;
  /** Runs `work` in one transaction; again, from its beginning, when the database gave way to another one. */
  write<T>(work: (trx: Transaction) => Promise<T>): Promise<T>;
  /** How the connections of its pool stand, and how many wait for one. */
  connections(): { readonly size: number; readonly idle: number; readonly waiting: number };
  /** Waits for what is under way. */
  close(): Promise<void>;
};

export type DatabaseOptions = {
  readonly connection: Connection;
  readonly maxConnections: number;
  /** An idle connection broke. The pool replaces it. */
  onError(error: Error): void;
};

/** How often work is tried that the database undid in favour of another transaction. */
const MAX_TRIES = 5;
/** serialization_failure, deadlock_detected */
const GAVE_WAY: ReadonlySet<unknown> = new Set(['40001', '40P01']);

/** A client that waits this long has mostly gone. */
const CONNECT_TIMEOUT_MS = 10_000;

// What no request needs: a statement that runs longer was forgotten, and a transaction that idles holds the locks of one
// whose process hangs. The chain of an organization waits behind such a lock.
const BOUNDS: PoolConfig = {
  statement_timeout: 30_000,
  lock_timeout: 10_000,
  idle_in_transaction_session_timeout: 30_000,
  // A server that hangs, or a network that lost it, keeps none of its own bounds: later than they, nobody waits for it.
  query_timeout: 35_000,
};

/** Opens no connection until the first query. */
export function openDatabase(options: DatabaseOptions): Store {
  const pool = openPool(options);
  const db: Database = new Kysely({ dialect: new PostgresDialect({ pool: guardPool(pool) }) });
  return {
    db,
    connections: () => ({ size: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount }),
    async write(work) {
      for (let tries = 1; ; tries += 1) {
        try {
          return await db.transaction().execute(work);
        } catch (error) {
          if (tries >= MAX_TRIES || !GAVE_WAY.has(codeOf(error))) throw error;
        }
      }
    },
    close: () => db.destroy(),
  };
}

/** The pool itself, for those who bring SQL of their own. */
export function openPool({ connection, maxConnections, onError }: DatabaseOptions): Pool {
  const pool = new Pool({
    application_name: 'sallyport',
    ...BOUNDS,
    ...withSearchPath(connection),
    max: maxConnections,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: 30_000,
    // After a failover, connections to what is now a replica are not kept for ever.
    maxLifetimeSeconds: 3600,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  });
  pool.on('error', onError);
  // The pool listens to idle ones alone: one that breaks between two statements of a transaction would end the process.
  // Its next statement fails.
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}

/** One connection without those bounds, for as long as `work` takes. */
export async function connectOnce<T>(
  connection: Connection,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = new Client({ connectionTimeoutMillis: CONNECT_TIMEOUT_MS, ...withSearchPath(connection) });
  // Told to whoever waits for a query too.
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

// Never empty: an empty one makes pg read PGOPTIONS.
function withSearchPath(connection: Connection): Connection {
  return { ...connection, options: `${connection.options ?? ''} -c search_path=public`.trim() };
}

/** The pool as kysely uses it, with the database's faults as those who ask are told them. */
function guardPool(pool: Pool): PostgresPool {
  const guarded = new WeakMap<PoolClient, GuardedClient>();
  return {
    options: pool.options,
    end: () => pool.end(),
    async connect() {
      const client = await pool.connect().catch(rethrow);
      const known = guarded.get(client) ?? guardClient(client);
      guarded.set(client, known);
      return known;
    },
  };
}

type GuardedClient = Awaited<ReturnType<PostgresPool['connect']>>;

function guardClient(client: PoolClient): GuardedClient {
  const query = (text: string, values: unknown[]): Promise<unknown> =>
    client.query(text, values).catch((error: unknown) => {
      // Whatever is asked next would wait behind it: the connection ends here.
      if (isTimeout(error)) void client.end();
      return rethrow(error);
    });
  return {
    // Its other form is for cursors, which would need another package.
    query: query as GuardedClient['query'],
    release: (isBroken) => client.release(isBroken),
  };
}

function rethrow(error: unknown): never {
  throw toDomainError(error);
}
