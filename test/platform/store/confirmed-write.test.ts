// A write beside the confirmation of its grant: what it did counts only with the very grant that it began with.
import { afterEach, beforeEach, expect, it } from 'vitest';
import { writeConfirmed } from '../../../src/platform/store/confirmed-write.ts';
import type { Database, Transaction } from '../../../src/platform/store/database.ts';
import { sql } from '../../../src/platform/store/sql.ts';
import { defineStatement } from '../../../src/platform/store/statement.ts';
import { createTestDatabase, type TestDatabase } from '../../support/platform-database.ts';

const EMAIL = { email: 'a@example.test' };
const addUser = defineStatement('test-add-confirmed', (db, { email }: typeof EMAIL) =>
  db.insertInto('users').values({ email }).returning('email').compile(),
);
const readRole = defineStatement('test-read-role', (db, { key }: { readonly key: string }) =>
  sql<{ readonly role: string }>`select role from test_roles where key = ${key} for share`.compile(db),
);

type Granted = { readonly role: string };
let database: TestDatabase;
let seen: string[];
beforeEach(async () => {
  database = await createTestDatabase();
  seen = [];
  const { db } = database.owner;
  await sql`create table test_roles (key text primary key, role text)`.execute(db);
  await sql`grant all on test_roles to public`.execute(db);
  await sql`insert into test_roles values ('key', 'admin')`.execute(db);
});
afterEach(() => database[Symbol.asyncDispose]());

const confirm = async (db: Database): Promise<Granted> => {
  const [row] = await readRole(db, { key: 'key' });
  if (row === undefined) throw new Error('revoked');
  return row;
};

function write(work: (trx: Transaction, granted: Granted) => Promise<unknown>, isAtOnce = true) {
  const confirmation = { granted: { role: 'admin' }, confirm, isAtOnce };
  return writeConfirmed(database.store, confirmation, async (trx, confirmed) => {
    const { result } = await confirmed((granted) => {
      seen.push(granted.role);
      return work(trx, granted);
    });
    return result;
  });
}

const emails = () => database.store.db.selectFrom('users').select('email').execute();

it.each([true, false])('is committed with the grant that it has: at once %s', async (isAtOnce) => {
  expect(await write((trx) => addUser(trx, EMAIL), isAtOnce)).toEqual([EMAIL]);
  expect(await emails()).toEqual([EMAIL]);
  expect(seen).toEqual(['admin']);
});

it('runs again with another grant, and leaves nothing of the first time', async () => {
  await sql`update test_roles set role = 'viewer'`.execute(database.owner.db);
  const email = ({ role }: Granted) => ({ email: `${role}@example.test` });
  await write((trx, granted) => addUser(trx, email(granted)));
  expect(seen).toEqual(['admin', 'viewer']);
  expect(await emails()).toEqual([{ email: 'viewer@example.test' }]);
});

it.each<[string, (trx: Transaction) => Promise<unknown>]>([
  ['succeeds', (trx) => addUser(trx, EMAIL)],
  ['is built for its run', (trx) => trx.insertInto('users').values(EMAIL).execute()],
  ['fails', async (trx) => [await addUser(trx, EMAIL), await addUser(trx, EMAIL)]],
  ['asks nothing', async () => undefined],
  ['throws before it asks', async () => Promise.reject(new Error('forbidden'))],
])('without a grant rejects for that reason alone, where the work %s', async (_, work) => {
  await sql`delete from test_roles`.execute(database.owner.db);
  await expect(write((trx) => work(trx))).rejects.toThrow('revoked');
  expect(await emails()).toEqual([]);
});

it('asks again first where the work has failed before the confirmation had asked everything', async () => {
  await addUser(database.store.db, EMAIL);
  const asking = async (db: Database): Promise<Granted> => {
    await confirm(db);
    await sql`select 1`.execute(db);
    throw new Error('revoked');
  };
  const confirmation = { granted: { role: 'admin' }, confirm: asking, isAtOnce: true };
  const writing = writeConfirmed(database.store, confirmation, (trx, confirmed) =>
    confirmed(() => addUser(trx, EMAIL)),
  );
  await expect(writing).rejects.toThrow('revoked');
});

it('waits for who takes the grant away, and then writes nothing', async () => {
  const { owner } = database;
  const taken = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const taking = owner.write(async (trx) => {
    await sql`delete from test_roles`.execute(trx);
    taken.resolve();
    await end.promise;
  });
  await taken.promise;
  const writing = write((trx) => addUser(trx, EMAIL));
  const isWaiting = async (): Promise<boolean> => {
    const { rows } = await sql`select 1 from pg_locks where not granted`.execute(owner.db);
    return rows.length > 0;
  };
  await expect.poll(isWaiting, { timeout: 20_000 }).toBe(true);
  end.resolve();
  await taking;
  await expect(writing).rejects.toThrow('revoked');
  expect(await emails()).toEqual([]);
});

it('rejects with what its work throws', async () => {
  const work = async (trx: Transaction): Promise<unknown> => [
    await addUser(trx, EMAIL),
    await addUser(trx, EMAIL),
  ];
  await expect(write(work)).rejects.toMatchObject({ code: '23505' });
  expect(await emails()).toEqual([]);
});

it('ends where the confirmation asks again once it has the first rows', async () => {
  const confirmTwice = async (db: Database): Promise<Granted> => {
    await confirm(db);
    return confirm(db);
  };
  const confirmation = { granted: { role: 'admin' }, confirm: confirmTwice, isAtOnce: true };
  await writeConfirmed(database.store, confirmation, async (trx, confirmed) => {
    await confirmed(() => addUser(trx, EMAIL));
  });
  expect(await emails()).toEqual([EMAIL]);
});
