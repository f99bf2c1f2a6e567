// Two lines for an outage, however many connections and attempts there are.
import { randomUUID } from 'node:crypto';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createAvailability } from '../../../src/platform/store/availability.ts';
import { openDatabase } from '../../../src/platform/store/database.ts';
import { sql } from '../../../src/platform/store/sql.ts';
import { createLog } from '../../../src/base/log.ts';
import { createTestDatabase } from '../../support/platform-database.ts';
import { createScratch } from '../../support/scratch.ts';

function createScene() {
  const lines: Record<string, unknown>[] = [];
  const log = createLog('info', { write: (line) => void lines.push(JSON.parse(line)) });
  let now = 0;
  return {
    availability: createAvailability(log, () => now),
    pass: (ms: number) => (now += ms),
    logged: () => lines.map(({ level, msg, code, seconds }) => [level, msg, code ?? seconds]),
  };
}

const refused = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });

describe('an outage', () => {
  it('is reported once, and its end once with its length', () => {
    const { availability, pass, logged } = createScene();
    availability.onConnected();
    for (let at = 0; at < 3; at += 1) availability.onError(new Error('broken'));
    for (let at = 0; at < 3; at += 1) availability.onUnreachable(refused);
    availability.onError(new Error('broken'));
    pass(90_400);
    for (let at = 0; at < 3; at += 1) availability.onConnected();
    expect(logged()).toEqual([
      ['warn', 'a database connection broke', undefined],
      ['error', 'the database cannot be reached: requests that need it get a 503', 'ECONNREFUSED'],
      ['info', 'the database can be reached again', 90],
    ]);
    availability.onUnreachable(refused);
    expect(logged()).toHaveLength(4);
  });

  it('is found by the pool whose server is away, and comes back', async () => {
    await using database = await createTestDatabase();
    await using scratch = await createScratch();
    const { availability, logged } = createScene();
    const relay = createRelay(String(database.connection.host));
    const path = join(scratch.path, '.s.PGSQL.5432');
    const connection = { ...database.connection, host: scratch.path, port: 5432 };
    const store = openDatabase({ connection, maxConnections: 3, ...availability });
    const ask = () =>
      sql`select ${randomUUID()}`.execute(store.db).then(
        () => 'served',
        ({ kind }: { readonly kind: string }) => kind,
      );
    const three = () => Promise.all([ask(), ask(), ask()]);
    await relay.listen(path);
    expect(await three()).toEqual(['served', 'served', 'served']);
    await relay.close();
    expect(await three()).toEqual(['unavailable', 'unavailable', 'unavailable']);
    expect(await ask()).toBe('unavailable');
    await relay.listen(path);
    expect(await three()).toEqual(['served', 'served', 'served']);
    await store.close();
    await relay.close();
    // Whether an idle connection was seen to break before the next attempt depends on the moment.
    const reported = logged().filter(([level]) => level !== 'warn');
    expect(reported.map(([level, msg]) => `${level}: ${msg}`)).toEqual([
      'error: the database cannot be reached: requests that need it get a 503',
      'info: the database can be reached again',
    ]);
  });
});

/** A listener in front of the socket of a server, which can be closed with its connections. */
function createRelay(server: string) {
  const open = new Set<Socket>();
  let listener: Server;
  return {
    async listen(path: string) {
      listener = createServer((client) => {
        const upstream = connect(join(server, '.s.PGSQL.5432'));
        for (const socket of [client, upstream]) {
          open.add(socket);
          socket
            .on('error', () => undefined)
            .on('close', () => {
              client.destroy();
              upstream.destroy();
            });
        }
        client.pipe(upstream).pipe(client);
      });
      await new Promise<void>((done) => listener.listen(path, done));
    },
    async close() {
      const closed = new Promise<void>((done) => listener.close(() => done()));
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}
