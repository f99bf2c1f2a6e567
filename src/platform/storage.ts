// The database of the platform, open and with the schema of this version: a server named by DATABASE_URL, or an embedded
// server in the data directory that lives as long as this process.
import { join } from 'node:path';
import { InputError } from '../base/input-error.ts';
import type { Log } from '../base/log.ts';
import type { PlatformConfig } from './config.ts';
import { createAvailability } from './store/availability.ts';
import { parseConnections } from './store/connection.ts';
import { type PostgresServer, openPostgres } from './store/embedded/postgres-server.ts';
import { type Jobs, openJobs } from './store/jobs.ts';
import { migrate } from './store/migrate.ts';
import { divideConnections } from './store/pool-sizes.ts';
import { type Pools, openPools, poolLimits } from './store/pools.ts';

export type Storage = {
  readonly pools: Pools;
  readonly kind: 'embedded' | 'DATABASE_URL';
  /** Resolves when the embedded server has ended, by `close` or by itself. */
  readonly ended: Promise<void>;
  /** Opened on request: not every program has jobs. */
  openJobs(): Promise<Jobs>;
  close(): Promise<void>;
};

type DatabaseServer = PostgresServer & Pick<Storage, 'kind'>;

/** Throws an Error that says what the operator must change. */
export async function openStorage(
  config: Pick<PlatformConfig, 'database' | 'dataDirectory'>,
  log: Log,
): Promise<Storage> {
  const server = await openDatabaseServer(config, log);
  const { connection, ownerConnection, kind, ended } = server;
  try {
    await migrate(ownerConnection, { runtimeUser: connection.user });
  } catch (error) {
    await server.close();
    throw error;
  }
  let isClosing = false;
  const availability = createAvailability(log);
  const options = {
    connection,
    ...availability,
    onError(error: Error) {
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
    openJobs: () =>
      openJobs({
        ...options,
        maxConnections: divideConnections(maxConnections).jobs,
        limits: poolLimits.jobs,
        log,
      }),
    async close() {
      isClosing = true;
      await pools.close();
      await server.close();
    },
  };
}

/** For migrations, and for an administrator. */
const SPARE_CONNECTIONS = 8;

/** The server with whatever schema it has. */
export async function openDatabaseServer(
  { database, dataDirectory }: Pick<PlatformConfig, 'database' | 'dataDirectory'>,
  log: Pick<Log, 'info' | 'warn'>,
): Promise<DatabaseServer> {
  const { url, ownerUrl, maxConnections } = database;
  if (url === undefined) {
    // A subdirectory: the server may run as another user, who must not reach the key that signs the audit log.
    const server = await openPostgres({
      directory: join(dataDirectory, 'database'),
      log,
      maxConnections: maxConnections + SPARE_CONNECTIONS,
    });
    return { ...server, kind: 'embedded' };
  }
  const parsed = parseConnections(
    { name: 'DATABASE_URL', value: url },
    ownerUrl === undefined ? undefined : { name: 'SALLYPORT_PLATFORM_DATABASE_OWNER_URL', value: ownerUrl },
  );
  if (!parsed.ok)
    throw new InputError(parsed.issues.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; '));
  return { ...parsed.value, kind: 'DATABASE_URL', ended: new Promise(() => {}), close: async () => {} };
}
