// PostgreSQL as part of this installation: a server on a unix socket in the data directory that lives as long as this
// process.
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { Log } from '../../../base/log.ts';
import type { Connections } from '../connection.ts';
import { connectOnce, type Connection } from '../database.ts';
import { isNotReady } from '../database-error.ts';
import { OWNER, RUNTIME } from '../roles.ts';
import { createCluster, readClusterVersion, refuseOtherVersion } from './cluster.ts';
import {
  type DataDirectory,
  explainError,
  openDirectory,
  type Passwords,
  readPasswords,
} from './data-directory.ts';
import { type DirectoryLock, lockDirectory } from './directory-lock.ts';
import { stopLeftoverServer } from './leftover-server.ts';
import { openPrograms, type PostgresPrograms } from './programs.ts';
import { type PostgresProcess, startProcess } from './server-process.ts';

export type PostgresServer = Connections & {
  /** Resolves when the server has ended, by `close` or by itself. */
  readonly ended: Promise<void>;
  close(): Promise<void>;
};

export type PostgresOptions = {
  readonly directory: string;
  readonly log: Pick<Log, 'info' | 'warn'>;
  /** In place of the programs of the package. */
  readonly programs?: PostgresPrograms;
  /** False for tests: no write waits for the disk. */
  readonly isDurable?: boolean;
  readonly maxConnections?: number;
};

const DATABASE = 'sallyport';

/** Starts the server of the directory, which is created when it does not exist. Throws when another process uses it. */
export async function openPostgres(options: PostgresOptions): Promise<PostgresServer> {
  const directory = await openDirectory(options.directory);
  let lock: DirectoryLock | undefined;
  try {
    lock = await lockDirectory(directory.path);
    const { server, passwords } = await startCluster(directory, options);
    return {
      connection: connectionTo(directory.cluster, RUNTIME, passwords.runtime),
      ownerConnection: connectionTo(directory.cluster, OWNER, passwords.owner),
      ended: server.ended,
      async close() {
        await server.stop();
        lock?.release();
      },
    };
  } catch (error) {
    lock?.release();
    throw explainError(directory.path, error);
  }
}

/**
 * A connection to the server that another process runs on the directory; `absent` when there is no database, `stopped`
 * when no server runs on it.
 */
export async function findRunningServer(path: string): Promise<Connection | 'absent' | 'stopped'> {
  const found = await findRunningConnections(path);
  return typeof found === 'string' ? found : found.connection;
}

/** The same, with that of the owner. */
export async function findRunningConnections(path: string): Promise<Connections | 'absent' | 'stopped'> {
  const cluster = join(path, 'cluster');
  if ((await readClusterVersion(cluster)) === undefined) return 'absent';
  const { runtime, owner } = await readPasswords(path, true);
  const connection = connectionTo(cluster, RUNTIME, runtime);
  try {
    await connectOnce(connection, (client) => client.query('select'));
    return { connection, ownerConnection: connectionTo(cluster, OWNER, owner) };
  } catch (error) {
    if (isNotReady(error)) return 'stopped';
    throw error;
  }
}

async function startCluster(directory: DataDirectory, options: PostgresOptions) {
  const { path, cluster, account } = directory;
  const isDurable = options.isDurable ?? true;
  const programs = options.programs ?? (await openPrograms(path, account));
  const version = await readClusterVersion(cluster);
  const passwords = await readPasswords(path, version !== undefined);
  const login = connectionTo(cluster, OWNER, passwords.owner, 'postgres');
  if (version === undefined)
    await createCluster(directory, programs, { user: OWNER, password: passwords.owner, isDurable });
  else {
    refuseOtherVersion(directory, version, programs);
    await stopLeftoverServer(directory, login);
  }
  const server = await startServer(path, {
    programs,
    account,
    args: serverArguments(cluster, isDurable, options.maxConnections ?? 100),
    onLine: (line) => options.log.info({ line }, 'database server'),
  });
  try {
    await prepareDatabase(login, passwords);
  } catch (error) {
    await server.stop();
    throw error;
  }
  return { server, passwords };
}

/** A server that recovers from a crash may need this long to start. */
const START_TIMEOUT_MS = 120_000;
/** Children of a killed server may need this long to notice that it is gone. */
const ORPHANS_TIMEOUT_MS = 15_000;
const RETRY_MS = 200;

async function startServer(path: string, options: Parameters<typeof startProcess>[0]) {
  const startedMs = performance.now();
  for (;;) {
    const server = startProcess(options);
    try {
      await readyInTime(server);
      return server;
    } catch (error) {
      await server.stop();
      const reason = error instanceof Error ? error.message : '';
      const hasOrphans = reason.includes('shared memory');
      if (!hasOrphans || performance.now() - startedMs >= ORPHANS_TIMEOUT_MS)
        throw new Error(`The database in ${path} does not start: ${reason}`, { cause: error });
    }
    await setTimeout(RETRY_MS);
  }
}

async function readyInTime({ ready }: PostgresProcess): Promise<void> {
  const limit = new AbortController();
  const timeout = setTimeout(START_TIMEOUT_MS, undefined, { signal: limit.signal }).then(() => {
    throw new Error(`it was not ready after ${START_TIMEOUT_MS / 1000} seconds`);
  });
  try {
    await Promise.race([ready, timeout]);
  } finally {
    timeout.catch(() => undefined);
    limit.abort();
  }
}

function connectionTo(cluster: string, user: string, password: string, database: string = DATABASE) {
  return { host: cluster, port: 5432, user, password, database };
}

/** Nothing outlives the server, so that a short log is enough. */
const FORGETFUL: Readonly<Record<string, string>> = {
  ...{ fsync: 'off', full_page_writes: 'off', synchronous_commit: 'off' },
  ...{ max_wal_size: '64MB', min_wal_size: '32MB' },
};

/**
 * A query of traces of a year locks each of its days, with the indexes: about 2,000 locks, and many such queries run at once. A server
 * without a free lock refuses the statements of everybody.
 */
const LOCKS = 64_000;

function serverArguments(cluster: string, isDurable: boolean, maxConnections: number): readonly string[] {
  const settings: Readonly<Record<string, string>> = {
    listen_addresses: '',
    unix_socket_directories: cluster,
    unix_socket_permissions: '0700',
    max_connections: String(maxConnections),
    max_locks_per_transaction: String(Math.max(64, Math.ceil(LOCKS / maxConnections))),
    shared_buffers: '64MB',
    // Statements and their values stay out of the log.
    log_min_messages: 'log',
    log_min_error_statement: 'panic',
    log_error_verbosity: 'terse',
    log_checkpoints: 'off',
    log_line_prefix: '',
    log_destination: 'stderr',
    logging_collector: 'off',
    ...(isDurable ? {} : FORGETFUL),
  };
  return ['-D', cluster, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])];
}

/** Does nothing from the second start on. */
async function prepareDatabase(login: Connection, passwords: Passwords): Promise<void> {
  await connectOnce(login, async (client) => {
    const { rowCount } = await client.query('select from pg_database where datname = $1', [DATABASE]);
    if (rowCount === 0) await client.query(`create database ${DATABASE}`);
    const role = await client.query('select from pg_roles where rolname = $1', [RUNTIME]);
    const password = client.escapeLiteral(passwords.runtime);
    if (role.rowCount === 0) await client.query(`create role ${RUNTIME} login password ${password}`);
  });
}
