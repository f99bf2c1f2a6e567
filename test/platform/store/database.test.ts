import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { connectOnce, isDuplicate, openDatabase, type Store } from '../../../src/platform/store/database.ts';
import { sql } from '../../../src/platform/store/sql.ts';
import { createTestDatabase, type TestDatabase } from '../../support/platform-database.ts';

let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(() => database[Symbol.asyncDispose]());

const unavailable = { name: 'DomainError', kind: 'unavailable', retryMs: 1000 };

async function addUser({ db }: Pick<Store, 'db'>, email: string): Promise<void> {
  await db.insertInto('users').values({ email }).execute();
}

describe('a store', () => {
  it('stores what was committed and nothing of what was rolled back', async () => {
    const { store } = database;
    await store.write((trx) => addUser({ db: trx }, 'stored@example.test'));
    const rolledBack = store.write(async (trx) => {
      await addUser({ db: trx }, 'rolled-back@example.test');
      throw new Error('rolled back');
    });
    await expect(rolledBack).rejects.toThrow('rolled back');
    const emails = await store.db.selectFrom('users').select('email').execute();
    expect(emails).toEqual([{ email: 'stored@example.test' }]);
  });

  it('retries a transaction that was rolled back after a deadlock', async () => {
    const { store } = database;
    for (const email of ['a@example.test', 'b@example.test']) await addUser(store, email);
    const lock = (trx: Pick<Store, 'db'>['db'], email: string): Promise<unknown> =>
      trx.selectFrom('users').where('email', '=', email).selectAll().forUpdate().execute();
    const [both, otherBoth] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let runs = 0;
    const cross = async (
      first: string,
      second: string,
      mine: typeof both,
      theirs: typeof both,
    ): Promise<void> =>
      store.write(async (trx) => {
        runs += 1;
        await lock(trx, first);
        mine.resolve();
        await theirs.promise;
        await lock(trx, second);
      });
    await Promise.all([
      cross('a@example.test', 'b@example.test', both, otherBoth),
      cross('b@example.test', 'a@example.test', otherBoth, both),
    ]);
    // The transaction that was rolled back may lock its first row again before the other one wakes.
    expect(runs).toBeGreaterThan(2);
  });

  it('recognizes a duplicate row by its constraint', async () => {
    await addUser(database.store, 'a@example.test');
    const error: unknown = await addUser(database.store, 'a@example.test').catch((thrown: unknown) => thrown);
    expect(isDuplicate(error, 'users_email')).toBe(true);
    expect(isDuplicate(error, 'workspaces_name')).toBe(false);
  });

  it('waits for running transactions when it is closed', async () => {
    const store = openDatabase({
      connection: database.connection,
      maxConnections: 2,
      onError: () => undefined,
    });
    const begun = Promise.withResolvers<void>();
    const mayEnd = Promise.withResolvers<void>();
    const written = store.write(async (trx) => {
      await addUser({ db: trx }, 'late@example.test');
      begun.resolve();
      await mayEnd.promise;
    });
    await begun.promise;
    const closed = store.close();
    mayEnd.resolve();
    await written;
    await closed;
    const { rowCount } = await connectOnce(database.ownerConnection, (client) =>
      client.query('select from users'),
    );
    expect(rowCount).toBe(1);
  });
});

describe('the error when the database is unavailable', () => {
  it('is `unavailable` when no server listens', async () => {
    const connection = { ...database.connection, host: '/nonexistent' };
    const store = openDatabase({ connection, maxConnections: 1, onError: () => undefined });
    await expect(store.db.selectFrom('users').selectAll().execute()).rejects.toMatchObject(unavailable);
    await store.close();
  });

  it('is `unavailable` in the middle of a transaction, and the next one works', async () => {
    const { store } = database;
    const cut = store.write(async (trx) => {
      await addUser({ db: trx }, 'cut@example.test');
      const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(trx);
      await connectOnce(database.ownerConnection, (client) =>
        client.query('select pg_terminate_backend($1, 5000)', [rows[0]?.pid]),
      );
      await addUser({ db: trx }, 'after@example.test');
    });
    await expect(cut).rejects.toMatchObject(unavailable);
    expect(await store.db.selectFrom('users').selectAll().execute()).toEqual([]);
  });

  it('is reported for idle connections, which are replaced', async () => {
    const errors: Error[] = [];
    const broken = Promise.withResolvers<void>();
    const store = openDatabase({
      connection: database.connection,
      maxConnections: 1,
      onError: (error) => {
        errors.push(error);
        broken.resolve();
      },
    });
    const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(store.db);
    await connectOnce(database.ownerConnection, (client) =>
      client.query('select pg_terminate_backend($1, 5000)', [rows[0]?.pid]),
    );
    await broken.promise;
    expect(errors).toHaveLength(1);
    expect(await store.db.selectFrom('users').selectAll().execute()).toEqual([]);
    await store.close();
  });

  it('is `unavailable` for a statement that takes too long or waits too long for a lock', async () => {
    const connection = { ...database.connection, statement_timeout: 200, lock_timeout: 100 };
    const store = openDatabase({ connection, maxConnections: 2, onError: () => undefined });
    await expect(sql`select pg_sleep(30)`.execute(store.db)).rejects.toMatchObject(unavailable);
    await connectOnce(database.ownerConnection, async (client) => {
      await client.query('begin; lock table users');
      await expect(addUser(store, 'a@example.test')).rejects.toMatchObject(unavailable);
    });
    await store.close();
  });

  it('is `unavailable` when the server stops responding, and the next query does not wait behind that one', async () => {
    const connection = { ...database.connection, statement_timeout: 60_000, query_timeout: 300 };
    const store = openDatabase({ connection, maxConnections: 1, onError: () => undefined });
    const hung = store.write((trx) => sql`select pg_sleep(60)`.execute(trx));
    const next = store.db.selectFrom('users').selectAll().execute();
    await expect(hung).rejects.toMatchObject(unavailable);
    expect(await next).toEqual([]);
    await store.close();
  });

  it('comes in time: statements, locks and idle transactions are limited, on a fixed search path', async () => {
    const { rows } = await sql<{ name: string; setting: string }>`
      select name, setting from pg_settings where name in
        ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'search_path') order by name
    `.execute(database.store.db);
    expect(Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))).toEqual({
      idle_in_transaction_session_timeout: '30000',
      lock_timeout: '10000',
      search_path: 'public',
      statement_timeout: '30000',
    });
  });
});
