// The database of an installation for a command of its operator, whether a platform runs on it or not.
import { join } from 'node:path';
import { InputError } from '../base/input-error.ts';
import type { PlatformConfig } from './config.ts';
import { openDatabaseServer } from './storage.ts';
import { type Connection, type Store, openDatabase } from './store/database.ts';
import { findRunningServer } from './store/embedded/postgres-server.ts';

type Installation = Pick<PlatformConfig, 'database' | 'dataDirectory'>;
type Server = { readonly connection: Connection; close(): Promise<void> };

const silent = { info: () => undefined, warn: () => undefined };

/** The schema is left as it is. Throws an InputError when there is no database. */
export async function openOperatorStore(
  installation: Installation,
  maxConnections: number,
): Promise<AsyncDisposable & { readonly store: Store }> {
  const server = await findServer(installation);
  const { connection } = server;
  const store = openDatabase({ connection, maxConnections, onError: () => undefined });
  return {
    store,
    async [Symbol.asyncDispose]() {
      await store.close();
      await server.close();
    },
  };
}

async function findServer(installation: Installation): Promise<Server> {
  const { database, dataDirectory } = installation;
  if (database.url !== undefined) return openDatabaseServer(installation, silent);
  const running = await findRunningServer(join(dataDirectory, 'database'));
  if (running === 'stopped') return openDatabaseServer(installation, silent);
  if (running !== 'absent') return { connection: running, close: async () => {} };
  throw new InputError(
    `There is no database in ${dataDirectory}: name another directory, or set DATABASE_URL`,
  );
}
