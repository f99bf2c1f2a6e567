// What happens by time alone: leases of dead workers, attempts that do not end, exports that take too long, and schedules.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { DomainError } from '../../../../src/base/domain-error.ts';
import { createLog } from '../../../../src/base/log.ts';
import { Secret } from '../../../../src/base/secret.ts';
import { replaceCredentials } from '../../../../src/platform/bulk-export/destinations/destinations.ts';
import { keepExports } from '../../../../src/platform/bulk-export/scheduling/export-upkeep.ts';
import { addMs } from '../../../../src/platform/bulk-export/scheduling/clock.ts';
import { claimRun, type ClaimedRun } from '../../../../src/platform/bulk-export/scheduling/run-claims.ts';
import { createCheckpoints, renewLease } from '../../../../src/platform/bulk-export/scheduling/run-lease.ts';
import { openDatabase, standardLimits } from '../../../../src/platform/store/database.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import {
  createExportScene,
  EXPORTS,
  type ExportScene,
  type ExportTenant,
  exportOf,
} from '../export-scene.ts';

const HOUR_MS = 3_600_000;
const RULES = {
  maxRetries: 20,
  retryDelayMs: 30_000,
  runTimeoutMs: 4 * HOUR_MS,
  exportTimeoutMs: 72 * HOUR_MS,
};

let scene: ExportScene;

beforeAll(async () => {
  scene = await createExportScene();
});
afterAll(() => scene[Symbol.asyncDispose]());
beforeEach(async () => {
  await sql`delete from exports`.execute(scene.api.database.owner.db);
});

const logged: string[] = [];
const log = createLog('info', { write: (line) => void logged.push(line) });
const keep = (rules = RULES) =>
  keepExports({ store: scene.api.database.store, clock: scene.clock, rules, log });
const claimed = async (): Promise<ClaimedRun> => {
  const limits = { maxExports: 15, maxRuns: 45 };
  const found = await claimRun(scene.api.database.store, { clock: scene.clock, limits });
  if (found === undefined) throw new Error('no run may begin');
  return found;
};

describe('an attempt', () => {
  it('whose worker has renewed nothing for 20 seconds is requeued, and no retry is used', async () => {
    const id = await scene.addExport(1);
    const run = await claimed();
    scene.pass(15_000);
    expect(await renewLease(scene.api.database.store.db, run, scene.clock)).toBe(true);
    scene.pass(15_000);
    expect((await keep()).interrupted).toBe(0);
    scene.pass(6_000);
    expect((await keep()).interrupted).toBe(1);
    expect(await scene.runsOf(id)).toMatchObject([{ status: 'CREATED', retry_number: 0, errors: null }]);
    expect((await claimed()).runId).toBe(run.runId);
  });

  it('whose process is known to have ended is requeued at once, and no other one', async () => {
    const id = await scene.addExport(2);
    const limits = { maxExports: 15, maxRuns: 45 };
    const { store } = scene.api.database;
    for (const worker of ['dead', 'other'])
      expect(await claimRun(store, { clock: scene.clock, limits, worker })).toBeDefined();
    const isDead = (worker: string): boolean => worker === 'dead';
    const keepHere = () => keepExports({ store, clock: scene.clock, rules: RULES, log, isDead });
    expect([(await keepHere()).interrupted, (await keepHere()).interrupted]).toEqual([1, 0]);
    expect((await scene.runsOf(id)).map(({ status }) => status)).toEqual(['CREATED', 'RUNNING']);
  });

  it('that its worker does not end in time is a retry', async () => {
    const id = await scene.addExport(1);
    const run = await claimed();
    scene.pass(4 * HOUR_MS + 61_000);
    await renewLease(scene.api.database.store.db, run, scene.clock);
    expect((await keep()).interrupted).toBe(1);
    expect(await scene.runsOf(id)).toMatchObject([
      { status: 'CREATED', retry_number: 1, errors: { retry_0: expect.stringContaining('timed out') } },
    ]);
  });
});

it.each([
  ['the default', 72],
  ['that of another document', 48],
])('an export that runs longer than its time, by %s, is TIMEDOUT with its runs', async (_, hours) => {
  const id = await scene.addExport(2);
  const waiting = await scene.addExport(1);
  const rules = { ...RULES, exportTimeoutMs: hours * HOUR_MS };
  const run = await claimed();
  scene.pass((hours - 1) * HOUR_MS);
  await renewLease(scene.api.database.store.db, run, scene.clock);
  expect((await keep({ ...rules, runTimeoutMs: 1_000 * HOUR_MS })).timedOut).toBe(0);
  scene.pass(HOUR_MS + 1_000);
  expect((await keep(rules)).timedOut).toBe(1);
  expect(await scene.statusOf(id)).toBe('TIMEDOUT');
  expect((await scene.runsOf(id)).map(({ status }) => status)).toEqual(['TIMEDOUT', 'TIMEDOUT']);
  // It has not begun.
  expect(await scene.statusOf(waiting)).toBe('CREATED');
});

