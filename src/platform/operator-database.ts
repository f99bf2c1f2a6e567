// The database of an installation for a command of its operator, beside a platform that runs or without one.
import { join } from 'node:path';
import { InputError } from '../base/input-error.ts';
import type { PlatformConfig } from './config.ts';
import { openPlace } from './storage.ts';
import type { Connection } from './store/database.ts';
import { inspectPostgres } from './store/embedded/running-server.ts';

export type DatabasePlace = AsyncDisposable & { readonly connection: Connection };

const silent = { info: () => undefined, warn: () => undefined };

/** Throws an InputError where there is none. */
export async function openDatabasePlace(
  config: Pick<PlatformConfig, 'database' | 'dataDirectory'>,
): Promise<DatabasePlace> {
  if (config.database.url === undefined) {
    const seen = await inspectPostgres(join(config.dataDirectory, 'database'));
    if (seen === 'absent')
      throw new InputError(
        `There is no database in ${config.dataDirectory}: name another, or set DATABASE_URL`,
      );
    if (seen !== 'stopped') return { connection: seen, [Symbol.asyncDispose]: async () => {} };
  }
  const { connection, close } = await openPlace(config, silent);
  return { connection, [Symbol.asyncDispose]: close };
}
