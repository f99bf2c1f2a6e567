// A worker takes runs, executes as many as it has places, and stops what is cancelled; what it writes of a run is stored only while it has it.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Secret } from '../../../../src/base/secret.ts';
import { replaceCredentials } from '../../../../src/platform/bulk-export/destinations/destinations.ts';
import { createLog } from '../../../../src/base/log.ts';
import { ExportFailure } from '../../../../src/platform/bulk-export/files/export-failure.ts';
import type { ExportMeans, RunExportTask } from '../../../../src/platform/bulk-export/files/export-task.ts';
import { addMs } from '../../../../src/platform/bulk-export/scheduling/clock.ts';
import { createTask, openTarget } from '../../../../src/platform/bulk-export/worker/export-task.ts';
import {
  type ExportWorker,
  openExportWorker,
  type WorkerParts,
} from '../../../../src/platform/bulk-export/worker/export-worker.ts';
import type { EndedAttempt } from '../../../../src/platform/bulk-export/worker/run-attempt.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { openNotifications } from '../../../../src/platform/store/postgres/notifications.ts';
import { createExportScene, EXPORTS, type ExportScene } from '../export-scene.ts';

let scene: ExportScene;

beforeAll(async () => {
  scene = await createExportScene();
});
afterAll(() => scene[Symbol.asyncDispose]());
beforeEach(async () => {
  await sql`delete from exports`.execute(scene.api.database.owner.db);
});

const HOUR_MS = 3_600_000;
const RULES = { maxRetries: 20, retryDelayMs: 0, runTimeoutMs: 4 * HOUR_MS, exportTimeoutMs: 72 * HOUR_MS };
const patience = { timeout: 10_000, interval: 20 };

type Call = { readonly task: RunExportTask; readonly means: ExportMeans; end(error?: unknown): void };

type Opened = AsyncDisposable & {
  readonly worker: ExportWorker;
  /** Runs that have begun, each of which the test ends. */
  readonly calls: readonly Call[];
  readonly ended: readonly EndedAttempt[];
  readonly logged: readonly string[];
  readonly abandoned: readonly string[];
  call(at: number): Promise<Call>;
};

async function openWorker(more: Partial<WorkerParts> = {}): Promise<Opened> {
  const { api, clock } = scene;
  const { store, connection } = api.database;
  const calls: Call[] = [];
  const ended: EndedAttempt[] = [];
  const logged: string[] = [];
  const abandoned: string[] = [];
  const failed = (error: unknown): void => void logged.push(String(error));
  const notifications = openNotifications({ connection, onLost: failed, onError: failed });
  const opening = {
    ...{ vault: api.vault, db: store.db },
    endpoints: {
      allowed: undefined,
      cleartext: new Set<string>(),
      environmentCredentials: new Set<string>(),
    },
    addresses: { allowAllPrivate: false, allowLoopback: false, allowCidrs: [], isOwnListener: () => false },
  };
  const worker = await openExportWorker({
    ...{ pages: store, store, clock, notifications, traces: {} as ExportMeans['traces'] },
    ...{ rules: RULES, limits: { maxExports: 15, maxRuns: 45 }, places: 2, intervalMs: 50 },
    log: createLog('trace', { write: (line) => void logged.push(line) }),
    createTask: (claimed) => createTask(claimed, opening),
    async abandonUpload(left) {
      const { credentials } = await openTarget(left, opening);
      abandoned.push(`${credentials?.accessKeyId} ${left.pending.uploadId}`);
    },
    onEnded: (one) => void ended.push(one),
    exportRun: (task, means) =>
      new Promise((resolve, reject) => {
        const end = (error?: unknown): void => (error === undefined ? resolve('completed') : reject(error));
        means.signal.addEventListener('abort', () => reject(means.signal.reason), { once: true });
        calls.push({ task, means, end });
      }),
    ...more,
  });
  return {
    ...{ worker, calls, ended, logged, abandoned },
    async call(at) {
      await expect.poll(() => calls.length, patience).toBeGreaterThan(at);
      return calls[at] as Call;
    },
    async [Symbol.asyncDispose]() {
      await worker.close();
      await notifications.close();
    },
  };
}

