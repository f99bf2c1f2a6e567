// Lists and statistics of projects read the partitions in which these have runs, and no others.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { selectProjects } from '../../../../src/platform/traces/projects/projects.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { postgresTraceStore as store } from '../../../../src/platform/traces/store/postgres-trace-store.ts';
import { findProjectWindow } from '../../../../src/platform/traces/store/project-spans.ts';
import { projectStatsOf } from '../../../../src/platform/traces/store/project-stats.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';
import { addWorkspace, mergeRuns, partOf } from './trace-scene.ts';

let database: TestDatabase;
let workspaceId: string;
const [project, other] = [randomUUID(), randomUUID()];
const runAt = (start_time: string, id = project) =>
  partOf({ project: { rank: 2, id }, start: { start_time } });
const merge = (...parts: readonly ReturnType<typeof partOf>[]) =>
  mergeRuns(database.store, workspaceId, parts);
const windowOf = (...ids: readonly string[]) => findProjectWindow(database.store.db, { workspaceId, ids });

beforeAll(async () => {
  database = await createTestDatabase();
  workspaceId = await addWorkspace(database.owner.db);
  await merge(
    runAt('2026-03-04T12:00:00.000001Z'),
    runAt('2026-03-05T12:00:00.000001Z'),
    runAt('2026-03-01T00:00:00.000000Z', other),
    runAt('2026-03-08T00:00:00.000000Z', other),
  );
});
afterAll(() => database[Symbol.asyncDispose]());

const partitionsIn = (plan: unknown): readonly string[] =>
  [...new Set(JSON.stringify(plan).match(/trace_runs_2\d{7}/g))].toSorted();

describe('the runs of a project', () => {
  it('are within its window, which grows with them', async () => {
    expect(await windowOf(project)).toEqual({
      from: '2026-03-04 12:00:00.000001+00',
      to: '2026-03-05 12:00:00.000002+00',
    });
    await merge(runAt('2026-03-04T13:00:00.000000Z'));
    expect(await windowOf(project)).toMatchObject({ from: '2026-03-04 12:00:00.000001+00' });
    expect(await windowOf(project, other)).toMatchObject({ from: '2026-03-01 00:00:00+00' });
    expect(await windowOf(randomUUID())).toBeUndefined();
  });

  it('are counted without reading a partition of other days', async () => {
    const { db } = database.store;
    const window = (await windowOf(project))!;
    const plan = await projectStatsOf(db, { workspaceId, ids: [project], window }).explain('json');
    expect(partitionsIn(plan)).toEqual(['trace_runs_20260304', 'trace_runs_20260305']);
    const stats = await store.readProjectStats(db, { workspaceId, ids: [project] });
    expect(stats.get(project)).toMatchObject({ last_run_start_time: '2026-03-05T12:00:00.000Z' });
  });

  it('have their latest start in a list of projects, which reads no run', async () => {
    const plan = await selectProjects(database.store.db, workspaceId).explain('json');
    expect(JSON.stringify(plan)).not.toContain('trace_runs');
  });

  it('that two requests merge at once take turns, also for several projects', async () => {
    const [one, two] = [randomUUID(), randomUUID()];
    const both = (hour: number) =>
      merge(
        runAt(`2026-03-06T0${hour}:00:00.000000Z`, one),
        runAt(`2026-03-06T0${9 - hour}:00:00.000000Z`, two),
      );
    await Promise.all([1, 2, 3, 4].map(both));
    for (const [id, from, to] of [
      [one, '01', '04'],
      [two, '05', '08'],
    ] as const)
      expect(await windowOf(id)).toEqual({
        from: `2026-03-06 ${from}:00:00+00`,
        to: `2026-03-06 ${to}:00:00.000001+00`,
      });
  });

  it('have a window no longer where all of them have expired', async () => {
    const limits = {
      keptDays: 30,
      nowMs: Date.parse('2026-04-05T12:00:00Z'),
      signal: new AbortController().signal,
    };
    expect((await store.expireRuns(database.store.db, limits)).dropped).toContain('2026-03-04');
    expect(await windowOf(project)).toBeUndefined();
    expect(await windowOf(other)).toEqual({
      from: '2026-03-06 00:00:00+00',
      to: '2026-03-08 00:00:00.000001+00',
    });
    const { rows } = await sql`select from trace_run_places where workspace_id = ${workspaceId}`.execute(
      database.owner.db,
    );
    expect(rows).toHaveLength(9);
  });
});
