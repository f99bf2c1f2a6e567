import { describe, expect, it } from 'vitest';
import { openDatabase } from '../../../../src/platform/store/database.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { withinTime } from '../../../../src/platform/traces/store/query-time.ts';
import { createTestDatabase } from '../../../support/platform-database.ts';

describe('a query of runs', () => {
  it('that the database ends after the time of its pool is an error with a cure', async () => {
    await using database = await createTestDatabase({ isMigrated: false });
    const { connection } = database;
    const limits = { acquireMs: 5_000, lockMs: 5_000, statementMs: 50 };
    const store = openDatabase({ connection, maxConnections: 1, limits, onError: () => undefined });
    try {
      const slow = withinTime(() => sql`select pg_sleep(10)`.execute(store.db));
      await expect(slow).rejects.toMatchObject({
        kind: 'timeout',
        message: expect.stringMatching(/longer than 10 s.*start_time/),
      });
      const other = withinTime(() => sql`select pg_sleep(10)`.execute(store.db), 'ask for less');
      await expect(other).rejects.toThrow('The query took longer than 10 s: ask for less');
      const wrong = withinTime(() => sql`select 1 / 0`.execute(store.db));
      await expect(wrong).rejects.toMatchObject({ code: '22012' });
    } finally {
      await store.close();
    }
  });
});