const statusesOf = async (id: string): Promise<readonly string[]> =>
  (await scene.runsOf(id)).map(({ status }) => status);

describe('a worker', () => {
  it('executes as many runs as it has places, with the opened credentials of the destination', async () => {
    const id = await scene.addExport(3, { compression: 'zstandard', filter: 'eq(name, "a")' });
    await using opened = await openWorker();
    const first = await opened.call(0);
    await opened.call(1);
    expect(first.task).toMatchObject({
      ...{ exportId: id, workspaceId: scene.workspaceId, projectId: scene.projectId },
      ...{ compression: 'zstd', formatVersion: 'v1', filter: 'eq(name, "a")' },
      destination: { config: { bucket_name: 'traces' }, credentials: { accessKeyId: 'AKIAEXAMPLE' } },
    });
    expect(first.task.destination.credentials?.secretAccessKey.reveal()).toBe('a secret');
    expect(first.task).not.toHaveProperty('fields');
    expect([opened.worker.running, await statusesOf(id)]).toEqual([2, ['RUNNING', 'RUNNING', 'CREATED']]);
    first.end();
    (await opened.call(2)).end();
    opened.calls[1]?.end();
    await expect.poll(() => scene.statusOf(id), patience).toBe('COMPLETED');
    await expect
      .poll(() => opened.ended.map(({ outcome }) => outcome), patience)
      .toEqual(Array.from({ length: 3 }, () => 'completed'));
  });

  it('begins an export as soon as it is created', async () => {
    await using opened = await openWorker({ intervalMs: 600_000 });
    const id = await scene.addExport(1);
    const { task } = await opened.call(0);
    expect(task.exportId).toBe(id);
  });

  it('counts rows, files and bytes that an attempt has added', async () => {
    await scene.addExport(1);
    await using opened = await openWorker();
    const { means, end } = await opened.call(0);
    const files = [{ key: 'a', rows: 5, bytes: 50 }];
    await means.checkpoints.load();
    await means.checkpoints.commitFile({ rows: 5, files });
    await means.checkpoints.commitFile({ rows: 8, files: [...files, { key: 'b', rows: 3, bytes: 30 }] });
    end();
    await expect
      .poll(() => opened.ended, patience)
      .toMatchObject([{ outcome: 'completed', rows: 8, files: 2, bytes: 80 }]);
  });

  it('tries a run again that has failed, and says why', async () => {
    const id = await scene.addExport(1);
    await using opened = await openWorker();
    (await opened.call(0)).end(new ExportFailure('unavailable', 'the storage is away'));
    (await opened.call(1)).end(new Error('a bug with the secret text'));
    const third = await opened.call(2);
    third.end(new ExportFailure('permissions', 'Access denied'));
    await expect.poll(() => scene.statusOf(id), patience).toBe('FAILED');
    const [run] = await scene.runsOf(id);
    expect(run?.errors).toEqual({
      retry_0: 'the storage is away',
      retry_1: 'The run failed for a reason that the log of the platform says',
      retry_2: 'Access denied',
    });
    expect(opened.ended.map(({ outcome }) => outcome)).toEqual(['retried', 'retried', 'failed']);
    expect(opened.logged.join('\n')).not.toContain('secret text');
  });

  it('ends an attempt whose time is over, which is a retry', async () => {
    const id = await scene.addExport(1);
    await using opened = await openWorker({ rules: { ...RULES, runTimeoutMs: 100, retryDelayMs: HOUR_MS } });
    await opened.call(0);
    await expect
      .poll(() => scene.runsOf(id), patience)
      .toMatchObject([
        { status: 'CREATED', retry_number: 1, errors: { retry_0: expect.stringContaining('timed out') } },
      ]);
  });

  it('that is closed stops what runs, which is requeued without a retry', async () => {
    const id = await scene.addExport(1);
    const opened = await openWorker();
    const { means } = await opened.call(0);
    await opened[Symbol.asyncDispose]();
    expect(means.signal.aborted).toBe(true);
    expect(await scene.runsOf(id)).toMatchObject([{ status: 'CREATED', retry_number: 0, errors: null }]);
    expect(opened.ended.map(({ outcome }) => outcome)).toEqual(['requeued']);
    await using next = await openWorker();
    (await next.call(0)).end();
    await expect.poll(() => scene.statusOf(id), patience).toBe('COMPLETED');
  });
});

