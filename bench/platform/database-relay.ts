// Counts what a program asks of PostgreSQL: a relay on a unix socket that reads the messages of the client and changes nothing.
import { mkdirSync } from 'node:fs';
import { type Socket, connect, createServer } from 'node:net';
import { join } from 'node:path';

export type Counts = { readonly statements: number; readonly roundTrips: number };

export type DatabaseRelay = Disposable & {
  /** In place of the directory of the server's socket. */
  readonly host: string;
  counts(): Counts;
};

const SOCKET = '.s.PGSQL.5432';
/** The length of a message includes itself, and not the type before it. */
const HEAD_BYTES = 5;
/** Query and Execute (PostgreSQL manual, "Message Formats"). */
const STATEMENTS: ReadonlySet<number> = new Set([...'QE'].map((type) => type.charCodeAt(0)));

/** `serverHost` is the directory of the server's socket, `host` a new one for the relay. */
export async function openDatabaseRelay(serverHost: string, host: string): Promise<DatabaseRelay> {
  let [statements, roundTrips] = [0, 0];
  mkdirSync(host, { mode: 0o755 });
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(join(serverHost, SOCKET));
    const read = createMessageReader((type) => {
      if (STATEMENTS.has(type)) statements += 1;
    });
    let isAwaited = false;
    client.on('data', (bytes: Buffer) => {
      read(bytes);
      if (!isAwaited) roundTrips += 1;
      isAwaited = true;
      upstream.write(bytes);
    });
    upstream.on('data', (bytes: Buffer) => {
      isAwaited = false;
      client.write(bytes);
    });
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      const end = (): void => void [client, upstream].forEach((each) => each.destroy());
      socket.on('error', end).on('close', end);
    }
  });
  const listening = Promise.withResolvers<void>();
  server.once('error', listening.reject).listen(join(host, SOCKET), listening.resolve);
  await listening.promise;
  return {
    host,
    counts: () => ({ statements, roundTrips }),
    [Symbol.dispose]() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Calls `onMessage` with the type of each message. The first one of a connection has none. */
function createMessageReader(onMessage: (type: number) => void): (bytes: Buffer) => void {
  let unread: Buffer = Buffer.alloc(0);
  let isStarted = false;
  return (bytes) => {
    unread = Buffer.concat([unread, bytes]);
    for (;;) {
      const typeBytes = isStarted ? 1 : 0;
      if (unread.length < (isStarted ? HEAD_BYTES : HEAD_BYTES - 1)) return;
      const length = unread.readUInt32BE(typeBytes) + typeBytes;
      if (unread.length < length) return;
      if (isStarted) onMessage(unread[0] ?? 0);
      isStarted = true;
      unread = unread.subarray(length);
    }
  };
}
