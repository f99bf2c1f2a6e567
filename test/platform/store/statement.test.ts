// A named statement is prepared once on each connection, sees each value in its place, and is given up when it is stale.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openDatabase, type Store } from '../../../src/platform/store/database.ts';
import { sql } from '../../../src/platform/store/sql.ts';
import { defineStatement } from '../../../src/platform/store/statement.ts';
import { createTestDatabase, type TestDatabase } from '../../support/platform-database.ts';

type Given = { readonly email: string; readonly most: number };
let built = 0;
const findUsers = defineStatement('test-find-users', (db, { email, most }: Given) => {
  built += 1;
  return db
    .selectFrom('users')
    .select(['email', sql<string>`'constant'`.as('word')])
    .where('email', '<>', 'nobody@example.test')
    .where('email', 'like', email)
    .orderBy('email')
    .limit(most)
    .compile();
});

let database: TestDatabase;
let store: Store;
const open = (hasNamedStatements: boolean): Store =>
  openDatabase({
    connection: database.connection,
    maxConnections: 1,
    hasNamedStatements,
    onError: () => undefined,
  });
beforeEach(async () => {
  database = await createTestDatabase();
  store = open(true);
  const rows = ['a', 'b', 'c'].map((name) => ({ email: `${name}@example.test` }));
  await database.owner.db.insertInto('users').values(rows).execute();
});
afterEach(async () => {
  await store.close();
  await database[Symbol.asyncDispose]();
});

async function prepared(): Promise<readonly string[]> {
  const { rows } = await sql<{ name: string }>`select name from pg_prepared_statements`.execute(store.db);
  return rows.map(({ name }) => name);
}

describe('a named statement', () => {
  it('is built once, prepared once on a connection, and gets the values of each run', async () => {
    const word = 'constant';
    const [a, b] = ['a@example.test', 'b@example.test'];
    expect(await findUsers(store.db, { email: '%', most: 2 })).toEqual([
      { email: a, word },
      { email: b, word },
    ]);
    expect(await findUsers(store.db, { email: 'b%', most: 9 })).toEqual([{ email: b, word }]);
    const inTransaction = await store.write((trx) => findUsers(trx, { email: 'a%', most: 1 }));
    expect(inTransaction).toEqual([{ email: a, word }]);
    expect(await prepared()).toEqual(['test-find-users']);
    expect(built).toBe(1);
  });

  it('is not prepared where named statements are switched off', async () => {
    await store.close();
    store = open(false);
    expect(await findUsers(store.db, { email: 'a%', most: 1 })).toHaveLength(1);
    expect(await prepared()).toEqual([]);
  });

  it('that a pooler has lost is `unavailable` once, and the next connection prepares it again', async () => {
    await findUsers(store.db, { email: 'a%', most: 1 });
    await sql`deallocate all`.execute(store.db);
    await expect(findUsers(store.db, { email: 'a%', most: 1 })).rejects.toMatchObject({
      kind: 'unavailable',
      retryMs: 1000,
    });
    expect(await findUsers(store.db, { email: 'a%', most: 1 })).toHaveLength(1);
  });

  it('is not built with a value that needs the type of its column', async () => {
    const find = defineStatement('test-find-created', (db) =>
      db.selectFrom('users').select('email').where('created_at', '<', new Date()).compile(),
    );
    const message =
      'the statement test-find-created has a value other than text, a number, a boolean or bytes';
    for (const _ of [1, 2]) await expect(find(store.db, {})).rejects.toThrow(message);
  });

  it('whose result has another type after a migration is `unavailable` once', async () => {
    await findUsers(store.db, { email: 'a%', most: 1 });
    await sql`alter table users alter column email type varchar(400)`.execute(database.owner.db);
    const again = findUsers(store.db, { email: 'a%', most: 1 });
    await expect(again).rejects.toMatchObject({ kind: 'unavailable' });
    expect(await findUsers(store.db, { email: 'a%', most: 1 })).toHaveLength(1);
  });
});
