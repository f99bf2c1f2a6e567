// The connections of a pool after what goes wrong on them: a statement that failed when it was prepared, a transaction that the
// server gave up, a connection that ended in one.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { connectOnce, openDatabase, type Store } from '../../../../src/platform/store/database.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { defineStatement } from '../../../../src/platform/store/statement.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';

const addUser = defineStatement('test-add-once', (db, { email }: { readonly email: string }) =>
  db.insertInto('users').values({ email }).returning('email').compile(),
);
const removeUser = defineStatement('test-remove', (db, { email }: { readonly email: string }) =>
  db.deleteFrom('users').where('email', '=', email).compile(),
);
const [A, B] = [{ email: 'a@example.test' }, { email: 'b@example.test' }];

let database: TestDatabase;
let store: Store;
const open = (): Store =>
  openDatabase({ connection: database.connection, maxConnections: 1, onError: () => undefined });
beforeEach(async () => {
  database = await createTestDatabase();
  store = open();
});
afterEach(async () => {
  await store.close();
  await database[Symbol.asyncDispose]();
});

describe('a named statement', () => {
  it('that failed when it was prepared runs on the same connection', async () => {
    await database.owner.db.insertInto('users').values(A).execute();
    await expect(addUser(store.db, A)).rejects.toMatchObject({ code: '23505' });
    const inTransaction = store.write(async (trx) => {
      await expect(addUser(trx, A)).rejects.toMatchObject({ code: '23505' });
      return addUser(trx, B);
    });
    // in_failed_sql_transaction
    await expect(inTransaction).rejects.toMatchObject({ code: '25P02' });
    expect(await addUser(store.db, B)).toEqual([B]);
    expect(await addUser(store.db, { email: 'c@example.test' })).toHaveLength(1);
  });

  it('without a result has no rows', async () => {
    await addUser(store.db, A);
    for (const _ of [1, 2]) expect(await removeUser(store.db, A)).toEqual([]);
    expect(await store.db.selectFrom('users').selectAll().execute()).toEqual([]);
  });

  it('says in its error who ran it', async () => {
    await addUser(store.db, A);
    const error: unknown = await addUser(store.db, A).catch((thrown: unknown) => thrown);
    expect((error as Error).stack).toContain('pooled-connection.test');
  });
});

describe('a transaction', () => {
  it('of which a statement failed is not committed, also where its work goes on', async () => {
    const written = store.write(async (trx) => {
      await addUser(trx, A);
      await sql`select 1 / 0`.execute(trx).catch(() => undefined);
    });
    await expect(written).rejects.toThrow('a statement of the transaction failed: it was rolled back');
    expect(await store.db.selectFrom('users').selectAll().execute()).toEqual([]);
  });

  it('whose connection ended leaves no connection to others', async () => {
    const written = store.write(async (trx) => {
      const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(trx);
      await connectOnce(database.ownerConnection, (client) =>
        client.query('select pg_terminate_backend($1, 5000)', [rows[0]?.pid]),
      );
    });
    await expect(written).rejects.toMatchObject({ kind: 'unavailable' });
    expect(await addUser(store.db, A)).toEqual([A]);
  });

  it('counts the rows that it changed', async () => {
    await addUser(store.db, A);
    const changed = await store.write((trx) => trx.updateTable('users').set(B).executeTakeFirst());
    expect(changed.numUpdatedRows).toBe(1n);
  });
});