describe('a worker whose places are all taken', () => {
  const sharing = { holdMs: 100, waitMs: 0, places: 1 };

  it('gives one to another workspace, and goes on with the first one afterwards, without a retry', async () => {
    const slow = await scene.addExport(1);
    const other = await scene.addTenant();
    await using opened = await openWorker(sharing);
    const first = await opened.call(0);
    expect(first.task.exportId).toBe(slow);
    const waiting = await scene.addExport(1, {}, other);
    const second = await opened.call(1);
    expect([second.task.exportId, first.means.isPreempted?.(), first.means.signal.aborted]).toEqual([
      ...[waiting, true, true],
    ]);
    expect(await scene.runsOf(slow)).toMatchObject([{ status: 'CREATED', retry_number: 0, errors: null }]);
    second.end();
    const third = await opened.call(2);
    expect(third.task.exportId).toBe(slow);
    third.end();
    await expect.poll(() => scene.statusOf(slow), patience).toBe('COMPLETED');
  });

  it('keeps them while no other workspace waits', async () => {
    await scene.addExport(2);
    let looks = 0;
    const clock: WorkerParts['clock'] = (db) => {
      looks += 1;
      return scene.clock(db);
    };
    await using opened = await openWorker({ ...sharing, holdMs: 0, clock });
    const { means, end } = await opened.call(0);
    const before = looks;
    await expect.poll(() => looks - before, patience).toBeGreaterThan(10);
    expect(means.isPreempted?.()).toBe(false);
    end();
    await opened.call(1);
  });
});

describe('a run that is taken away', () => {
  it('by a cancellation is stopped at once, and writes nothing more', async () => {
    const id = await scene.addExport(2);
    await using opened = await openWorker();
    const [first, second] = [await opened.call(0), await opened.call(1)];
    await first.means.checkpoints.commitFile({ rows: 5, files: [{ key: 'a', rows: 5, bytes: 50 }] });
    await scene.ask('PATCH', `${EXPORTS}/${id}`, {});
    await expect.poll(() => first.means.signal.aborted && second.means.signal.aborted, patience).toBe(true);
    await expect(first.means.checkpoints.commitFile({ rows: 9, files: [] })).rejects.toThrow('lease');
    await expect.poll(() => opened.ended.map(({ outcome }) => outcome), patience).toEqual(['lost', 'lost']);
    expect(await statusesOf(id)).toEqual(['CANCELLED', 'CANCELLED']);
    // What was complete stays.
    const runs = (await scene.ask('GET', `${EXPORTS}/${id}/runs`)).body;
    const kept = runs.find((run: { readonly id: string }) => run.id === first.task.runId);
    expect(kept.metadata.result).toMatchObject({ rows_written: 5, exported_files: ['a'] });
  });

  it('with its workspace is stopped at once', async () => {
    const { api } = scene;
    const organizationId = await api.addOrganization();
    const key = await api.addServiceKey(organizationId, 'ORGANIZATION_ADMIN');
    const tenant = await scene.addTenant();
    const { db } = api.database.owner;
    const { organization_id: own } = await db
      .selectFrom('workspaces')
      .select('organization_id')
      .where('id', '=', tenant.workspaceId)
      .executeTakeFirstOrThrow();
    await api.addWorkspace(own);
    const admin = await api.addServiceKey(own, 'ORGANIZATION_ADMIN');
    const id = await scene.addExport(1, {}, tenant);
    await using opened = await openWorker({ intervalMs: 600_000 });
    const { means } = await opened.call(0);
    const foreign = await api.ask('DELETE', `/api/v1/workspaces/${tenant.workspaceId}`, { key });
    expect([foreign.status, await scene.statusOf(id)]).toEqual([404, 'RUNNING']);
    const gone = await api.ask('DELETE', `/api/v1/workspaces/${tenant.workspaceId}`, { key: admin });
    expect(gone.status).toBe(200);
    await expect.poll(() => means.signal.aborted, patience).toBe(true);
    await expect.poll(() => opened.ended.map(({ outcome }) => outcome), patience).toEqual(['lost']);
  });

  const versions = async () => {
    const rows = scene.api.database.owner.db.selectFrom('export_credentials').select('version');
    return rows.where('destination_id', '=', scene.destinationId).execute();
  };

  it('whose upload was left is cleaned up with the credentials that it had, which go then', async () => {
    const id = await scene.addExport(1);
    const { api, clock } = scene;
    const { db } = api.database.owner;
    {
      await using opened = await openWorker();
      const { means } = await opened.call(0);
      await means.checkpoints.beginUpload({ key: 'a', token: 't', uploadId: 'left' });
      await scene.ask('PATCH', `${EXPORTS}/${id}`, {});
      await expect.poll(() => means.signal.aborted, patience).toBe(true);
      expect(opened.abandoned).toEqual([]);
    }
    const parts = { vault: api.vault, workspaceId: scene.workspaceId };
    const next = { access_key_id: 'AKIANEXT', secret_access_key: new Secret('the next secret') };
    await api.database.owner.write((trx) => replaceCredentials({ ...parts, trx }, scene.destinationId, next));
    expect(await versions()).toHaveLength(2);
    // Its worker had time to abort the upload itself.
    const before = addMs(await clock(db), -60_000);
    await db.updateTable('export_runs').set({ finished_at: before }).where('export_id', '=', id).execute();
    await using opened = await openWorker();
    await expect.poll(() => opened.abandoned, patience).toEqual(['AKIAEXAMPLE left']);
    const pending = async () =>
      (await scene.ask('GET', `${EXPORTS}/${id}/runs`)).body[0].metadata.result.pending_upload;
    await expect.poll(pending, patience).toBeNull();
    await expect.poll(versions, patience).toHaveLength(1);
  });
});

