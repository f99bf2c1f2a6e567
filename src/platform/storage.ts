// Where the platform keeps its state, open and with the schema of this version: a server of one's own by DATABASE_URL, or
// one in the data directory that lives as long as we do.
import { join } from 'node:path';
import { InputError } from '../base/input-error.ts';
import { describeBug, type Log } from '../base/log.ts';
import type { PlatformConfig } from './config.ts';
import { type Connections, parseConnections } from './store/connection.ts';
import { type Store, openDatabase } from './store/database.ts';
import { type Jobs, openJobs } from './store/jobs.ts';
import { migrate } from './store/migrate.ts';
import { openPostgres } from './store/embedded/postgres-server.ts';

export type Storage = {
  readonly store: Store;
  /** `embedded`, or the name of the variable. */
  readonly kind: 'embedded' | 'DATABASE_URL';
  /** Resolves when a server of our own is gone, asked for or not. */
  readonly ended: Promise<void>;
  /** Opened when it is asked for: not every program has jobs. */
  openJobs(): Promise<Jobs>;
  close(): Promise<void>;
};

export type Place = Connections & {
  readonly kind: Storage['kind'];
  readonly ended: Promise<void>;
  close(): Promise<void>;
};

/** Throws an Error that says what to mend when it cannot. */
export async function openStorage(
  config: Pick<PlatformConfig, 'database' | 'dataDirectory'>,
  log: Log,
): Promise<Storage> {
  const place = await openPlace(config, log);
  try {
    await migrate(place.ownerConnection, { runtimeUser: place.connection.user });
  } catch (error) {
    await place.close();
    throw error;
  }
  let isClosing = false;
  const options = {
    connection: place.connection,
    onError(error: Error) {
      // A pool is closed a moment before its connections are, which a server that ends may notice.
      if (!isClosing) log.warn(describeBug(error), 'a database connection broke');
    },
  };
  const { maxConnections } = config.database;
  const store = openDatabase({ ...options, maxConnections });
  return {
    store,
    kind: place.kind,
    ended: place.ended,
    openJobs: () => openJobs({ ...options, maxConnections: JOB_CONNECTIONS, log }),
    async close() {
      isClosing = true;
      await store.close();
      await place.close();
    },
  };
}

/** Beside the pool of requests, so that neither waits for the other. */
const JOB_CONNECTIONS = 4;

/** The database as it stands: nothing of its schema is brought up to date. */
export async function openPlace(
  { database, dataDirectory }: Pick<PlatformConfig, 'database' | 'dataDirectory'>,
  log: Pick<Log, 'info' | 'warn'>,
): Promise<Place> {
  const { url, ownerUrl, maxConnections } = database;
  if (url === undefined) {
    const space = maxConnections + JOB_CONNECTIONS + SPARE_CONNECTIONS;
    // A directory of its own: the server may have another user's id, who must not reach what signs the audit log.
    const server = await openPostgres({
      directory: join(dataDirectory, 'database'),
      log,
      maxConnections: space,
    });
    return { ...server, kind: 'embedded' };
  }
  const parsed = parseConnections({
    url: { name: 'DATABASE_URL', value: url },
    ownerUrl:
      ownerUrl === undefined ? undefined : { name: 'SALLYPORT_PLATFORM_DATABASE_OWNER_URL', value: ownerUrl },
  });
  if (!parsed.ok)
    throw new InputError(parsed.issues.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; '));
  return { ...parsed.value, kind: 'DATABASE_URL', ended: new Promise(() => {}), close: async () => {} };
}

/** For migrations, and for an administrator who looks. */
const SPARE_CONNECTIONS = 8;
