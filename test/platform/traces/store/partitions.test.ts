import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLog } from '../../../../src/base/log.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { postgresTraceStore as store } from '../../../../src/platform/traces/store/postgres-trace-store.ts';
import { TraceMeters } from '../../../../src/platform/traces/trace-meters.ts';
import { createRetention } from '../../../../src/platform/traces/upkeep/retention.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';
import { createTestWiring } from '../../../support/test-wiring.ts';
import { addWorkspace, partOf, mergeRuns } from './trace-scene.ts';

let database: TestDatabase;
let workspaceId: string;
beforeAll(async () => {
  database = await createTestDatabase();
  workspaceId = await addWorkspace(database.owner.db);
});
afterAll(() => database[Symbol.asyncDispose]());

const DAY_MS = 24 * 3600 * 1000;
const nowMs = Date.now();
const dayAt = (days: number): string => new Date(nowMs + days * DAY_MS).toISOString().slice(0, 10);
const partitionOf = (days: number): string => `trace_runs_${dayAt(days).replaceAll('-', '')}`;
const { signal } = new AbortController();

const partitions = async (): Promise<readonly string[]> => {
  const { rows } = await sql<{ name: string }>`
    select inhrelid::regclass::text as name from pg_inherits
    where inhparent = 'trace_runs'::regclass order by 1`.execute(database.owner.db);
  return rows.map(({ name }) => name);
};
/** A run that started at the last moment of a day, with feedback and an attachment. */
const addRun = async (days: number): Promise<string> => {
  const start_time = `${dayAt(days)}T23:59:59.999999Z`;
  const part = partOf({ start: { start_time } });
  await mergeRuns(database.store, workspaceId, [part]);
  const run = { workspace_id: workspaceId, run_id: part.id };
  const feedback = { ...run, trace_id: null, session_id: null, key: 'good', score: 1, value: null };
  const { db } = database.owner;
  await db
    .insertInto('trace_feedback')
    .values({ ...feedback, comment: null, correction: null, feedback_source: null })
    .execute();
  await db
    .insertInto('trace_attachments')
    .values({ ...run, name: 'a', mime_type: 'text/plain', size: 1, object: randomUUID() })
    .execute();
  return part.id;
};
const restOf = async (id: string): Promise<readonly number[]> => {
  const { rows } = await sql<Record<string, string>>`select
    (select count(*) from trace_runs where id = ${id}) as runs,
    (select count(*) from trace_run_places where id = ${id}) as places,
    (select count(*) from trace_feedback where run_id = ${id}) as feedback,
    (select count(*) from trace_attachments where run_id = ${id}) as attachments`.execute(database.owner.db);
  return Object.values(rows[0] ?? {}).map(Number);
};
const expire = (given: Partial<Parameters<typeof store.expireRuns>[1]> = {}) =>
  store.expireRuns(database.store.db, { keptDays: 30, nowMs, signal, ...given });

