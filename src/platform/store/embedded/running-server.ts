// Another program's look at the server of a data directory: one that runs is used as it runs, and left as it was.
import { join } from 'node:path';
import { isNotReady } from '../database-error.ts';
import { type Connection, connectOnce } from '../database.ts';
import { readClusterVersion } from './cluster.ts';
import { readPasswords } from './data-directory.ts';
import { connectionTo } from './postgres-server.ts';
import { RUNTIME } from '../roles.ts';

/** `absent` where there is no database, `stopped` where nobody serves it. */
export async function inspectPostgres(path: string): Promise<Connection | 'absent' | 'stopped'> {
  const cluster = join(path, 'cluster');
  if ((await readClusterVersion({ cluster })) === undefined) return 'absent';
  const { runtime } = await readPasswords({ path }, true);
  const connection = connectionTo({ cluster }, RUNTIME, runtime);
  try {
    await connectOnce(connection, (client) => client.query('select'));
    return connection;
  } catch (error) {
    if (isNotReady(error)) return 'stopped';
    throw error;
  }
}
