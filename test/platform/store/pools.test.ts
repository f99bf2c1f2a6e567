// A full pool holds up nobody who uses another one, and every wait for a connection ends.
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openDatabase } from '../../../src/platform/store/database.ts';
import { openPools, type Pools } from '../../../src/platform/store/pools.ts';
import { sql } from '../../../src/platform/store/sql.ts';
import { createTestDatabase } from '../../support/platform-database.ts';
import { createScratch } from '../../support/scratch.ts';

const USED = ['authentication', 'reads', 'writes', 'long'] as const;

describe('pools', () => {
  it.each(USED)('work while every connection of %s is taken', async (full) => {
    await using database = await createTestDatabase();
    const pools = openPools({
      connection: database.connection,
      maxConnections: 6,
      onError: () => undefined,
    });
    const taken = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    const holding = pools[full].db.connection().execute(async () => {
      taken.resolve();
      await released.promise;
    });
    await taken.promise;
    const late = ask(pools, full);
    for (const other of USED) if (other !== full) expect(await ask(pools, other)).toBe(1);
    expect(pools.connections()[full]).toEqual({ size: 1, idle: 0, waiting: 1 });
    released.resolve();
    expect(await late).toBe(1);
    await holding;
    await pools.close();
  });

  it('have limits of their own for statements and locks', async () => {
    await using database = await createTestDatabase();
    const pools = openPools({
      connection: database.connection,
      maxConnections: 6,
      onError: () => undefined,
    });
    const limitsOf = async (purpose: (typeof USED)[number]): Promise<readonly unknown[]> => {
      const { rows } = await sql<{ setting: string }>`
        select setting from pg_settings where name in ('statement_timeout', 'lock_timeout') order by name`.execute(
        pools[purpose].db,
      );
      return rows.map(({ setting }) => Number(setting));
    };
    expect(await Promise.all(USED.map(limitsOf))).toEqual([
      [1_000, 3_000],
      [5_000, 10_000],
      [10_000, 30_000],
      [10_000, 600_000],
    ]);
    await pools.close();
  });

  it('share one connection between writes and work in the background where there are five', async () => {
    await using database = await createTestDatabase();
    const { connection } = database;
    const pools = openPools({ connection, maxConnections: 5, onError: () => undefined });
    expect(pools.long).toBe(pools.writes);
    expect(await ask(pools, 'long')).toBe(1);
    await pools.close();
  });
});

async function ask(pools: Pools, purpose: (typeof USED)[number]): Promise<number | undefined> {
  const { rows } = await sql<{ one: number }>`select 1 as one`.execute(pools[purpose].db);
  return rows[0]?.one;
}

describe('a connection that does not come in time is `unavailable`', () => {
  const limits = { acquireMs: 50, lockMs: 1000, statementMs: 1000 };
  const unavailable = { name: 'DomainError', kind: 'unavailable', retryMs: 1000 };

  it('where the server accepts and never responds, for a new one and for one that is waited for', async () => {
    await using scratch = await createScratch();
    const silent = createServer((socket) => socket.on('error', () => undefined).resume());
    await new Promise<void>((resolve) => silent.listen(join(scratch.path, '.s.PGSQL.5432'), resolve));
    const connection = { host: scratch.path, user: 'a', password: 'a', database: 'a' };
    const store = openDatabase({ connection, maxConnections: 1, limits, onError: () => undefined });
    await Promise.all(
      [1, 2, 3].map(() => expect(sql`select 1`.execute(store.db)).rejects.toMatchObject(unavailable)),
    );
    await store.close();
    await new Promise((resolve) => silent.close(resolve));
  });
});
