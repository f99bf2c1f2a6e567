// A relay between a platform and its database, on a unix socket, that cuts the connection at a commit: after it, so that
// only the response is lost, or before it, or so that the commit arrives long after the platform has lost the connection.
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';

export type Cut = 'after the commit' | 'before the commit' | 'while the commit is on its way';

export type DatabaseCutter = AsyncDisposable & {
  /** Cuts the connection at the next commit. */
  cut(where: Cut): void;
  /** Lets the database have the commit that was on its way; resolves with its response. */
  deliver(): Promise<void>;
};

const SOCKET = '.s.PGSQL.5432';
/** Alone, or with the last statement of its transaction. */
const COMMIT = /(?:^Q.{4}|P.{4}\0)commit\0/s;

/** Creates its socket in `directory`; `server` is the directory with the socket of the database. */
export async function openDatabaseCutter(directory: string, server: string): Promise<DatabaseCutter> {
  const open = new Set<Socket>();
  let next: Cut | undefined;
  let deliver: (() => Promise<void>) | undefined;
  const relay = (client: Socket): void => {
    const database = connect(join(server, SOCKET));
    let isCut = false;
    const end = (): void => {
      client.destroy();
      database.destroy();
    };
    for (const socket of [client, database]) {
      open.add(socket);
      socket.on('error', end).on('close', end);
    }
    client.on('data', (sent) => {
      if (next !== undefined && COMMIT.test(sent.toString('latin1'))) {
        isCut = true;
        const where = next;
        next = undefined;
        if (where === 'before the commit') return end();
        if (where === 'while the commit is on its way') {
          client.off('close', end).destroy();
          deliver = async () => {
            database.write(sent);
            await once(database, 'data');
          };
          return;
        }
      }
      database.write(sent);
    });
    database.on('data', (received) => {
      if (isCut) end();
      else client.write(received);
    });
  };
  const listener = createServer(relay);
  await new Promise<void>((resolve) => listener.listen(join(directory, SOCKET), resolve));
  return {
    cut(where) {
      next = where;
    },
    async deliver() {
      await deliver?.();
    },
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => listener.close(resolve));
    },
  };
}
