// What a transaction sends together: BEGIN with its first statement, COMMIT with its last, and neither where it has no statement.
// An error anywhere in a group leaves nothing committed and the connection usable.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openDatabase, type Store } from '../../../../src/platform/store/database.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { defineStatement } from '../../../../src/platform/store/statement.ts';
import { StatementGroups } from '../../../../src/platform/store/pool/statement-group.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';

const addUser = defineStatement('test-add-user', (db, { email }: { readonly email: string }) =>
  db.insertInto('users').values({ email }).compile(),
);
const addUserLast = defineStatement(
  'test-add-user-last',
  (db, { email }: { readonly email: string }) =>
    db.insertInto('users').values({ email }).returning('id').compile(),
  { isSentWithCommit: true },
);

describe('the groups', () => {
  const sent: string[] = [];
  let groups: StatementGroups;
  beforeEach(() => {
    sent.length = 0;
    groups = new StatementGroups((statements, { hasBegin, hasCommit }) => {
      const texts = statements.map(({ config }) => config.text);
      sent.push([...(hasBegin ? ['begin'] : []), ...texts, ...(hasCommit ? ['commit'] : [])].join(' + '));
      for (const { config, done } of statements) done(undefined, { command: config.text, rows: [] });
    });
  });
  const send = (text: string, isSentWithCommit = false) => groups.send({ text }, isSentWithCommit);

  it.each<readonly [readonly string[], readonly string[]]>([
    [
      ['a', 'b'],
      ['a', 'b'],
    ],
    [
      ['begin', 'a', 'b', 'commit'],
      ['begin + a', 'b', 'commit'],
    ],
    [
      ['begin', 'a', 'last', 'commit'],
      ['begin + a', 'last + commit'],
    ],
    [['begin', 'last', 'commit'], ['begin + last + commit']],
    [
      ['begin', 'a', 'last', 'rollback'],
      ['begin + a', 'rollback'],
    ],
    [['begin', 'last', 'rollback'], []],
    [['begin', 'commit', 'begin', 'rollback'], []],
    [['last'], ['last']],
    [
      ['begin', 'last', 'commit', 'a'],
      ['begin + last + commit', 'a'],
    ],
  ])('%j are sent as %j', async (texts, expected) => {
    for (const text of texts) await send(text, text === 'last');
    expect(sent).toEqual(expected);
  });

  it.each<readonly [readonly string[], readonly string[]]>([
    [
      ['begin', 'held', 'held', 'a', 'b', 'commit'],
      ['begin + held + held + a', 'b', 'commit'],
    ],
    [
      ['begin', 'a', 'held', 'last', 'commit'],
      ['begin + a', 'held + last + commit'],
    ],
    [['begin', 'held', 'commit'], ['begin + held + commit']],
    [['begin', 'held', 'rollback'], []],
    [
      ['begin', 'held', 'now', 'held', 'commit'],
      ['begin + held', 'held + commit'],
    ],
    [['held'], ['held']],
  ])('with statements that are held, %j are sent as %j', async (texts, expected) => {
    const held: Promise<PromiseSettledResult<unknown>[]>[] = [];
    for (const text of texts) {
      if (text === 'held') held.push(Promise.allSettled([groups.hold({ text })]));
      else if (text === 'now') groups.sendHeld();
      else await send(text, text === 'last');
    }
    expect(sent).toEqual(expected);
    const status = texts.includes('rollback') ? 'rejected' : 'fulfilled';
    for (const [one] of await Promise.all(held)) expect(one?.status).toBe(status);
  });

  it('have no statement after the one that is sent with the commit', async () => {
    await send('begin');
    await send('last', true);
    await expect(send('a')).rejects.toThrow('a statement follows the last one of its transaction');
    await send('rollback');
    expect(sent).toEqual([]);
  });
});

describe('a transaction of groups', () => {
  let database: TestDatabase;
  let store: Store;
  beforeEach(async () => {
    database = await createTestDatabase();
    const { connection } = database;
    store = openDatabase({ connection, maxConnections: 1, onError: () => undefined });
  });
  afterEach(async () => {
    await store.close();
    await database[Symbol.asyncDispose]();
  });
  const emails = async (): Promise<readonly string[]> => {
    const rows = await store.db.selectFrom('users').select('email').orderBy('email').execute();
    return rows.map(({ email }) => email);
  };

  it('is committed as a whole, with results as if each statement was sent alone', async () => {
    const counted = await store.write(async (trx) => {
      const { rows } = await sql<{ readonly n: number }>`select 1 as n`.execute(trx);
      await addUser(trx, { email: 'a@example.test' });
      await addUserLast(trx, { email: 'b@example.test' });
      return rows;
    });
    expect(counted).toEqual([{ n: 1 }]);
    expect(await emails()).toEqual(['a@example.test', 'b@example.test']);
  });

  it('begins with its first statement', async () => {
    const inTransaction = store.write(async (trx) => {
      await addUser(trx, { email: 'a@example.test' });
      throw new Error('rolled back');
    });
    await expect(inTransaction).rejects.toThrow('rolled back');
    expect(await emails()).toEqual([]);
  });

  it('is rolled back where its first or its last statement fails', async () => {
    await addUser(store.db, { email: 'a@example.test' });
    const first = store.write((trx) => addUser(trx, { email: 'a@example.test' }));
    await expect(first).rejects.toMatchObject({ code: '23505' });
    const last = store.write(async (trx) => {
      await addUser(trx, { email: 'b@example.test' });
      await addUserLast(trx, { email: 'a@example.test' });
    });
    await expect(last).rejects.toMatchObject({ code: '23505' });
    expect(await emails()).toEqual(['a@example.test']);
    await store.write((trx) => addUserLast(trx, { email: 'c@example.test' }));
    expect(await emails()).toEqual(['a@example.test', 'c@example.test']);
  });

  it('prepares its first statement again when that could not be prepared', async () => {
    const readLate = defineStatement('test-read-late', (db, { n }: { readonly n: number }) =>
      sql<{ readonly n: number }>`select n from late where n = ${n}`.compile(db),
    );
    const read = (): Promise<unknown> => store.write((trx) => readLate(trx, { n: 1 }));
    await expect(read()).rejects.toMatchObject({ code: '42P01' });
    const { db } = database.owner;
    await sql`create table late (n int)`.execute(db);
    await sql`grant select on late to public`.execute(db);
    expect(await read()).toEqual([]);
    // And not a third time: the server would refuse the name.
    expect(await read()).toEqual([]);
  });

  it('holds its locks until the commit', async () => {
    await addUser(store.db, { email: 'a@example.test' });
    const { owner } = database;
    await store.write(async (trx) => {
      await trx.selectFrom('users').select('id').forUpdate().execute();
      const other = owner.db.selectFrom('users').select('id').forUpdate().skipLocked().execute();
      expect(await other).toEqual([]);
      await addUserLast(trx, { email: 'b@example.test' });
    });
    expect(await owner.db.selectFrom('users').select('id').forUpdate().skipLocked().execute()).toHaveLength(
      2,
    );
  });
});
