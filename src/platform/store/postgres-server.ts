// PostgreSQL as part of this installation: a server of our own on a unix socket in the data directory, which lives as
// long as we do. It must not know what is stored.
import type { PoolConfig } from 'pg';
import type { Log } from '../../base/log.ts';
import { connectOnce, isNotReady } from './database.ts';
import {
  type DataDirectory,
  makeCluster,
  openDirectory,
  OWNER,
  type Passwords,
  readPasswords,
  RUNTIME,
} from './postgres-directory.ts';
import { type PostgresProcess, startProcess } from './postgres-process.ts';
import { openPrograms, type PostgresPrograms } from './postgres-programs.ts';

export type PostgresServer = {
  /** As the role that may do what the platform does at run time. */
  readonly connection: PoolConfig;
  /** As the owner of the tables, for migrations. */
  readonly ownerConnection: PoolConfig;
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

export async function openPostgres(options: PostgresOptions): Promise<PostgresServer> {
  const isDurable = options.isDurable ?? true;
  const directory = await openDirectory(options.directory);
  const programs = options.programs ?? (await openPrograms(directory.path, directory.account));
  const passwords = await readPasswords(directory);
  await makeCluster(directory, programs, { password: passwords.owner, isDurable });
  const server = startProcess({
    programs,
    account: directory.account,
    args: serverArguments(directory, { isDurable, maxConnections: options.maxConnections ?? 100 }),
    onLine: (line) => options.log.info({ line }, 'database server'),
  });
  try {
    await prepareDatabase(directory, server, passwords);
  } catch (error) {
    await server.stop();
    throw error;
  }
  return {
    connection: connectionTo(directory, RUNTIME, passwords.runtime),
    ownerConnection: connectionTo(directory, OWNER, passwords.owner),
    ended: server.ended,
    close: () => server.stop(),
  };
}

function connectionTo(
  { path }: DataDirectory,
  user: string,
  password: string,
  database = DATABASE,
): PoolConfig {
  return { host: path, port: 5432, user, password, database };
}

function serverArguments(
  { path, cluster }: DataDirectory,
  { isDurable, maxConnections }: { readonly isDurable: boolean; readonly maxConnections: number },
): readonly string[] {
  const settings: Readonly<Record<string, string>> = {
    listen_addresses: '',
    unix_socket_directories: path,
    unix_socket_permissions: '0700',
    max_connections: String(maxConnections),
    shared_buffers: '64MB',
    // What a statement said or wrote is not for the log.
    log_min_messages: 'log',
    log_min_error_statement: 'panic',
    log_error_verbosity: 'terse',
    log_checkpoints: 'off',
    log_destination: 'stderr',
    logging_collector: 'off',
    ...(isDurable ? {} : { fsync: 'off', full_page_writes: 'off', synchronous_commit: 'off' }),
  };
  return ['-D', cluster, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])];
}

/** How long a server may take that has to repeat what a crash left unwritten. */
const START_TIMEOUT_MS = 60_000;
const RETRY_MS = 10;

async function prepareDatabase(
  directory: DataDirectory,
  server: PostgresProcess,
  passwords: Passwords,
): Promise<void> {
  const login = connectionTo(directory, OWNER, passwords.owner, 'postgres');
  const deadlineMs = performance.now() + START_TIMEOUT_MS;
  for (;;) {
    try {
      return await connectOnce(login, async (client) => {
        const { rowCount } = await client.query('select from pg_database where datname = $1', [DATABASE]);
        if (rowCount === 0) await client.query(`create database ${DATABASE}`);
        const role = await client.query('select from pg_roles where rolname = $1', [RUNTIME]);
        if (role.rowCount === 0)
          await client.query(`create role ${RUNTIME} login password '${passwords.runtime}'`);
      });
    } catch (error) {
      if (!isNotReady(error) || !server.isRunning || performance.now() > deadlineMs)
        throw new Error(`The database in ${directory.path} does not start`, { cause: error });
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}