describe('a schedule', () => {
  const addSchedule = async (start: string, hours: number): Promise<string> => {
    const more = { start_time: start, end_time: null, interval_hours: hours, export_fields: ['id'] };
    return (await scene.ask('POST', EXPORTS, exportOf(scene, 1, more))).body.id;
  };
  const childrenOf = async (id: string) => {
    const { body } = await scene.ask('GET', EXPORTS);
    type Listed = { readonly source_bulk_export_id: string; readonly start_time: string };
    return body
      .filter((one: Listed) => one.source_bulk_export_id === id)
      .toSorted((a: Listed, b: Listed) => (a.start_time < b.start_time ? -1 : 1));
  };

  it('makes an export ten minutes after the end of each interval, and the next begins where that ends', async () => {
    const nowMs = (await scene.clock(scene.api.database.store.db)).getTime();
    const startMs = Math.floor(nowMs / 1000) * 1000;
    const id = await addSchedule(new Date(startMs).toISOString(), 6);
    scene.pass(6 * HOUR_MS + 9 * 60_000);
    expect((await keep()).scheduled).toBe(0);
    scene.pass(61_000);
    expect((await keep()).scheduled).toBe(1);
    expect((await keep()).scheduled).toBe(0);
    scene.pass(12 * HOUR_MS);
    // One in a pass of each schedule.
    expect([(await keep()).scheduled, (await keep()).scheduled, (await keep()).scheduled]).toEqual([1, 1, 0]);
    const children = await childrenOf(id);
    const times = [0, 6, 12, 18].map((hours) =>
      new Date(startMs + hours * HOUR_MS).toISOString().slice(0, 19),
    );
    expect(
      children.map((one: { readonly start_time: string; readonly end_time: string }) =>
        [one.start_time, one.end_time].map((time) => time.slice(0, 19)),
      ),
    ).toEqual([times.slice(0, 2), times.slice(1, 3), times.slice(2, 4)]);
    expect(children[0]).toMatchObject({ interval_hours: null, export_fields: ['id'], status: 'CREATED' });
    const runs = await scene.ask('GET', `${EXPORTS}/runs?source_bulk_export_id=${id}`);
    expect(runs.body.length).toBeGreaterThanOrEqual(3);
  });

  it('of another workspace waits for no one that has hundreds to catch up with', async () => {
    const start = (await scene.clock(scene.api.database.store.db)).toISOString();
    const many = await addSchedule(start, 1);
    const { db } = scene.api.database.owner;
    await sql`
      insert into exports (id, workspace_id, destination_id, session_id, status, start_time, format_version, compression,
        interval_hours, next_start, next_due_at, created_at, updated_at)
      select gen_random_uuid(), workspace_id, destination_id, session_id, status, start_time, format_version, compression,
        interval_hours, next_start, next_due_at, created_at, updated_at
      from exports, generate_series(1, 120) where id = ${many}`.execute(db);
    const tenant = await scene.addTenant();
    const schedule = exportOf(tenant, 1, { start_time: start, end_time: null, interval_hours: 1 });
    const { body } = await scene.ask('POST', EXPORTS, schedule, tenant);
    scene.pass(HOUR_MS + 11 * 60_000);
    expect((await keep()).scheduled).toBe(100);
    const listed = (await scene.ask('GET', EXPORTS, undefined, tenant)).body;
    expect(
      listed.map((one: { readonly source_bulk_export_id: string | null }) => one.source_bulk_export_id),
    ).toContain(body.id);
  });

  it('that is cancelled makes no more, and leaves those that it has made', async () => {
    const id = await addSchedule((await scene.clock(scene.api.database.store.db)).toISOString(), 1);
    scene.pass(HOUR_MS + 11 * 60_000);
    await keep();
    expect((await scene.ask('PATCH', `${EXPORTS}/${id}`, {})).body.status).toBe('CANCELLED');
    scene.pass(5 * HOUR_MS);
    expect((await keep()).scheduled).toBe(0);
    const children = await childrenOf(id);
    expect(children.map((one: { readonly status: string }) => one.status)).toEqual(['CREATED']);
  });

  it('makes each export once, however many processes keep it', async () => {
    const id = await addSchedule((await scene.clock(scene.api.database.store.db)).toISOString(), 1);
    scene.pass(HOUR_MS + 11 * 60_000);
    const done = await Promise.all([keep(), keep(), keep(), keep()]);
    expect(done.reduce((sum, { scheduled }) => sum + scheduled, 0)).toBe(1);
    expect(await childrenOf(id)).toHaveLength(1);
  });
});

