import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { openDatabase } from '../../../../src/platform/store/database.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { startDeadline, withinTime } from '../../../../src/platform/traces/store/query-time.ts';
import { queryRuns } from '../../../../src/platform/traces/store/run-query.ts';
import type { RunQuery } from '../../../../src/platform/traces/trace-store.ts';
import { createTestDatabase } from '../../../support/platform-database.ts';

describe('a query of runs', () => {
  it('ends by its deadline, however many statements it consists of', async () => {
    await using database = await createTestDatabase();
    const { store, owner } = database;
    await sql`select trace_make_partition('2026-03-01'::date + n * 10) from generate_series(0, 1) n`.execute(
      owner.db,
    );
    const window = { from: '2026-03-01T00:00:00Z', to: '2026-03-12T00:00:00Z' };
    const query: RunQuery = { workspaceId: randomUUID(), order: 'desc', limit: 10, window };
    expect(await queryRuns(store.db, query)).toEqual([]);
    await owner.write(async (trx) => {
      // The first statement has the last seven days alone.
      await sql`lock table trace_runs_20260301 in access exclusive mode`.execute(trx);
      const startMs = performance.now();
      const late = queryRuns(store.db, { ...query, deadlineMs: startMs + 300 });
      await expect(late).rejects.toMatchObject({ kind: 'timeout' });
      expect(performance.now() - startMs).toBeLessThan(3_000);
    });
    await expect(queryRuns(store.db, { ...query, deadlineMs: 0 })).rejects.toThrow('longer than 10 s');
    // The connections have the limit of their pool again.
    const shown = await sql<{ statement_timeout: string }>`show statement_timeout`.execute(store.db);
    expect(shown.rows).toEqual([{ statement_timeout: '30s' }]);
  });

  it('that the database ends after the time of its pool is an error with a cure', async () => {
    await using database = await createTestDatabase({ isMigrated: false });
    const { connection } = database;
    const limits = { acquireMs: 5_000, lockMs: 5_000, statementMs: 50 };
    const store = openDatabase({ connection, maxConnections: 1, limits, onError: () => undefined });
    try {
      const slow = withinTime(store.db, startDeadline(), () => sql`select pg_sleep(10)`.execute(store.db));
      await expect(slow).rejects.toMatchObject({
        kind: 'timeout',
        message: expect.stringMatching(/longer than 10 s.*start_time/),
      });
      const other = withinTime(
        store.db,
        startDeadline(),
        () => sql`select pg_sleep(10)`.execute(store.db),
        'ask for less',
      );
      await expect(other).rejects.toThrow('The query took longer than 10 s: ask for less');
      const wrong = withinTime(store.db, startDeadline(), () => sql`select 1 / 0`.execute(store.db));
      await expect(wrong).rejects.toMatchObject({ code: '22012' });
    } finally {
      await store.close();
    }
  });
});
