// PostgreSQL as part of this installation: a server of our own on a unix socket in the data directory, which lives as
// long as we do. It must not know what is stored.
import { setTimeout } from 'node:timers/promises';
import type { Log } from '../../../base/log.ts';
import { connectOnce, type Connection } from '../database.ts';
import { type DirectoryLock, lockDirectory } from './directory-lock.ts';
import { makeCluster, readClusterVersion, refuseOtherVersion } from './cluster.ts';
import {
  type DataDirectory,
  explainError,
  openDirectory,
  type Passwords,
  readPasswords,
} from './data-directory.ts';
import { endLeftover } from './leftover-server.ts';
import { type PostgresProcess, startProcess } from './server-process.ts';
import { openPrograms, type PostgresPrograms } from './programs.ts';
import { OWNER, RUNTIME } from '../roles.ts';

export type PostgresServer = {
  /** As the role that may do what the platform does at run time. */
  readonly connection: Connection;
  /** As the owner of the tables, for migrations. */
  readonly ownerConnection: Connection;
  /** Resolves when the server is gone, asked for or not. */
  readonly ended: Promise<void>;
  close(): Promise<void>;
};

export type PostgresOptions = {
  readonly directory: string;
  readonly log: Pick<Log, 'info' | 'warn'>;
  /** Other programs than those of the package. */
  readonly programs?: PostgresPrograms;
  /** False where nothing is worth keeping: no write waits for the disk. */
  readonly isDurable?: boolean;
  readonly maxConnections?: number;
};

const DATABASE = 'sallyport';

/** Starts the server that belongs to the directory, which is made where it is not there; one process at a time may. */
export async function openPostgres(options: PostgresOptions): Promise<PostgresServer> {
  const directory = await openDirectory(options.directory);
  let lock: DirectoryLock | undefined;
  try {
    lock = await lockDirectory(directory.path);
    const { server, passwords } = await startCluster(directory, options);
    return {
      connection: connectionTo(directory, RUNTIME, passwords.runtime),
      ownerConnection: connectionTo(directory, OWNER, passwords.owner),
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

type Started = { readonly server: PostgresProcess; readonly passwords: Passwords };

async function startCluster(directory: DataDirectory, options: PostgresOptions): Promise<Started> {
  const isDurable = options.isDurable ?? true;
  const programs = options.programs ?? (await openPrograms(directory.path, directory.account));
  const version = await readClusterVersion(directory);
  const passwords = await readPasswords(directory, version !== undefined);
  const login = connectionTo(directory, OWNER, passwords.owner, 'postgres');
  if (version === undefined)
    await makeCluster(directory, programs, { user: OWNER, password: passwords.owner, isDurable });
  else {
    refuseOtherVersion(directory, version, programs);
    await endLeftover(directory, login);
  }
  const server = await startServer(directory, {
    programs,
    account: directory.account,
    args: serverArguments(directory, { isDurable, maxConnections: options.maxConnections ?? 100 }),
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

/** How long a server may take that has to repeat what a crash left unwritten. */
const START_TIMEOUT_MS = 120_000;
/** How long children of a killed server may take to see that they are orphans. */
const ORPHANS_TIMEOUT_MS = 15_000;
const RETRY_MS = 200;

async function startServer(
  { path }: DataDirectory,
  options: Parameters<typeof startProcess>[0],
): Promise<PostgresProcess> {
  const startedMs = performance.now();
  for (;;) {
    const server = startProcess(options);
    try {
      await readyInTime(server);
      return server;
    } catch (error) {
      await server.stop();
      const reason = error instanceof Error ? error.message : '';
      const mayEnd = reason.includes('shared memory') && performance.now() - startedMs < ORPHANS_TIMEOUT_MS;
      if (!mayEnd) throw new Error(`The database in ${path} does not start: ${reason}`, { cause: error });
    }
    await setTimeout(RETRY_MS);
  }
}

async function readyInTime({ ready }: PostgresProcess): Promise<void> {
  const limit = new AbortController();
  const tooLong = setTimeout(START_TIMEOUT_MS, undefined, { signal: limit.signal }).then(() => {
    throw new Error(`it was not ready after ${START_TIMEOUT_MS / 1000} seconds`);
  });
  try {
    await Promise.race([ready, tooLong]);
  } finally {
    tooLong.catch(() => undefined);
    limit.abort();
  }
}

/** How the server of that directory is reached, by whoever has its password. */
export function connectionTo(
  { cluster }: Pick<DataDirectory, 'cluster'>,
  user: string,
  password: string,
  database: string = DATABASE,
): Connection {
  return { host: cluster, port: 5432, user, password, database };
}

function serverArguments(
  { cluster }: DataDirectory,
  { isDurable, maxConnections }: { readonly isDurable: boolean; readonly maxConnections: number },
): readonly string[] {
  const settings: Readonly<Record<string, string>> = {
    listen_addresses: '',
    unix_socket_directories: cluster,
    unix_socket_permissions: '0700',
    max_connections: String(maxConnections),
    shared_buffers: '64MB',
    // What a statement said or wrote is not for the log.
    log_min_messages: 'log',
    log_min_error_statement: 'panic',
    log_error_verbosity: 'terse',
    log_checkpoints: 'off',
    log_line_prefix: '',
    log_destination: 'stderr',
    logging_collector: 'off',
    ...(isDurable ? {} : { fsync: 'off', full_page_writes: 'off', synchronous_commit: 'off' }),
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
