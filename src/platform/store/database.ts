// The door to pg: one pool of connections, and transactions on it. It must not know what is stored.
import { Client, type ClientConfig, Pool, type PoolConfig } from 'pg';
import { Kysely, type KyselyTransaction, PostgresDialect } from './sql.ts';
import type { Tables } from './tables.ts';

export type Database = Kysely<Tables>;
export type Transaction = KyselyTransaction<Tables>;

export type Store = {
  readonly db: Database;
  /** Runs `work` in one transaction; again, from its beginning, when the database gave way to another one. */
  write<T>(work: (trx: Transaction) => Promise<T>): Promise<T>;
  close(): Promise<void>;
};

export type DatabaseOptions = {
  /** `postgresql://…`, or a directory of unix sockets as `host`. */
  readonly connection: PoolConfig;
  readonly maxConnections: number;
  /** An idle connection broke. The pool replaces it. */
  onFault(error: Error): void;
};

/** How often work is tried that the database undid in favour of another transaction. */
const MAX_TRIES = 5;
/** serialization_failure, deadlock_detected */
const GAVE_WAY: ReadonlySet<unknown> = new Set(['40001', '40P01']);

/** Opens no connection until the first query. */
export function openDatabase({ connection, maxConnections, onFault }: DatabaseOptions): Store {
  const pool = new Pool({ ...connection, max: maxConnections, connectionTimeoutMillis: 10_000 });
  pool.on('error', onFault);
  const db: Database = new Kysely({ dialect: new PostgresDialect({ pool }) });
  return {
    db,
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

/** Whether `error` is the database's word that a row like this is there already, by the name of the constraint. */
export function isDuplicate(error: unknown, constraint: string): boolean {
  return codeOf(error) === '23505' && (error as { readonly constraint?: unknown }).constraint === constraint;
}

/** One connection, for as long as `work` takes. */
export async function connectOnce<T>(
  connection: ClientConfig,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = new Client({ connectionTimeoutMillis: 10_000, ...connection });
  // Also told to whoever is waiting for a query.
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Whether nobody listens yet, or a server that is on its way up or down (cannot_connect_now). */
export function isNotReady(error: unknown): boolean {
  return NOT_READY.has(codeOf(error));
}

const NOT_READY: ReadonlySet<unknown> = new Set(['ENOENT', 'ECONNREFUSED', 'ECONNRESET', '57P03']);

function codeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
}