describe('a destination that the operator allows no more', () => {
  it('fails the run at once', async () => {
    const id = await scene.addExport(1);
    const { db } = scene.api.database.owner;
    const endpoints = {
      allowed: new Set<string>(),
      cleartext: new Set<string>(),
      environmentCredentials: new Set<string>(),
    };
    const addresses = {
      allowAllPrivate: false,
      allowLoopback: false,
      allowCidrs: [],
      isOwnListener: () => false,
    };
    const opening = { vault: scene.api.vault, db, endpoints, addresses };
    await using opened = await openWorker({ createTask: (claimed) => createTask(claimed, opening) });
    await expect.poll(() => scene.statusOf(id), patience).toBe('FAILED');
    expect(opened.calls).toEqual([]);
    const [run] = await scene.runsOf(id);
    expect(run?.errors).toEqual({ retry_0: expect.stringContaining('does not allow the endpoint') });
    // The line of the log says where, for whoever cannot read the exports of the workspace.
    const line = opened.logged.find((one) => one.includes('an attempt of an export run failed'));
    expect(JSON.parse(line ?? '{}')).toMatchObject({ export: id, destination: scene.destinationId });
  });

  it('gets no credentials of the installation either', async () => {
    const endpoints = {
      allowed: undefined,
      cleartext: new Set<string>(),
      environmentCredentials: new Set<string>(),
    };
    const addresses = {
      allowAllPrivate: false,
      allowLoopback: false,
      allowCidrs: [],
      isOwnListener: () => false,
    };
    const { db } = scene.api.database.owner;
    const target = {
      ...{ workspaceId: scene.workspaceId, destinationId: randomUUID(), credentialsVersion: 0 },
      destinationConfig: {
        bucket_name: 'traces',
        prefix: '',
        region: 'eu-1',
        include_bucket_in_prefix: true,
      },
    };
    const open = (rules: typeof endpoints) =>
      openTarget(target, { vault: scene.api.vault, db, endpoints: rules, addresses });
    await expect(open(endpoints)).rejects.toMatchObject({ kind: 'credentials' });
    const listed = { ...endpoints, environmentCredentials: new Set(['aws']) };
    expect((await open(listed)).credentials).toBeUndefined();
  });
});