describe('a workspace whose exports cannot be kept', () => {
  const addDue = async (tenant: ExportTenant): Promise<string> => {
    const start = (await scene.clock(scene.api.database.store.db)).toISOString();
    const schedule = exportOf(tenant, 1, { start_time: start, end_time: null, interval_hours: 1 });
    return (await scene.ask('POST', EXPORTS, schedule, tenant)).body.id;
  };
  const isMade = async (id: string): Promise<boolean> => {
    const rows = scene.api.database.owner.db.selectFrom('exports').select('id').where('source_id', '=', id);
    return (await rows.execute()).length > 0;
  };

  it('is left alone while somebody else changes them, and the others are kept', async () => {
    const other = await scene.addTenant();
    const [first, second] = [await addDue(scene), await addDue(other)];
    scene.pass(HOUR_MS + 11 * 60_000);
    await scene.api.database.owner.write(async (trx) => {
      await sql`select from workspaces where id = ${scene.workspaceId} for no key update`.execute(trx);
      expect((await keep()).scheduled).toBe(1);
    });
    expect([await isMade(first), await isMade(second)]).toEqual([false, true]);
    expect((await keep()).scheduled).toBe(1);
  });

  it('keeps no lost attempt of another one waiting, however many it has itself', async () => {
    const other = await scene.addTenant();
    const many = await scene.addExport(120);
    const few = await scene.addExport(1, {}, other);
    const { owner } = scene.api.database;
    const long = addMs(await scene.clock(owner.db), -HOUR_MS);
    await sql`
      update export_runs set status = 'RUNNING', lease_id = gen_random_uuid(), lease_until = ${long}, attempt_at = ${long}
      where export_id in (${many}, ${few})`.execute(owner.db);
    await owner.write(async (trx) => {
      await sql`select from workspaces where id = ${scene.workspaceId} for no key update`.execute(trx);
      expect((await keep()).interrupted).toBe(1);
    });
    expect((await scene.runsOf(few)).map(({ status }) => status)).toEqual(['CREATED']);
    expect((await keep()).interrupted).toBe(100);
  });

  it('is named in one line of the log, and the others are kept', async () => {
    const other = await scene.addTenant();
    const [first, second, third] = [await addDue(scene), await addDue(scene), await addDue(other)];
    scene.pass(HOUR_MS + 11 * 60_000);
    const { connection, owner } = scene.api.database;
    const limits = { ...standardLimits, lockMs: 100 };
    const store = openDatabase({ connection, limits, maxConnections: 2, onError: () => undefined });
    const before = logged.length;
    await owner.write(async (trx) => {
      await sql`select from exports where id in (${first}, ${second}) for update`.execute(trx);
      const done = await keepExports({ store, clock: scene.clock, rules: RULES, log });
      expect(done.scheduled).toBe(1);
    });
    await store.close();
    expect(logged.slice(before).map((line) => JSON.parse(line))).toEqual([
      expect.objectContaining({ msg: expect.stringContaining('not kept'), workspaces: [scene.workspaceId] }),
    ]);
    expect([await isMade(first), await isMade(third)]).toEqual([false, true]);
    expect((await keep()).scheduled).toBe(2);
  });

  it('ends the pass where it is the database that is away', async () => {
    await addDue(scene);
    scene.pass(HOUR_MS + 11 * 60_000);
    const { store } = scene.api.database;
    const away = new DomainError('unavailable', 'The database is not available: try again');
    const write = () => Promise.reject(away);
    const broken = { ...store, db: store.db, write } as unknown as typeof store;
    await expect(keepExports({ store: broken, clock: scene.clock, rules: RULES, log })).rejects.toBe(away);
  });
});

it('an upload that was not aborted for an hour is given up, and the credentials that were kept for it go', async () => {
  const id = await scene.addExport(1);
  const { api, clock } = scene;
  const run = await claimed();
  const pending = { key: 'a', token: 't', uploadId: 'left' };
  await createCheckpoints(api.database.store, run, clock).beginUpload(pending);
  await scene.ask('PATCH', `${EXPORTS}/${id}`, {});
  const next = { access_key_id: 'AKIANEXT', secret_access_key: new Secret('the next secret') };
  const parts = { vault: api.vault, workspaceId: scene.workspaceId };
  await api.database.owner.write((trx) => replaceCredentials({ ...parts, trx }, scene.destinationId, next));
  const versions = async (): Promise<number> => {
    const rows = api.database.owner.db.selectFrom('export_credentials').select('version');
    return (await rows.where('destination_id', '=', scene.destinationId).execute()).length;
  };
  const finished = await clock(api.database.owner.db);
  await sql`update export_runs set finished_at = ${finished} where id = ${run.runId}`.execute(
    api.database.owner.db,
  );
  scene.pass(HOUR_MS - 60_000);
  await keep();
  expect(await versions()).toBe(2);
  scene.pass(2 * 60_000);
  const before = logged.length;
  await keep();
  expect(await versions()).toBe(1);
  expect(logged.slice(before).join('')).toContain('is given up: a rule of the bucket');
  const { body } = await scene.ask('GET', `${EXPORTS}/${id}/runs`);
  expect(body[0].metadata.result.pending_upload).toBeNull();
  // Once.
  await keep();
  expect(logged.slice(before)).toHaveLength(1);
});