describe('the partitions of runs', () => {
  it('are made for today and the next days', async () => {
    await store.prepareDays(database.store.db);
    await store.prepareDays(database.store.db);
    const made = await partitions();
    for (const days of [0, 1, 2, 3]) expect(made).toContain(partitionOf(days));
  });

  it('are dropped once all of a day is too old, with all that belongs to its runs', async () => {
    const [old, young] = [await addRun(-31), await addRun(-30)];
    expect(await expire()).toEqual({ dropped: [dayAt(-31)], left: [] });
    expect([await restOf(old), await restOf(young)]).toEqual([
      [0, 0, 0, 0],
      [1, 1, 1, 1],
    ]);
    expect(await partitions()).not.toContain(partitionOf(-31));
    expect(await expire()).toEqual({ dropped: [], left: [] });
  });

  it('are kept where the clock of this process is ahead of that of the database', async () => {
    const id = await addRun(-29);
    expect(await expire({ nowMs: nowMs + 1_000 * DAY_MS })).toEqual({ dropped: [], left: [] });
    expect(await restOf(id)).toEqual([1, 1, 1, 1]);
  });

  it('are kept where that clock is behind', async () => {
    const id = await addRun(-40);
    expect(await expire({ nowMs: nowMs - 20 * DAY_MS })).toEqual({ dropped: [], left: [] });
    expect(await restOf(id)).toEqual([1, 1, 1, 1]);
    expect((await expire()).dropped).toEqual([dayAt(-40)]);
  });

  it('that queries read are emptied at once and dropped by the next attempt, and keep nobody waiting for longer than a second', async () => {
    const [id, young] = [await addRun(-50), await addRun(-30)];
    await database.owner.write(async (trx) => {
      await sql`select from trace_runs`.execute(trx);
      const startMs = performance.now();
      const dropping = expire();
      const waits = await Promise.all(
        Array.from({ length: 3 }, async () => {
          await sql`select from trace_runs where id = ${young}`.execute(database.store.db);
          return performance.now() - startMs;
        }),
      );
      expect(Math.max(...waits)).toBeLessThan(1_000);
      expect(await dropping).toEqual({ dropped: [], left: [dayAt(-50)] });
      expect(await restOf(id)).toEqual([0, 0, 0, 0]);
      expect(await restOf(young)).toEqual([1, 1, 1, 1]);
    });
    expect((await expire()).dropped).toEqual([dayAt(-50)]);
  });

  it('are made before a transaction with runs, which keeps nobody from making others', async () => {
    const at = (days: number) => [partOf({ start: { start_time: `${dayAt(days)}T12:00:00.000000Z` } })];
    await store.prepareRuns(database.store.db, at(-10));
    await database.store.write(async (trx) => {
      await store.mergeRuns(trx, workspaceId, at(-10));
      await store.prepareRuns(database.store.db, at(-11));
    });
    expect(await partitions()).toEqual(expect.arrayContaining([partitionOf(-10), partitionOf(-11)]));
  });

  it('that are gone since a request was read have it tried again', async () => {
    const part = partOf({ start: { start_time: `${dayAt(-12)}T12:00:00.000000Z` } });
    const merging = database.store.write((trx) => store.mergeRuns(trx, workspaceId, [part]));
    await expect(merging).rejects.toMatchObject({ kind: 'unavailable', retryMs: 1_000 });
    expect(await restOf(part.id)).toEqual([0, 0, 0, 0]);
  });

  it('that one request needs are a hundred at most, and no lock of theirs keeps others for a second', {
    tags: ['long'],
    timeout: 60_000,
  }, async () => {
    const many = Array.from({ length: 120 }, (_, at) =>
      partOf({ start: { start_time: `${dayAt(-100 - at)}T12:00:00.000000Z` } }),
    );
    await store.prepareDays(database.store.db);
    const done = new AbortController();
    const waits: number[] = [];
    const bystander = async (days: () => number): Promise<void> => {
      while (!done.signal.aborted) {
        const startMs = performance.now();
        const part = partOf({ start: { start_time: `${dayAt(days())}T12:00:00.000000Z` } });
        await mergeRuns(database.store, workspaceId, [part]);
        waits.push(performance.now() - startMs);
      }
    };
    let next = -600;
    const others = [bystander(() => 0), bystander(() => (next -= 1))];
    let attempts = 1;
    for (; ; attempts += 1) {
      const error: unknown = await store
        .prepareRuns(database.store.db, many)
        .catch((reason: unknown) => reason);
      if (error === undefined) break;
      expect(error).toMatchObject({ kind: 'too_many', retryMs: 1_000 });
    }
    const slowestMs = Math.max(...waits);
    done.abort();
    await Promise.all(others);
    expect(attempts).toBe(2);
    expect(slowestMs).toBeLessThan(1_000);
  });

  it('leave feedback and attachments of runs that never came no longer', async () => {
    const { db } = database.owner;
    const [old, young] = [randomUUID(), randomUUID()];
    for (const [run_id, days] of [
      [old, -31],
      [young, -29],
    ] as const) {
      const row = { workspace_id: workspaceId, run_id, created_at: `${dayAt(days)}T00:00:00Z` };
      await sql`insert into trace_feedback (workspace_id, run_id, key, created_at)
        values (${row.workspace_id}, ${run_id}, 'k', ${row.created_at})`.execute(db);
      await sql`insert into trace_attachments (workspace_id, run_id, name, mime_type, size, object, created_at)
        values (${row.workspace_id}, ${run_id}, 'a', 't', 1, 'o', ${row.created_at})`.execute(db);
    }
    await expire();
    expect([await restOf(old), await restOf(young)]).toEqual([
      [0, 0, 0, 0],
      [0, 0, 1, 1],
    ]);
  });
});

describe('the job of the retention', () => {
  it('makes and drops partitions by the setting', async () => {
    const retention = createRetention(new TraceMeters());
    const lines: string[] = [];
    const run = () =>
      retention.job.run(
        {},
        {
          ...{ id: '1', store: database.store, signal, send: createTestWiring().send },
          log: createLog('info', { write: (line) => void lines.push(line) }),
        },
      );
    const id = await addRun(-501);
    await run();
    expect(await restOf(id)).toEqual([1, 1, 1, 1]);
    retention.keepDays(501);
    await run();
    expect(await restOf(id)).toEqual([1, 1, 1, 1]);
    retention.keepDays(500);
    await run();
    expect(await restOf(id)).toEqual([0, 0, 0, 0]);
    expect(lines.join('')).toContain(dayAt(-501));
  });
});
