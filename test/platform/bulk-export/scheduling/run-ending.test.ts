// What follows the end of an attempt: retries 30 seconds apart, the end of the export, and which version of credentials is kept.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Secret } from '../../../../src/base/secret.ts';
import type { AttemptEnd } from '../../../../src/platform/bulk-export/exports/export-states.ts';
import { replaceCredentials } from '../../../../src/platform/bulk-export/destinations/destinations.ts';
import { claimRun, type ClaimedRun } from '../../../../src/platform/bulk-export/scheduling/run-claims.ts';
import { endAttempt } from '../../../../src/platform/bulk-export/scheduling/run-ending.ts';
import { createCheckpoints, renewLease } from '../../../../src/platform/bulk-export/scheduling/run-lease.ts';
import { noProgress } from '../../../../src/platform/bulk-export/files/run-progress.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { createExportScene, EXPORTS, type ExportScene } from '../export-scene.ts';

let scene: ExportScene;

beforeAll(async () => {
  scene = await createExportScene();
});
afterAll(() => scene[Symbol.asyncDispose]());
beforeEach(async () => {
  await sql`delete from exports`.execute(scene.api.database.owner.db);
});

const RULES = { maxRetries: 20, retryDelayMs: 30_000 };
const LIMITS = { maxExports: 15, maxRuns: 45 };
const FAILED = { is: 'failed', isRetryable: true, message: 'the storage is away' } as const;

const claim = (): Promise<ClaimedRun | undefined> =>
  claimRun(scene.api.database.store, { clock: scene.clock, limits: LIMITS });
const claimed = async (): Promise<ClaimedRun> => {
  const found = await claim();
  if (found === undefined) throw new Error('no run may begin');
  return found;
};
const end = (run: ClaimedRun, is: AttemptEnd, rules = RULES) =>
  scene.api.database.store.write(async (trx) =>
    endAttempt(trx, { ...run, now: await scene.clock(trx), rules }, is),
  );

describe('a run that fails', () => {
  it('is tried again 30 seconds later, 20 times, and then fails its export', {
    timeout: 60_000,
  }, async () => {
    const id = await scene.addExport(1);
    for (let retry = 0; retry <= 20; retry += 1) {
      const run = await claimed();
      expect(run.retryNumber).toBe(retry);
      await end(run, FAILED);
      // Only what the claims of this test have taken: the clock moves by exactly the delay.
      expect(await claim()).toBeUndefined();
      scene.pass(29_000);
      expect(await claim()).toBeUndefined();
      scene.pass(1_000);
    }
    const [run] = await scene.runsOf(id);
    expect([run?.status, run?.retry_number]).toEqual(['FAILED', 20]);
    expect(Object.keys(run?.errors ?? {})).toHaveLength(21);
    expect(run?.errors?.['retry_20']).toBe('the storage is away');
    expect(await scene.statusOf(id)).toBe('FAILED');
  });

  it('for good is not tried again, and the other runs of its export are cancelled', async () => {
    const id = await scene.addExport(3);
    const [first, second] = [await claimed(), await claimed()];
    await end(first, { is: 'failed', isRetryable: false, message: 'Access denied' });
    const runs = await scene.runsOf(id);
    expect(runs.map(({ status }) => status)).toEqual(['FAILED', 'CANCELLED', 'CANCELLED']);
    expect(runs[0]?.errors).toEqual({ retry_0: 'Access denied' });
    expect(await scene.statusOf(id)).toBe('FAILED');
    // Its worker learns of it by its lease.
    expect(await renewLease(scene.api.database.store.db, second, scene.clock)).toBe(false);
    expect(await end(second, { is: 'completed' })).toBeUndefined();
    expect((await scene.runsOf(id))[1]?.status).toBe('CANCELLED');
  });
});

it('a run that has given its place to others waits for nothing, however often it has', async () => {
  const id = await scene.addExport(1);
  for (let n = 0; n < 8; n += 1) {
    const run = await claimed();
    expect(run.interruptions).toBe(n);
    await end(run, { is: 'preempted' }, { ...RULES, maxRetries: 0 });
  }
  expect(await scene.runsOf(id)).toMatchObject([{ status: 'CREATED', retry_number: 0, errors: null }]);
});

it('a run whose worker is stopped begins again at once, and no retry is used', async () => {
  const id = await scene.addExport(1);
  for (let n = 0; n < 3; n += 1)
    await end(await claimed(), { is: 'interrupted' }, { ...RULES, maxRetries: 0 });
  expect(await scene.runsOf(id)).toMatchObject([{ status: 'CREATED', retry_number: 0, errors: null }]);
  await end(await claimed(), { is: 'interrupted', waits: true });
  expect(await claim()).toBeUndefined();
  scene.pass(30_000);
  await end(await claimed(), { is: 'completed' });
  expect(await scene.statusOf(id)).toBe('COMPLETED');
});

