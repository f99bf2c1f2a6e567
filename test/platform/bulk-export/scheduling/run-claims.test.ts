// Runs are taken one by one, and the limits of exports and runs hold however many workers take them at once.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ExportTenant } from '../export-scene.ts';
import { createExportScene, type ExportScene } from '../export-scene.ts';
import { claimRun, type ClaimedRun } from '../../../../src/platform/bulk-export/scheduling/run-claims.ts';
import { hasWaitingWorkspace } from '../../../../src/platform/bulk-export/scheduling/waiting-workspaces.ts';
import { lockExportsOf } from '../../../../src/platform/bulk-export/scheduling/workspace-turn.ts';
import { endAttempt } from '../../../../src/platform/bulk-export/scheduling/run-ending.ts';
import type { AttemptEnd } from '../../../../src/platform/bulk-export/exports/export-states.ts';
import { sql } from '../../../../src/platform/store/sql.ts';

let scene: ExportScene;

beforeAll(async () => {
  scene = await createExportScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

const RULES = { maxRetries: 20, retryDelayMs: 30_000 };
const limitsOf = (maxExports: number, maxRuns: number) => ({ maxExports, maxRuns });

const claim = (limits: ReturnType<typeof limitsOf>): Promise<ClaimedRun | undefined> =>
  claimRun(scene.api.database.store, { clock: scene.clock, limits });

async function claimAll(limits: ReturnType<typeof limitsOf>): Promise<readonly ClaimedRun[]> {
  const all: ClaimedRun[] = [];
  for (let one = await claim(limits); one !== undefined; one = await claim(limits)) all.push(one);
  return all;
}

const complete = (claimed: ClaimedRun) =>
  scene.api.database.store.write(async (trx) =>
    endAttempt(trx, { ...claimed, now: await scene.clock(trx), rules: RULES }, { is: 'completed' }),
  );

/** Nothing of the tests before is in the way. */
async function addTenantAlone(): Promise<ExportTenant> {
  const { db } = scene.api.database.owner;
  await sql`delete from exports`.execute(db);
  return scene.addTenant();
}

describe('a run is taken', () => {
  it('with what it exports, from the earliest day on', async () => {
    const tenant = await addTenantAlone();
    const more = { filter: 'eq(name, "a")', compression: 'zstandard', format_version: 'v2_beta' };
    const id = await scene.addExport(2, more, tenant);
    const claimed = await claim(limitsOf(15, 45));
    expect(claimed).toMatchObject({
      ...{ workspaceId: tenant.workspaceId, exportId: id, projectId: tenant.projectId },
      window: { from: '2026-01-01T00:00:00.000000Z', to: '2026-01-02T00:00:00.000000Z' },
      ...{ filter: 'eq(name, "a")', fields: null, compression: 'zstandard', formatVersion: 'v2_beta' },
      ...{ retryNumber: 0, destinationId: tenant.destinationId, credentialsVersion: 1 },
    });
    expect(await scene.statusOf(id)).toBe('RUNNING');
    expect((await scene.runsOf(id)).map(({ status }) => status)).toEqual(['RUNNING', 'CREATED']);
  });

  it('only while an export has fewer than its limit, and again when one ends', async () => {
    const tenant = await addTenantAlone();
    const id = await scene.addExport(5, {}, tenant);
    const claimed = await claimAll(limitsOf(15, 2));
    expect(claimed.map(({ window }) => window.from.slice(0, 10))).toEqual(['2026-01-01', '2026-01-02']);
    expect((await complete(claimed[0] as ClaimedRun))?.status).toBe('COMPLETED');
    expect((await claimAll(limitsOf(15, 2))).map(({ window }) => window.from.slice(8, 10))).toEqual(['03']);
    expect(await scene.statusOf(id)).toBe('RUNNING');
  });

  it('only of as many exports as a workspace may run; the oldest first', async () => {
    const tenant = await addTenantAlone();
    const ids: string[] = [];
    for (let n = 0; n < 3; n += 1) ids.push(await scene.addExport(2, {}, tenant));
    const claimed = await claimAll(limitsOf(2, 45));
    expect(new Set(claimed.map(({ exportId }) => exportId))).toEqual(new Set(ids.slice(0, 2)));
    expect(claimed).toHaveLength(4);
    expect(await scene.statusOf(ids[2] ?? '')).toBe('CREATED');
    for (const one of claimed.filter(({ exportId }) => exportId === ids[0])) await complete(one);
    expect((await claimAll(limitsOf(2, 45))).map(({ exportId }) => exportId)).toEqual([ids[2], ids[2]]);
  });

  it('of the export and the workspace with the fewest at work', async () => {
    const tenant = await addTenantAlone();
    const other = await scene.addTenant();
    const first = await scene.addExport(3, {}, tenant);
    const second = await scene.addExport(3, {}, tenant);
    const third = await scene.addExport(3, {}, other);
    const order = [];
    for (let n = 0; n < 6; n += 1) order.push((await claim(limitsOf(15, 45)))?.exportId);
    expect(order).toEqual([first, third, second, third, first, third].map((id) => expect.stringMatching(id)));
  });
});

it('a run is taken at once of another workspace while somebody has the lock of the first one', async () => {
  const tenant = await addTenantAlone();
  const other = await scene.addTenant();
  await scene.addExport(1, {}, tenant);
  const second = await scene.addExport(1, {}, other);
  const { store } = scene.api.database;
  await store.write(async (trx) => {
    await lockExportsOf(trx, tenant.workspaceId);
    expect((await claim(limitsOf(15, 45)))?.exportId).toBe(second);
    expect(await claim(limitsOf(15, 45))).toBeUndefined();
  });
  expect((await claim(limitsOf(15, 45)))?.workspaceId).toBe(tenant.workspaceId);
});

it('a workspace waits that has a run which may begin, and none at work', async () => {
  const tenant = await addTenantAlone();
  const isWaiting = (maxRuns = 45) =>
    hasWaitingWorkspace(scene.api.database.store, { clock: scene.clock, limits: limitsOf(15, maxRuns) });
  await scene.addExport(2, {}, tenant);
  expect(await isWaiting()).toBe(true);
  await claim(limitsOf(15, 45));
  expect([await isWaiting(), await isWaiting(1)]).toEqual([false, false]);
  await scene.addExport(1, {}, await scene.addTenant());
  expect(await isWaiting(1)).toBe(true);
});

it('a worker with one place takes runs of each workspace in turn, also of one whose exports have just failed', async () => {
  const tenant = await addTenantAlone();
  const other = await scene.addTenant();
  const [many, few] = [await scene.addExport(4, {}, tenant), await scene.addExport(2, {}, other)];
  const failing = [await scene.addExport(1, {}, tenant), await scene.addExport(1, {}, tenant)];
  const next = async (end: AttemptEnd = { is: 'completed' }) => {
    const claimed = await claim(limitsOf(15, 45));
    if (claimed === undefined) throw new Error('no run may begin');
    await scene.api.database.store.write(async (trx) =>
      endAttempt(trx, { ...claimed, now: await scene.clock(trx), rules: RULES }, end),
    );
    return claimed.exportId;
  };
  expect([await next(), await next(), await next(), await next()]).toEqual([many, few, many, few]);
  const failed = { is: 'failed', isRetryable: false, message: 'Access denied' } as const;
  const third = await scene.addExport(1, {}, other);
  // The export of the first run is over then.
  expect([await next(failed), await next()]).toEqual([many, third]);
  expect([await next(), await next()]).toEqual(failing);
});

it('a run is taken at once while thousands of runs have just been created', {
  tags: ['long'],
  timeout: 120_000,
}, async () => {
  const tenant = await addTenantAlone();
  const id = await scene.addExport(1, {}, tenant);
  const { db } = scene.api.database.owner;
  // What the database knows of its tables is from before.
  await sql`
    insert into exports (id, workspace_id, destination_id, session_id, status, start_time, end_time, format_version, compression,
      created_at, updated_at)
    select gen_random_uuid(), workspace_id, destination_id, session_id, status, start_time, end_time, format_version, compression,
      created_at, updated_at
    from exports, generate_series(1, 2000) where id = ${id}`.execute(db);
  for (let from = 1; from <= 100; from += 10)
    await sql`
    insert into export_runs (id, workspace_id, export_id, destination_id, status, window_start, window_end, due_at, created_at, updated_at)
    select gen_random_uuid(), workspace_id, id, destination_id, 'CREATED', n::text, n::text, created_at, created_at, updated_at
    from exports, generate_series(${from}::int, ${from + 9}::int) n`.execute(db);
  const other = await scene.addTenant();
  const second = await scene.addExport(1, {}, other);
  const beganMs = performance.now();
  const taken = [await claim(limitsOf(15, 45)), await claim(limitsOf(15, 45))];
  expect(taken.map((one) => one?.workspaceId)).toEqual([tenant.workspaceId, other.workspaceId]);
  expect(taken[1]?.exportId).toBe(second);
  expect(performance.now() - beganMs).toBeLessThan(3_000);
});

it('eight workers at once pass neither limit', { timeout: 60_000 }, async () => {
  const tenant = await addTenantAlone();
  const exports: string[] = [];
  for (let n = 0; n < 6; n += 1) exports.push(await scene.addExport(6, {}, tenant));
  const limits = limitsOf(3, 5);
  const over = new AbortController();
  const peaks = { exports: 0, runs: 0 };
  const sample = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const { rows } = await sql<{ runs: number }>`
        select count(*)::int as runs from export_runs where status = 'RUNNING' group by export_id`.execute(
        scene.api.database.owner.db,
      );
      peaks.exports = Math.max(peaks.exports, rows.length);
      peaks.runs = Math.max(peaks.runs, ...rows.map(({ runs }) => runs));
    }
  };
  const statuses = () => Promise.all(exports.map((id) => scene.statusOf(id)));
  const work = async (): Promise<void> => {
    while (!(await statuses()).every((status) => status === 'COMPLETED')) {
      const held = [];
      for (let n = 0; n < 3; n += 1) held.push(await claim(limits));
      for (const one of held) if (one !== undefined) await complete(one);
    }
  };
  const sampling = sample();
  await Promise.all(Array.from({ length: 8 }, work));
  over.abort();
  await sampling;
  expect(peaks.exports).toBeLessThanOrEqual(3);
  expect(peaks.exports).toBeGreaterThan(1);
  expect(peaks.runs).toBeLessThanOrEqual(5);
  expect(peaks.runs).toBeGreaterThan(2);
});
