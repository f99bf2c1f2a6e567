import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Connection, connectOnce } from '../../../src/platform/store/database.ts';
import { readAllMigrations } from '../../../src/platform/migrations.ts';
import { isCurrent, migrate } from '../../../src/platform/store/migrate.ts';
import type { Migration } from '../../../src/platform/store/migration.ts';
import { hasDebianPostgres } from '../../support/debian-postgres.ts';
import { createTestDatabase, type TestDatabase } from '../../support/platform-database.ts';
import { everyNth } from '../../support/run-size.ts';
import { insertSampleRows } from '../../support/sample-rows.ts';

const migrations: readonly Migration[] = readAllMigrations();
const hasDebian = await hasDebianPostgres();
if (!hasDebian) console.warn('PostgreSQL 15 of Debian is not installed: apt-get install postgresql-15');

describe.each([
  ['the embedded server', 'embedded', true],
  ['PostgreSQL 15', 'debian', hasDebian],
] as const)('on %s', (_, server, isInstalled) => {
  const tags = server === 'debian' ? ['long'] : [];
  const empty = (): Promise<TestDatabase> => createTestDatabase({ server, isMigrated: false });

  describe.runIf(isInstalled)('the schema', { tags }, () => {
    let reference: unknown;
    beforeAll(async () => {
      await using database = await empty();
      await migrate(database.ownerConnection, migrations);
      reference = await describeSchema(database.ownerConnection);
    });

    it('is created from nothing, and a second run changes nothing', async () => {
      await using database = await empty();
      await migrate(database.ownerConnection, migrations);
      const before = await appliedSteps(database.ownerConnection);
      await migrate(database.ownerConnection, migrations);
      expect(await appliedSteps(database.ownerConnection)).toEqual(before);
      expect(before.map(({ id }) => id)).toEqual(migrations.map(({ id }) => id));
    });

    everyNth(4, migrations.slice(0, -1).toReversed(), (some, options) =>
      it.each(some)(
        'is the same when migrated from version $id ($name), and its rows stay',
        options,
        async ({ id }) => {
          await using database = await empty();
          const steps = migrations.slice(0, id);
          await migrate(database.ownerConnection, steps);
          const rows = await connectOnce(database.ownerConnection, (client) => insertSampleRows(client, id));
          expect(rows).not.toEqual([]);
          await migrate(database.ownerConnection, migrations);
          expect(await describeSchema(database.ownerConnection)).toEqual(reference);
          await connectOnce(database.ownerConnection, async (client) => {
            for (const { table, count } of rows) {
              const found = await client.query(`select from ${table}`);
              expect([table, found.rowCount]).toEqual([table, count]);
            }
          });
        },
      ),
    );

    it('is complete after a crash in the middle of a migration', async () => {
      await using database = await empty();
      const cut: Migration = {
        id: 2,
        name: 'cut off',
        sql: 'create table half (id int); select pg_terminate_backend(pg_backend_pid())',
      };
      const first = migrations.slice(0, 1);
      await expect(migrate(database.ownerConnection, [...first, cut])).rejects.toThrow();
      expect((await appliedSteps(database.ownerConnection)).map(({ id }) => id)).toEqual([1]);
      await migrate(database.ownerConnection, migrations);
      expect(await describeSchema(database.ownerConnection)).toEqual(reference);
    });

    it('is created once by five processes that start together', async () => {
      await using database = await empty();
      await Promise.all(Array.from({ length: 5 }, () => migrate(database.ownerConnection, migrations)));
      expect((await appliedSteps(database.ownerConnection)).map(({ id }) => id)).toEqual(
        migrations.map(({ id }) => id),
      );
    });

    it('is rejected when it is newer', async () => {
      await using database = await empty();
      const next: Migration = { id: migrations.length + 1, name: 'next', sql: 'select' };
      await migrate(database.ownerConnection, [...migrations, next]);
      await expect(migrate(database.ownerConnection, migrations)).rejects.toThrow(/newer than this version/);
    });

    it('is rejected when one of its migrations differs', async () => {
      await using database = await empty();
      const [first, ...rest] = migrations;
      if (first === undefined) throw new Error('no steps');
      const edited = { ...first, sql: `${first.sql} -- edited` };
      await migrate(database.ownerConnection, [edited]);
      await expect(migrate(database.ownerConnection, [first, ...rest])).rejects.toThrow(/Migration 1 /);
    });
  });

  describe.runIf(isInstalled)('whether the schema is current', { tags }, () => {
    const isSo = ({ connection }: TestDatabase): Promise<boolean> => isCurrent(connection, migrations);
    const asOwner = ({ ownerConnection }: TestDatabase, statement: string): Promise<unknown> =>
      connectOnce(ownerConnection, (client) => client.query(statement));

    it('is known to the role that the platform has at run time', async () => {
      await using database = await empty();
      expect(await isSo(database)).toBe(false);
      await migrate(database.ownerConnection, migrations.slice(0, -1));
      expect(await isSo(database)).toBe(false);
      expect(await migrate(database.ownerConnection, migrations)).toBe(1);
      expect(await isSo(database)).toBe(true);
      expect(await migrate(database.ownerConnection, migrations)).toBe(0);
    });

    it('includes the schema of the jobs', async () => {
      await using database = await createTestDatabase({ server });
      await asOwner(database, 'update pgboss.version set version = version - 1');
      expect(await isSo(database)).toBe(false);
    });

    it('is not known in a database of an earlier version, until its owner has migrated it', async () => {
      await using database = await createTestDatabase({ server });
      await asOwner(database, 'revoke all (id, name, hash) on schema_migrations from sallyport_app');
      expect(await isSo(database)).toBe(false);
      expect(await migrate(database.ownerConnection, migrations)).toBe(0);
      expect(await isSo(database)).toBe(true);
    });

    it('is an error when it is newer, or the database cannot be reached', async () => {
      await using database = await createTestDatabase({ server });
      await expect(isCurrent(database.connection, migrations.slice(0, -1))).rejects.toThrow(
        /newer than this version/,
      );
      await expect(isCurrent({ ...database.connection, host: '/nonexistent' }, migrations)).rejects.toThrow(
        /ENOENT/,
      );
    });
  });

  describe.runIf(isInstalled)('the runtime role', { tags }, () => {
    let database: TestDatabase;
    beforeAll(async () => {
      database = await createTestDatabase({ server });
    });
    afterAll(() => database[Symbol.asyncDispose]());

    it.each([
      'create table mine (id int)',
      'drop table organizations',
      'alter table organizations add column mine int',
      'update schema_migrations set hash = id::text',
      'select * from schema_migrations',
      'set role sallyport',
      'truncate audit_events',
      'delete from audit_events',
      "update audit_events set operation = 'x'",
      'create table pgboss.mine (id int)',
    ])('may not: %s', async (statement) => {
      await expect(connectOnce(database.connection, (client) => client.query(statement))).rejects.toThrow(
        /permission denied|must be owner/,
      );
    });

    it('cannot be left with RESET ROLE by an owner that connects as it', async () => {
      const connection = { ...database.ownerConnection, options: '-c role=sallyport_app' };
      await expect(
        connectOnce(connection, (client) => client.query('reset role; drop table organizations')),
      ).rejects.toThrow(/must be owner/);
    });
  });

  describe.runIf(isInstalled)('an owner without administrator rights', { tags }, () => {
    it('can migrate its own database for another user at run time', async () => {
      await using database = await empty();
      const suffix = database.ownerConnection.database ?? '';
      const [owner, worker] = [`owner_${suffix}`, `worker_${suffix}`];
      await connectOnce(database.ownerConnection, (client) =>
        client.query(`
          create role ${owner} login createrole password 'one';
          create role ${worker} login password 'two';
          grant sallyport_app to ${owner} with admin option;
          alter database ${suffix} owner to ${owner};
          grant all on schema public to ${owner};
        `),
      );
      const ownerConnection = { ...database.ownerConnection, user: owner, password: 'one' };
      await migrate(ownerConnection, migrations, { runtimeUser: worker });
      const connection = {
        ...database.ownerConnection,
        user: worker,
        password: 'two',
        options: '-c role=sallyport_app',
      };
      const rows = await connectOnce(connection, (client) => client.query('select * from organizations'));
      expect(rows.rows).toEqual([]);
    });
  });
});

async function appliedSteps(connection: Connection): Promise<readonly { id: number; applied_at: Date }[]> {
  return connectOnce(connection, async (client) => {
    const { rows } = await client.query('select id, applied_at from schema_migrations order by id');
    return rows;
  });
}

/** Tables, columns, constraints, indexes and grants. */
async function describeSchema(connection: Connection): Promise<unknown> {
  const statements = [
    `select table_name, column_name, data_type, column_default, is_nullable from information_schema.columns
      where table_schema = 'public' order by 1, 2`,
    `select conrelid::regclass::text as on, conname, pg_get_constraintdef(oid) as def from pg_constraint
      where connamespace = 'public'::regnamespace order by 1, 2`,
    `select indexname, indexdef from pg_indexes where schemaname = 'public' order by 1`,
    `select relname, relacl::text from pg_class where relnamespace = 'public'::regnamespace order by 1`,
    `select proname, pg_get_functiondef(oid) as def from pg_proc where pronamespace = 'public'::regnamespace order by 1`,
  ];
  return connectOnce(connection, async (client) => {
    const found: unknown[] = [];
    for (const statement of statements) found.push((await client.query(statement)).rows);
    return found;
  });
}
