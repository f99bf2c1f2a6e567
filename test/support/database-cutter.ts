// A relay between a platform and its database, on a unix socket, that cuts the connection at a commit: after it, so that
// only the response is lost, or before it.
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';

export type Cut = 'after the commit' | 'before the commit';

export type DatabaseCutter = AsyncDisposable & {
  /** Cuts the connection at the next commit. */
  cut(where: Cut): void;
};

const SOCKET = '.s.PGSQL.5432';
/** Alone, or with the last statement of its transaction. */
const COMMIT = /(?:^Q.{4}|P.{4}\0)commit\0/s;

/** Creates its socket in `directory`; `server` is the directory with the socket of the database. */
export async function openDatabaseCutter(directory: string, server: string): Promise<DatabaseCutter> {
  const open = new Set<Socket>();
  let next: Cut | undefined;
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
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => listener.close(resolve));
    },
  };
}