it('a run that ends its worker again and again waits longer each time, and leaves its place to others', async () => {
  const id = await scene.addExport(1);
  const limits = { maxExports: 15, maxRuns: 45 };
  const isWaiting = async () => {
    const { store } = scene.api.database;
    const claimedRun = await claimRun(store, { clock: scene.clock, limits });
    if (claimedRun !== undefined) await end(claimedRun, { is: 'interrupted' });
    return claimedRun === undefined;
  };
  for (let n = 0; n < 6; n += 1) expect(await isWaiting()).toBe(false);
  expect(await isWaiting()).toBe(true);
  scene.pass(30_000);
  expect([await isWaiting(), await isWaiting()]).toEqual([false, true]);
  scene.pass(30_000);
  expect(await isWaiting()).toBe(true);
  scene.pass(30_000);
  for (let n = 0; n < 10; n += 1) {
    expect(await isWaiting()).toBe(false);
    scene.pass(480_000);
  }
  expect(await scene.runsOf(id)).toMatchObject([{ status: 'CREATED', retry_number: 0, errors: null }]);
});

it('an export is completed with its last run', async () => {
  const id = await scene.addExport(2);
  const [first, second] = [await claimed(), await claimed()];
  await end(second, { is: 'completed' });
  expect(await scene.statusOf(id)).toBe('RUNNING');
  await end(first, { is: 'completed' });
  const { body } = await scene.ask('GET', `${EXPORTS}/${id}`);
  expect([body.status, body.finished_at]).toEqual(['COMPLETED', expect.any(String)]);
});

describe('checkpoints', () => {
  const file = { key: 'exports/a.parquet', rows: 7, bytes: 70 };
  const cursor = { start_time: '2026-01-01T00:00:00.000001Z', id: '00000000-0000-4000-8000-00000000000a' };

  it('are stored with the run and shown by the API', async () => {
    const id = await scene.addExport(1);
    const run = await claimed();
    const checkpoints = createCheckpoints(scene.api.database.store, run, scene.clock);
    expect(await checkpoints.load()).toEqual(noProgress);
    await checkpoints.beginUpload({
      key: file.key,
      token: 't',
      uploadId: 'u',
      target: { cursor, rows: 7, bytes: 70 },
    });
    const resultOf = async () =>
      (await scene.ask('GET', `${EXPORTS}/${id}/runs/${run.runId}`)).body.metadata.result;
    expect(await resultOf()).toEqual({
      ...{ rows_written: 0, exported_files: [], latest_cursor: null },
      export_path: expect.stringMatching(
        new RegExp(
          `^traces/exports/export_id=${id}/tenant_id=.*/session_id=.*/runs/year=2026/month=01/day=01$`,
        ),
      ),
      pending_upload: { target_cursor: JSON.stringify(cursor), file_path: file.key, rows_count: 7 },
    });
    await checkpoints.commitFile({ cursor, rows: 7, files: [file] });
    expect(await resultOf()).toMatchObject({
      ...{ rows_written: 7, exported_files: [file.key], pending_upload: null },
      latest_cursor: JSON.stringify(cursor),
    });
    expect(await checkpoints.load()).toEqual({ cursor, rows: 7, files: [file] });
  });

  it('of an attempt whose lease is lost write nothing', async () => {
    await scene.addExport(1);
    const run = await claimed();
    const checkpoints = createCheckpoints(scene.api.database.store, run, scene.clock);
    await end(run, { is: 'interrupted' });
    const next = await claimed();
    for (const call of [
      () => checkpoints.commitFile({ cursor, rows: 7, files: [file] }),
      () => checkpoints.beginUpload({ key: file.key, token: 't' }),
      () => checkpoints.load(),
    ])
      await expect(call()).rejects.toThrow('The lease of this attempt is lost');
    expect(await createCheckpoints(scene.api.database.store, next, scene.clock).load()).toEqual(noProgress);
  });
});

describe('new credentials', () => {
  const rotate = () =>
    scene.api.database.store.write((trx) =>
      replaceCredentials(
        { vault: scene.api.vault, trx, workspaceId: scene.workspaceId },
        scene.destinationId,
        {
          access_key_id: 'AKIANEXT',
          secret_access_key: new Secret('the next secret'),
        },
      ),
    );
  const versions = async (): Promise<readonly number[]> => {
    const rows = scene.api.database.owner.db.selectFrom('export_credentials').select('version');
    const found = await rows.where('destination_id', '=', scene.destinationId).orderBy('version').execute();
    return found.map(({ version }) => version);
  };

  it('are taken by new runs; a run that has begun keeps its own through its retries, and they go with it', async () => {
    await scene.addExport(2);
    const before = await versions();
    const first = await claimed();
    await rotate();
    const second = await claimed();
    expect(second.credentialsVersion).toBe(first.credentialsVersion + 1);
    expect(await versions()).toEqual([...before, second.credentialsVersion]);
    await end(first, FAILED);
    scene.pass(30_000);
    const again = await claimed();
    expect([again.runId, again.credentialsVersion]).toEqual([first.runId, first.credentialsVersion]);
    await end(again, { is: 'completed' });
    expect(await versions()).toEqual([second.credentialsVersion]);
  });
});
