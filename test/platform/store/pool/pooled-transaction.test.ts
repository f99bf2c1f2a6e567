// Statements that are held back run before the next one of their transaction, whether that is named or built for its run.
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Transaction } from '../../../../src/platform/store/database.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { defineStatement } from '../../../../src/platform/store/statement.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';

const addUser = defineStatement('test-add-held', (db, { email }: { readonly email: string }) =>
  db.insertInto('users').values({ email }).returning('email').compile(),
);
const countUsers = defineStatement('test-count-held', (db, { prefix }: { readonly prefix: string }) =>
  sql<{ readonly n: string }>`select count(*) as n from users where email like ${prefix}`.compile(db),
);
const [A, B] = [{ email: 'a@example.test' }, { email: 'b@example.test' }];
const counted = (n: number) => [{ n: String(n) }];

let database: TestDatabase;
beforeEach(async () => void (database = await createTestDatabase()));
afterEach(() => database[Symbol.asyncDispose]());

it.each<[string, (trx: Transaction) => Promise<unknown>]>([
  ['named', (trx) => countUsers(trx, { prefix: '%' })],
  [
    'built for its run',
    async (trx) => (await sql<{ readonly n: string }>`select count(*) as n from users`.execute(trx)).rows,
  ],
])('in the order of the calls, before a statement that is %s', async (_, count) => {
  await database.store.write(async (trx) => {
    const held = trx.holdBack(() =>
      Promise.all([addUser(trx, A), addUser(trx, B), countUsers(trx, { prefix: 'a%' })]),
    );
    expect(await count(trx)).toEqual(counted(2));
    expect(await held).toEqual([[A], [B], counted(1)]);
  });
});

it('reject all from the one that fails, and nothing is committed', async () => {
  const written = database.store.write(async (trx) => {
    const held = trx.holdBack(() => Promise.allSettled([addUser(trx, A), addUser(trx, A)]));
    const [last] = await Promise.allSettled([addUser(trx, B)]);
    const [first, ...others] = [...(await held), last];
    expect(first).toEqual({ status: 'fulfilled', value: [A] });
    for (const other of others)
      expect(other).toMatchObject({ status: 'rejected', reason: { code: '23505' } });
  });
  await expect(written).rejects.toThrow('rolled back');
  expect(await countUsers(database.store.db, { prefix: '%' })).toEqual(counted(0));
});

it('are sent by themselves where nothing follows them or they come late, and not at all before a rollback', async () => {
  await database.store.write(async (trx) => {
    const adding = trx.holdBack(() => addUser(trx, A));
    trx.sendHeld();
    expect(await adding).toEqual([A]);
    const isLate = trx.holdBack(async () => {
      await Promise.resolve();
      return addUser(trx, B);
    });
    // What is called after a wait is sent as any other.
    expect(await isLate).toEqual([B]);
  });
  expect(await countUsers(database.store.db, { prefix: '%' })).toEqual(counted(2));
  let dropped: Promise<unknown> | undefined;
  const rolledBack = database.store.write(async (trx) => {
    dropped = trx.holdBack(() => addUser(trx, { email: 'c@example.test' }));
    dropped.catch(() => undefined);
    throw new Error('undone');
  });
  await expect(rolledBack).rejects.toThrow('undone');
  await expect(dropped).rejects.toThrow('rolled back before the statement was sent');
});
