// The database and the role of a deployment on a real server: who may connect, what the role may do, and steps that are repeated.
import { randomUUID } from 'node:crypto';
import { Client, type PoolConfig } from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Secret } from '../../../../src/base/secret.ts';
import { createVerifier } from '../../../../src/platform/runner/databases/scram-verifier.ts';
import {
  createServerDatabase,
  type DatabaseNames,
  dropServerDatabase,
  namesOf,
  NotPermitted,
} from '../../../../src/platform/runner/databases/server-databases.ts';
import { hasDebianPostgres } from '../../../support/debian-postgres.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';

const PASSWORD = 'p4ssword';

let platform: TestDatabase;
let given: { verifier: string; maxConnections: number };

beforeAll(async () => {
  platform = await createTestDatabase({ isMigrated: false });
  given = { verifier: await createVerifier(new Secret(PASSWORD)), maxConnections: 3 };
});

afterAll(() => platform?.[Symbol.asyncDispose]());

async function withClient<T>(connection: PoolConfig, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client(connection);
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

function asRole({ database, role }: DatabaseNames, server: TestDatabase = platform): PoolConfig {
  return { ...server.connection, database, user: role, password: PASSWORD };
}

async function countOf({ database, role }: DatabaseNames, server: TestDatabase = platform): Promise<number> {
  const found = `select from pg_database where datname = '${database}' union all select from pg_roles where rolname = '${role}'`;
  return withClient(server.ownerConnection, async (client) => (await client.query(found)).rows.length);
}

it('the role owns its database and nothing else', async () => {
  const [own, other] = [namesOf(randomUUID()), namesOf(randomUUID())];
  for (const names of [own, other]) await createServerDatabase(platform.ownerConnection, names, given);
  await withClient(asRole(own), async (client) => {
    await client.query('create table t (x int); create schema s; drop schema s');
    for (const statement of ['create role x', 'create database x', `drop database ${other.database}`])
      await expect(client.query(statement)).rejects.toMatchObject({ code: '42501' });
    await expect(client.query('set role sallyport_app')).rejects.toMatchObject({ code: '42501' });
  });
  const foreign = { ...asRole(own), database: other.database };
  await expect(withClient(foreign, async () => undefined)).rejects.toMatchObject({ code: '42501' });
  for (const names of [own, other]) await dropServerDatabase(platform.ownerConnection, names);
});

it('each step may be repeated, and the last password counts', async () => {
  const names = namesOf(randomUUID());
  await createServerDatabase(platform.ownerConnection, names, given);
  const verifier = await createVerifier(new Secret('another'));
  await createServerDatabase(platform.ownerConnection, names, { ...given, verifier });
  await expect(withClient(asRole(names), async () => undefined)).rejects.toMatchObject({ code: '28P01' });
  await withClient({ ...asRole(names), password: 'another' }, (client) => client.query('select'));
  for (let times = 0; times < 2; times += 1) await dropServerDatabase(platform.ownerConnection, names);
  expect(await countOf(names)).toBe(0);
});

it('two processes that create and drop the same one do not fail', async () => {
  const names = namesOf(randomUUID());
  const twice = (work: () => Promise<void>): Promise<unknown> => Promise.all([work(), work()]);
  const create = async (): Promise<void> => {
    // Both may see that the role is absent, or update the same row of it: the runner tries again.
    await createServerDatabase(platform.ownerConnection, names, given).catch(() => undefined);
  };
  await twice(create);
  await create();
  await withClient(asRole(names), (client) => client.query('select'));
  await dropServerDatabase(platform.ownerConnection, names);
});

it('whoever is connected does not prevent a drop', async () => {
  const names = namesOf(randomUUID());
  await createServerDatabase(platform.ownerConnection, names, given);
  const client = new Client(asRole(names));
  client.on('error', () => undefined);
  await client.connect();
  const ended = new Promise((resolve) => client.once('end', resolve));
  await dropServerDatabase(platform.ownerConnection, names);
  await ended;
  expect(await countOf(names)).toBe(0);
});

it('nothing is dropped that has another name', async () => {
  const names = { database: 'postgres', role: 'sallyport' };
  await expect(dropServerDatabase(platform.ownerConnection, names)).rejects.toThrow('not the database');
  expect(() => namesOf('x; drop table t')).toThrow('must be a UUID');
});

it('says what the owner lacks', async () => {
  const error = await createServerDatabase(platform.connection, namesOf(randomUUID()), given).catch(
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(NotPermitted);
  expect(String(error)).toContain('alter role sallyport_app createdb createrole');
});

it.skipIf(!(await hasDebianPostgres()))(
  'an owner who is no superuser creates and drops them',
  { tags: ['long'] },
  async () => {
    for (const server of ['embedded', 'debian'] as const) {
      await using other = await createTestDatabase({ server, isMigrated: false });
      const user = `operator_${randomUUID().replaceAll('-', '')}`;
      const create = `create role ${user} login createdb createrole password '${PASSWORD}'`;
      await withClient(other.ownerConnection, (client) => client.query(create));
      const operator = { ...other.ownerConnection, user, password: PASSWORD };
      const names = namesOf(randomUUID());
      for (let times = 0; times < 2; times += 1) await createServerDatabase(operator, names, given);
      await withClient(asRole(names, other), (client) => client.query('create table t (x int)'));
      await dropServerDatabase(operator, names);
      expect(await countOf(names, other)).toBe(0);
      await withClient(other.ownerConnection, (client) => client.query(`drop role ${user}`));
    }
  },
);
