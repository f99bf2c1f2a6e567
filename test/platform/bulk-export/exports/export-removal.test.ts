// The exports of a deleted workspace: cancelled with it, and removed afterwards in steps.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createLog } from '../../../../src/base/log.ts';
import { removeExports } from '../../../../src/platform/bulk-export/exports/export-removal.ts';
import { claimRun } from '../../../../src/platform/bulk-export/scheduling/run-claims.ts';
import { renewLease } from '../../../../src/platform/bulk-export/scheduling/run-lease.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { createTestWiring } from '../../../support/test-wiring.ts';
import { createExportScene, EXPORTS, type ExportScene, exportOf } from '../export-scene.ts';

let scene: ExportScene;

beforeAll(async () => {
  scene = await createExportScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

const count = async (table: 'exports' | 'export_runs', workspaceId: string): Promise<number> => {
  const rows = scene.api.database.owner.db.selectFrom(table).select('id');
  return (await rows.where('workspace_id', '=', workspaceId).execute()).length;
};
const remove = (signal = new AbortController().signal) => {
  const log = createLog('silent', { write: () => undefined });
  const { send } = createTestWiring();
  return removeExports.run({}, { id: '1', store: scene.api.database.store, log, signal, send });
};

it('are many more than one statement removes, and nothing of others goes with them', async () => {
  const { api, clock } = scene;
  const { db } = api.database.owner;
  const tenant = await scene.addTenant();
  const { organization_id: organization } = await db
    .selectFrom('workspaces')
    .select('organization_id')
    .where('id', '=', tenant.workspaceId)
    .executeTakeFirstOrThrow();
  await api.addWorkspace(organization);
  const admin = await api.addServiceKey(organization, 'ORGANIZATION_ADMIN');
  const start = new Date().toISOString();
  const schedule = exportOf(tenant, 1, { start_time: start, end_time: null, interval_hours: 1 });
  const { body: made } = await scene.ask('POST', EXPORTS, schedule, tenant);
  const id = await scene.addExport(1, {}, tenant);
  const run = await claimRun(api.database.store, { clock, limits: { maxExports: 15, maxRuns: 45 } });
  await sql`
    insert into exports (id, workspace_id, destination_id, session_id, source_id, status, start_time, end_time, format_version,
      compression, created_at, updated_at)
    select gen_random_uuid(), workspace_id, destination_id, session_id, ${made.id}, 'CREATED', n::text, end_time, format_version,
      compression, created_at, updated_at
    from exports, generate_series(1, 30) n where id = ${id}`.execute(db);
  await sql`
    insert into export_runs (id, workspace_id, export_id, destination_id, status, window_start, window_end, due_at, created_at, updated_at)
    select gen_random_uuid(), workspace_id, id, destination_id, 'CREATED', n::text, n::text, created_at, created_at, updated_at
    from exports, generate_series(1, 80) n where source_id = ${made.id}`.execute(db);
  const kept = await scene.addExport(2);

  const gone = await api.ask('DELETE', `/api/v1/workspaces/${tenant.workspaceId}`, { key: admin });
  expect(gone.status).toBe(200);
  expect(await count('export_runs', tenant.workspaceId)).toBe(2_401);
  // Its worker learns of it, and no other one begins any of them.
  expect(run && (await renewLease(api.database.store.db, run, clock))).toBe(false);
  const next = await claimRun(api.database.store, { clock, limits: { maxExports: 15, maxRuns: 45 } });
  expect(next?.exportId).toBe(kept);

  // An attempt that has to end at once is followed by another one.
  await remove(AbortSignal.abort());
  expect(await count('exports', tenant.workspaceId)).toBe(32);
  await remove();
  expect([
    await count('exports', tenant.workspaceId),
    await count('export_runs', tenant.workspaceId),
  ]).toEqual([0, 0]);
  expect(await db.selectFrom('export_removals').selectAll().execute()).toEqual([]);
  expect([await count('exports', scene.workspaceId), await count('export_runs', scene.workspaceId)]).toEqual([
    1, 2,
  ]);
});

it('need no removal where there were none', async () => {
  const { db } = scene.api.database.owner;
  const { workspaceId } = await scene.addTenant();
  await db.deleteFrom('workspaces').where('id', '=', workspaceId).execute();
  expect(await db.selectFrom('export_removals').selectAll().execute()).toEqual([]);
});
