// Many rows at once: every value arrives as it was, memory is bounded, and what is cut short leaves no row.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { sql } from '../../../../src/platform/store/sql.ts';
import { copyRows, type CopyValue } from '../../../../src/platform/store/postgres/copy.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';

let database: TestDatabase;
let workspace: string;
beforeAll(async () => {
  database = await createTestDatabase();
  const { db } = database.owner;
  const [organization] = await db
    .insertInto('organizations')
    .values({ display_name: 'one', plan: 'enterprise', config: '{}' })
    .returning('id')
    .execute();
  const row = { organization_id: organization!.id, display_name: 'one', tenant_handle: null };
  const [created] = await db.insertInto('workspaces').values(row).returning('id').execute();
  workspace = created!.id;
});
afterAll(() => database[Symbol.asyncDispose]());
beforeEach(() => database.owner.db.deleteFrom('sandbox_records').execute());

const columns = ['workspace_id', 'sandbox', 'source', 'number', 'time', 'record'] as const;
const source = randomUUID();
const time = new Date('2026-11-23T01:02:03.004Z');
const rowOf = (number: number | bigint, sandbox = 'box', record: unknown = {}): readonly CopyValue[] => [
  workspace,
  sandbox,
  source,
  number,
  time,
  { json: record },
];
const count = async (): Promise<number> =>
  (await database.owner.db.selectFrom('sandbox_records').select('number').execute()).length;

const copy = (
  rows: Iterable<readonly CopyValue[]> | AsyncIterable<readonly CopyValue[]>,
  signal?: AbortSignal,
): Promise<number> =>
  database.store.write((trx) =>
    copyRows(trx, { table: 'sandbox_records', columns, rows, ...(signal && { signal }) }),
  );

it('stores every value as it was', async () => {
  const texts = ['a\tb', 'a\nb\r\nc', '\\N', '\\', '\\.', '"', 'ä€🎉', '', 'NULL'];
  const rows = texts.map((text, at) => rowOf(at, text, { text, list: [1, null, text] }));
  expect(await copy(rows)).toBe(texts.length);
  const stored = await database.owner.db
    .selectFrom('sandbox_records')
    .selectAll()
    .orderBy('number')
    .execute();
  expect(stored.map(({ sandbox, record }) => [sandbox, record])).toEqual(
    texts.map((text) => [text, { text, list: [1, null, text] }]),
  );
  expect(stored[0]).toMatchObject({ workspace_id: workspace, source, time });
});

it('stores null and bytes', async () => {
  const hash = Buffer.from([0, 1, 92, 255]);
  const table = 'sandbox_tokens';
  const tokens = ['workspace_id', 'sandbox', 'short_token', 'hash', 'expires_at'] as const;
  await database.owner.write((trx) =>
    copyRows(trx, { table, columns: tokens, rows: [[workspace, 'box', 'short', hash, null]] }),
  );
  const [stored] = await database.owner.db.selectFrom(table).selectAll().execute();
  expect([stored?.hash, stored?.expires_at]).toEqual([hash, null]);
});

it('takes rows no faster than the database stores them', async () => {
  const filler = 'x'.repeat(10_000);
  let made = 0;
  const firstPause = Promise.withResolvers<number>();
  const pending = { turns: 0 };
  async function* rows(): AsyncGenerator<readonly CopyValue[]> {
    for (; made < 2_000; made += 1) {
      const turn = (pending.turns += 1);
      // Whoever is not asked for a row in the same turn of the event loop was made to wait.
      setImmediate(() => pending.turns === turn && firstPause.resolve(made));
      yield rowOf(made, 'box', { filler });
    }
  }
  expect(await copy(rows())).toBe(2_000);
  expect(await firstPause.promise).toBeLessThan(500);
  expect(await count()).toBe(2_000);
});

it('an error of the rows leaves none, and its text does not reach the database', async () => {
  async function* rows(): AsyncGenerator<readonly CopyValue[]> {
    for (let at = 0; at < 20_000; at += 1) yield rowOf(at);
    throw new TypeError('hush');
  }
  await expect(copy(rows())).rejects.toThrow(new TypeError('hush'));
  expect(await count()).toBe(0);
  expect(await copy([rowOf(1)])).toBe(1);
});

it('an error of the database leaves none, and is that error', async () => {
  function* rows(): Generator<readonly CopyValue[]> {
    for (let at = 0; at < 20_000; at += 1) yield rowOf(at === 19_000 ? 1 : at);
  }
  await expect(copy(rows())).rejects.toMatchObject({ code: '23505' });
  expect(await count()).toBe(0);
});

it('an abort leaves none, and the connection works', async () => {
  const controller = new AbortController();
  const reason = new Error('the client has left');
  async function* rows(): AsyncGenerator<readonly CopyValue[]> {
    for (let at = 0; at < 20_000; at += 1) {
      if (at === 10_000) controller.abort(reason);
      yield rowOf(at);
    }
  }
  await expect(copy(rows(), controller.signal)).rejects.toBe(reason);
  expect(await count()).toBe(0);
  expect(await copy([rowOf(1)])).toBe(1);
});

it('what follows in the transaction fails with it', async () => {
  const written = database.store.write(async (trx) => {
    await copyRows(trx, { table: 'sandbox_records', columns, rows: [rowOf(1)] });
    throw new Error('rolled back');
  });
  await expect(written).rejects.toThrow('rolled back');
  expect(await count()).toBe(0);
});

it('stores bytes that come in pieces, and tables of the connection alone', async () => {
  // Of sizes that the connection takes at once, and of such that it does not.
  const parts = Array.from({ length: 60 }, (_, at) =>
    Buffer.alloc([4_000, 1, 70_000, 150_000][at % 4] ?? 0, at),
  );
  const pieces = async function* () {
    yield* parts;
  };
  const whole = Buffer.concat(parts);
  const tokens = ['workspace_id', 'sandbox', 'short_token', 'hash', 'expires_at'] as const;
  const stored = await database.store.write(async (trx) => {
    await sql`create temporary table sandbox_tokens (like public.sandbox_tokens including defaults) on commit drop`.execute(
      trx,
    );
    const rows = [[workspace, 'box', 'short', { bytes: pieces() }, null]];
    await copyRows(trx, { table: 'sandbox_tokens', isTemporary: true, columns: tokens, rows });
    const found = await sql<{ hash: Buffer }>`select hash from pg_temp.sandbox_tokens`.execute(trx);
    return found.rows;
  });
  expect(stored).toEqual([{ hash: whole }]);
});
