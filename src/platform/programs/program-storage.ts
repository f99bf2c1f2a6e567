// The database of the platform for a program beside it: the server that DATABASE_URL names, or the embedded one that a platform runs. Its schema is
// brought up to date by the platform.
import { join } from 'node:path';
import { InputError } from '../../base/input-error.ts';
import { describeBug, type Log } from '../../base/log.ts';
import type { PlatformConfig } from '../config.ts';
import { createAvailability } from '../store/availability.ts';
import { type Connections, parseConnections } from '../store/connection.ts';
import { namingVariable } from '../store/connection-failure.ts';
import { findRunningConnections } from '../store/embedded/postgres-server.ts';
import { isCurrent } from '../store/migrate.ts';
import type { Migration } from '../store/migration.ts';
import { connectOnce, type DatabaseOptions } from '../store/database.ts';
import { type Notifications, openNotifications } from '../store/postgres/notifications.ts';

export type ProgramStorage<P> = Connections & {
  readonly pools: P;
  readonly notifications: Notifications;
  close(): Promise<void>;
};

type Installation = Pick<PlatformConfig, 'database' | 'dataDirectory'>;

export type ProgramStorageParts<P> = {
  readonly migrations: readonly Migration[];
  readonly log: Log;
  /** Opens no connection before the first query. */
  openPools(options: Omit<DatabaseOptions, 'limits' | 'maxConnections'>): P;
};

/** Throws an InputError that says what the operator must change. */
export async function openProgramStorage<P extends { close(): Promise<void> }>(
  config: Installation,
  { migrations, log, openPools }: ProgramStorageParts<P>,
): Promise<ProgramStorage<P>> {
  const connections = await findServer(config);
  const { connection } = connections;
  if (config.database.url !== undefined)
    await namingVariable(
      connection,
      'DATABASE_URL',
      connectOnce(connection, async () => undefined),
    );
  if (!(await isCurrent(connection, migrations)))
    throw new InputError(
      'The schema of the database is not that of this version: start the platform first, or run sallyport platform migrate',
    );
  const availability = createAvailability(log);
  let isClosing = false;
  const onError = (error: unknown): void => {
    if (!isClosing) availability.onError(error);
  };
  const { hasNamedStatements } = config.database;
  const pools = openPools({
    ...{ connection, ...availability, onError, hasNamedStatements },
  });
  const notifications = openNotifications({
    ...{ connection, onLost: onError },
    onError: (error) => log.error(describeBug(error), 'a notification was not handled'),
  });
  return {
    ...{ ...connections, pools, notifications },
    async close() {
      isClosing = true;
      await notifications.close();
      await pools.close();
    },
  };
}

async function findServer({ database, dataDirectory }: Installation): Promise<Connections> {
  const { url, ownerUrl } = database;
  if (url === undefined) {
    const found = await findRunningConnections(join(dataDirectory, 'database'));
    if (typeof found !== 'string') return found;
    throw new InputError(
      `No platform runs on ${dataDirectory}, whose database this program needs: start it first, or set DATABASE_URL`,
    );
  }
  const owner = { name: 'SALLYPORT_PLATFORM_DATABASE_OWNER_URL', value: ownerUrl ?? '' };
  const parsed = parseConnections(
    { name: 'DATABASE_URL', value: url },
    ownerUrl === undefined ? undefined : owner,
  );
  if (parsed.ok) return parsed.value;
  throw new InputError(parsed.issues.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; '));
}
