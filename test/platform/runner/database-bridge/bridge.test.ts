// A bridge before a real PostgreSQL server: who is let in, whose queries can be cancelled, and what is left when a side goes.
import { once } from 'node:events';
import { chmod } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  type BridgeOptions,
  type DatabaseBridge,
  openDatabaseBridge,
} from '../../../../src/platform/runner/database-bridge/bridge.ts';
import { createConnectionBudget } from '../../../../src/platform/runner/database-bridge/connection-budget.ts';
import {
  formatCancel,
  formatStartup,
} from '../../../../src/platform/runner/database-bridge/startup-message.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';
import { createScratch, type Scratch } from '../../../support/scratch.ts';

let database: TestDatabase;
let scratch: Scratch;
let bridge: DatabaseBridge;

const silent = { warn: () => undefined };
let opened = 0;

async function open(given: Partial<BridgeOptions> = {}): Promise<DatabaseBridge & { directory: string }> {
  const directory = join(scratch.path, `bridge-${(opened += 1)}`);
  const { host = '', user = '', database: name = '' } = database.connection;
  const options = {
    directory,
    user,
    database: name,
    server: { host },
    connections: createConnectionBudget(100, 4),
    log: silent,
  };
  const one = await openDatabaseBridge({ ...options, ...given });
  return Object.assign(one, { directory });
}

function clientOf({ directory }: { directory: string }, given: Record<string, unknown> = {}): Client {
  const client = new Client({ ...database.connection, host: directory, ...given });
  client.on('error', () => undefined);
  return client;
}

/** Without the error that comes before it. */
function endOf(client: Client): Promise<void> {
  return new Promise((resolve) => client.once('end', () => resolve()));
}

beforeAll(async () => {
  [database, scratch] = await Promise.all([createTestDatabase(), createScratch()]);
  await chmod(scratch.path, 0o755);
});

afterAll(async () => {
  await scratch?.[Symbol.asyncDispose]();
  await database?.[Symbol.asyncDispose]();
});

it('a client of the deployment reaches its database, and nobody else is let in', async () => {
  const one = await open();
  const client = clientOf(one);
  await client.connect();
  const { rows } = await client.query('select current_database() as name, repeat($1, 1000000) as long', [
    'x',
  ]);
  expect(rows[0]).toMatchObject({ name: database.connection.database });
  expect(rows[0].long).toHaveLength(1_000_000);
  for (const other of [{ database: 'postgres' }, { user: 'sallyport' }, { replication: 'database' }])
    await expect(clientOf(one, other).connect()).rejects.toMatchObject({ code: '28000' });
  await client.end();
  await one.close();
});

it('a wrong password is refused by the server', async () => {
  const one = await open();
  await expect(clientOf(one, { password: 'wrong' }).connect()).rejects.toMatchObject({ code: '28P01' });
  await one.close();
});

it('one client too many is refused, and a place is free again when another one has left', async () => {
  const one = await open({ connections: createConnectionBudget(100, 1) });
  const first = clientOf(one);
  await first.connect();
  await expect(clientOf(one).connect()).rejects.toMatchObject({ code: '53300' });
  await first.end();
  await expect.poll(() => one.connections).toBe(0);
  const next = clientOf(one);
  await next.connect();
  await next.end();
  await one.close();
});

it('a query is cancelled with the key of a connection of this bridge, and with no other', async () => {
  const [own, foreign] = [await open(), await open()];
  const client = clientOf(own);
  await client.connect();
  const { processID, secretKey } = client as unknown as { processID: number; secretKey: number };
  const key = Buffer.alloc(8);
  key.writeInt32BE(processID, 0);
  key.writeInt32BE(secretKey, 4);
  const cancel = async (at: { directory: string }): Promise<void> => {
    const socket = connect(join(at.directory, '.s.PGSQL.5432'));
    socket.end(formatCancel(key.toString('hex')));
    await once(socket.resume(), 'close');
  };
  const query = client.query('select pg_sleep(60)').catch((error: { code: string }) => error.code);
  const isRunning = async (): Promise<number> => {
    const { rows } = await clientRows(
      `select from pg_stat_activity where pid = ${processID} and state = 'active'`,
    );
    return rows.length;
  };
  await expect.poll(isRunning).toBe(1);
  await cancel(foreign);
  expect(await isRunning()).toBe(1);
  await cancel(own);
  expect(await query).toBe('57014');
  await client.end();
  await Promise.all([own.close(), foreign.close()]);
});

async function clientRows(statement: string): Promise<{ rows: unknown[] }> {
  const owner = new Client(database.ownerConnection);
  await owner.connect();
  try {
    return await owner.query(statement);
  } finally {
    await owner.end();
  }
}

it('the connection to the server ends with a client that is gone, and a client with the server', async () => {
  const one = await open();
  const name = `gone-${process.pid}`;
  const count = async (): Promise<number> =>
    (await clientRows(`select from pg_stat_activity where application_name = '${name}'`)).rows.length;
  const client = clientOf(one, { application_name: name });
  await client.connect();
  expect(await count()).toBe(1);
  (client as unknown as { connection: { stream: Socket } }).connection.stream.destroy();
  await expect.poll(count).toBe(0);
  const other = clientOf(one, { application_name: name });
  await other.connect();
  const ended = endOf(other);
  await clientRows(
    `select pg_terminate_backend(pid) from pg_stat_activity where application_name = '${name}'`,
  );
  await ended;
  await expect.poll(() => one.connections).toBe(0);
  await one.close();
});

it('a client that says nothing, or half of it, is cut', async () => {
  const one = await open({ loginMs: 100 });
  const startup = formatStartup({ minorVersion: 0, parameters: new Map([['user', 'x']]) });
  for (const said of [Buffer.alloc(0), startup.subarray(0, 9)]) {
    const socket = connect(join(one.directory, '.s.PGSQL.5432'));
    socket.write(said);
    await once(socket.resume(), 'close');
  }
  await one.close();
});

it('a server that accepts and never responds holds nobody for ever', async () => {
  const silentServer = createServer((socket) => socket.on('error', () => undefined).resume());
  await once(silentServer.listen(join(scratch.path, '.s.PGSQL.5432')), 'listening');
  const one = await open({ server: { host: scratch.path }, loginMs: 200 });
  await expect(clientOf(one).connect()).rejects.toThrow();
  await one.close();
  silentServer.close();
});

it('says that the database cannot be reached', async () => {
  const one = await open({ server: { host: join(scratch.path, 'absent') } });
  await expect(clientOf(one).connect()).rejects.toMatchObject({ code: '08006' });
  await one.close();
});

it('closing cuts every connection, and the socket of a killed process is replaced', async () => {
  bridge = await open();
  const { directory } = bridge as unknown as { directory: string };
  const client = clientOf({ directory });
  await client.connect();
  const ended = endOf(client);
  await bridge.close();
  await ended;
  const left = createServer();
  await once(left.listen(join(directory, '.s.PGSQL.5432')), 'listening');
  const again = await openDatabaseBridge({
    ...{
      directory,
      server: { host: String(database.connection.host) },
      connections: createConnectionBudget(100, 1),
      log: silent,
    },
    user: String(database.connection.user),
    database: String(database.connection.database),
  });
  const next = clientOf({ directory });
  await next.connect();
  await next.end();
  await again.close();
  left.close();
});
