// The database of the platform, open and with the schema of this version: a server named by DATABASE_URL, or an embedded
// server in the data directory that lives as long as this process.
import { join } from 'node:path';
import { InputError } from '../base/input-error.ts';
import { describeBug, type Log } from '../base/log.ts';
import type { PlatformConfig } from './config.ts';
import { readAllMigrations } from './migrations.ts';
import { createAvailability } from './store/availability.ts';
import { parseConnections } from './store/connection.ts';
import { namingVariable } from './store/connection-failure.ts';
import { codeOf } from './store/database-error.ts';
import { type PostgresServer, openPostgres } from './store/embedded/postgres-server.ts';
import type { Job } from './store/job.ts';
import { type Jobs, openJobs } from './store/jobs.ts';
import { isCurrent, migrate } from './store/migrate.ts';
import type { Migration } from './store/migration.ts';
import { divideConnections } from './store/pool-sizes.ts';
import { type Pools, openPools, poolLimits } from './store/pools.ts';
import { type Notifications, openNotifications } from './store/postgres/notifications.ts';

export type Storage = {
  readonly pools: Pools;
  readonly kind: 'embedded' | 'DATABASE_URL';
  /** Resolves when the embedded server has ended, by `close` or by itself. */
  readonly ended: Promise<void>;
  /** Opened on request: not every program has jobs. `works`: this process runs them, and does not only send them. */
  openJobs(jobs: readonly Job[], works: boolean): Promise<Jobs>;
  /** Connects with the first subscription. To be closed before this. */
  openNotifications(): Notifications;
  close(): Promise<void>;
};

type DatabaseServer = PostgresServer & Pick<Storage, 'kind'>;

/** Throws an Error that says what the operator must change. */
export async function openStorage(
  config: Pick<PlatformConfig, 'database' | 'dataDirectory'>,
  log: Log,
): Promise<Storage> {
  const { server } = await openMigrated(config, log, 'when needed');
  const { connection, kind, ended } = server;
  let isClosing = false;
  const availability = createAvailability(log);
  const options = {
    connection,
    ...availability,
    onError(error: unknown) {
      // While we close, the server may end before the last connections of the pool do.
      if (!isClosing) availability.onError(error);
    },
    onUnreachable(error: unknown) {
      if (!isClosing) availability.onUnreachable(error);
    },
  };
  const { maxConnections, hasNamedStatements } = config.database;
  const pools = openPools({ ...options, maxConnections, hasNamedStatements });
  return {
    pools,
    kind,
    ended,
    openJobs: (jobs, works) =>
      openJobs({
        ...options,
        maxConnections: divideConnections(maxConnections).jobs,
        limits: poolLimits.jobs,
        log,
        jobs,
        ...(works ? { store: pools.long } : {}),
      }),
    openNotifications: () =>
      openNotifications({
        connection,
        // One connection: whether the database can be reached is said by the pools.
        onLost: options.onError,
        onError: (error) => log.error(describeBug(error), 'a notification was not handled'),
      }),
    async close() {
      isClosing = true;
      await pools.close();
      await server.close();
    },
  };
}

/** For `sallyport platform migrate`. Returns the number of migrations, and how many were applied now. */
export async function migrateStorage(
  config: Pick<PlatformConfig, 'database' | 'dataDirectory'>,
  log: Log,
): Promise<{ readonly all: number; readonly applied: number }> {
  const { server, migrations, applied } = await openMigrated(config, log, 'always');
  await server.close();
  return { all: migrations.length, applied };
}

async function openMigrated(
  config: Pick<PlatformConfig, 'database' | 'dataDirectory'>,
  log: Log,
  migrated: 'always' | 'when needed',
) {
  const server = await openDatabaseServer(config, log);
  try {
    const migrations = readAllMigrations();
    const isDone =
      migrated === 'when needed' &&
      (await naming(server, 'DATABASE_URL', isCurrent(server.connection, migrations)));
    const owner = config.database.ownerUrl === undefined ? 'DATABASE_URL' : OWNER_URL;
    const { hasRuntimeRole } = config.database;
    const applied = isDone
      ? 0
      : await naming(server, owner, migrateServer(server, migrations, hasRuntimeRole));
    return { server, migrations, applied };
  } catch (error) {
    await server.close();
    throw error;
  }
}

const OWNER_URL = 'SALLYPORT_PLATFORM_DATABASE_OWNER_URL';

/** An embedded server has no variable. */
function naming<T>({ kind, connection }: DatabaseServer, variable: string, work: Promise<T>): Promise<T> {
  return kind === 'embedded' ? work : namingVariable(connection, variable, work);
}

const INSUFFICIENT_PRIVILEGE = '42501';

async function migrateServer(
  { connection, ownerConnection, kind }: DatabaseServer,
  migrations: readonly Migration[],
  hasRuntimeRole: boolean,
): Promise<number> {
  try {
    const runtimeUser = connection.user;
    return await migrate(ownerConnection, migrations, hasRuntimeRole ? { runtimeUser } : { hasRuntimeRole });
  } catch (cause) {
    const isRefused = [cause, (cause as Error).cause].some((one) => codeOf(one) === INSUFFICIENT_PRIVILEGE);
    if (kind === 'embedded' || !isRefused) throw cause;
    throw new InputError(
      `The schema of the database is not that of this version, and ${ownerConnection.user} may not change it: ${reasonOf(cause)}. Run sallyport platform migrate with ${OWNER_URL} set to the URL of the owner of the tables`,
      { cause },
    );
  }
}

/** What the owner lacks, which may be the right to create a role; below a migration that failed, the text of PostgreSQL. */
function reasonOf(cause: unknown): string {
  const { message, cause: below } = cause as Error;
  return codeOf(below) === INSUFFICIENT_PRIVILEGE && message.startsWith('Migration ')
    ? `${message}: ${(below as Error).message}`
    : message;
}

/** For migrations, and for an administrator. */
const SPARE_CONNECTIONS = 8;

/** The server with whatever schema it has. */
export async function openDatabaseServer(
  { database, dataDirectory }: Pick<PlatformConfig, 'database' | 'dataDirectory'>,
  log: Pick<Log, 'info' | 'warn'>,
): Promise<DatabaseServer> {
  const { url, ownerUrl, serverConnections, hasRuntimeRole } = database;
  if (url === undefined) {
    // A subdirectory: the server may run as another user, who must not reach the key that signs the audit log.
    const server = await openPostgres({
      directory: join(dataDirectory, 'database'),
      log,
      maxConnections: serverConnections + SPARE_CONNECTIONS,
    });
    return { ...server, kind: 'embedded' };
  }
  const parsed = parseConnections(
    { name: 'DATABASE_URL', value: url },
    ownerUrl === undefined ? undefined : { name: 'SALLYPORT_PLATFORM_DATABASE_OWNER_URL', value: ownerUrl },
  );
  if (!parsed.ok)
    throw new InputError(parsed.issues.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; '));
  const { ownerConnection } = parsed.value;
  const connections = hasRuntimeRole ? parsed.value : { connection: ownerConnection, ownerConnection };
  return { ...connections, kind: 'DATABASE_URL', ended: new Promise(() => {}), close: async () => {} };
}
