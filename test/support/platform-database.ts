// A database for one test file or one test, created from a template with the whole schema, on the server of the test run.
import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import type { PoolConfig } from 'pg';
import { inject } from 'vitest';
import { connectOnce, openDatabase, type Store } from '../../src/platform/store/database.ts';
import type { Pools } from '../../src/platform/store/pools.ts';
import type { DeskResponse, ServerKind, TestServer } from './postgres-setup.ts';

export type TestDatabase = AsyncDisposable & {
  /** With the database role that the platform has at run time. */
  readonly store: Store;
  /** As the owner of the tables, with the privileges of a database administrator. */
  readonly owner: Store;
  readonly connection: PoolConfig;
  readonly ownerConnection: PoolConfig;
  /** `connection` and `ownerConnection` as values of DATABASE_URL. */
  readonly url: string;
  readonly ownerUrl: string;
};

export type TestDatabaseOptions = {
  readonly server?: ServerKind;
  /** False for a database without a schema. */
  readonly isMigrated?: boolean;
};

export async function createTestDatabase(options: TestDatabaseOptions = {}): Promise<TestDatabase> {
  const server = await requestServer(options.server ?? 'embedded');
  const database = `test_${randomBytes(8).toString('hex')}`;
  const template = options.isMigrated === false ? 'template1' : server.template;
  await connectOnce(server.ownerConnection, (client) =>
    client.query(`create database ${database} template ${template} strategy file_copy`),
  );
  const connection = { ...server.connection, database };
  const ownerConnection = { ...server.ownerConnection, database };
  const store = open(connection);
  const owner = open(ownerConnection);
  return {
    store,
    owner,
    connection,
    ownerConnection,
    url: toUrl(connection),
    ownerUrl: toUrl(ownerConnection),
    async [Symbol.asyncDispose]() {
      await Promise.all([store.close(), owner.close()]);
      await connectOnce(server.ownerConnection, (client) =>
        client.query(`drop database if exists ${database} with (force)`),
      );
    },
  };
}

/** One store for all purposes. */
export function onePool(store: Store): Pools {
  return {
    ...{ authentication: store, reads: store, writes: store, long: store },
    connections: () => ({ all: store.connections() }),
    close: () => store.close(),
  };
}

function open(connection: PoolConfig): Store {
  // Connections break on purpose in some tests, and when the database is dropped.
  return openDatabase({ connection, maxConnections: 8, onError: () => undefined });
}

async function requestServer(kind: ServerKind): Promise<TestServer> {
  const socket = connect(inject('postgresDesk'));
  socket.write(`${kind}\n`);
  const response: DeskResponse = JSON.parse(await text(socket));
  if ('error' in response) throw new Error(response.error);
  return response;
}

function toUrl({ user, password, host, database }: PoolConfig): string {
  const query = new URLSearchParams({ host: host ?? '', user: user ?? '', password: String(password) });
  return `postgresql:///${database}?${query}`;
}
