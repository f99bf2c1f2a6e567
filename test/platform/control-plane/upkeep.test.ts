// What the jobs and the sweep of sources remove, and what they leave.
import { readdir, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openSourceStore } from '../../../src/platform/deployments/source-store.ts';
import { sweepSources } from '../../../src/platform/control-plane/sources/source-sweep.ts';
import { removeUnusedUploads, upkeepJobs } from '../../../src/platform/control-plane/upkeep.ts';
import { createLog } from '../../../src/base/log.ts';
import { sql } from '../../../src/platform/store/sql.ts';
import { type ControlPlaneScene, createControlPlaneScene, DEPLOYMENTS } from './control-plane-scene.ts';

let scene: ControlPlaneScene;
beforeAll(async () => {
  scene = await createControlPlaneScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

const db = () => scene.api.database.owner.db;
const pathsOf = async (id: string): Promise<readonly string[]> => {
  const rows = db().selectFrom('deployment_uploads').select('object_path').where('deployment_id', '=', id);
  return (await rows.orderBy('created_at').execute()).map((row) => row.object_path);
};
const age = (path: string, interval: string) =>
  sql`update deployment_uploads set expires_at = now() - ${interval}::interval where object_path = ${path}`.execute(
    db(),
  );

describe('a source', () => {
  it('is kept as long as a revision may need it', async () => {
    const { id } = await scene.create();
    const deploy = async (): Promise<void> => {
      const source_tarball_path = await scene.upload(id);
      const body = { source_revision_config: { source_tarball_path } };
      await scene.ask('PATCH', `${DEPLOYMENTS}/${id}`, body);
    };
    await deploy();
    await scene.move(await scene.build(id), 'DEPLOYING', 'DEPLOYED');
    // Skipped, and then the latest.
    await deploy();
    await deploy();
    const [built, skipped, latest] = await pathsOf(id);
    await removeUnusedUploads(db());
    expect(await pathsOf(id)).toEqual([built, latest]);
    expect(skipped).toBeDefined();
    await db()
      .updateTable('builds')
      .set({ removed_at: new Date() })
      .where('deployment_id', '=', id)
      .execute();
    await removeUnusedUploads(db());
    // The active revision may be built again elsewhere.
    expect(await pathsOf(id)).toEqual([built, latest]);
    await db().updateTable('deployments').set({ active_revision_id: null }).where('id', '=', id).execute();
    await removeUnusedUploads(db());
    expect(await pathsOf(id)).toEqual([latest]);
  });

  it('that no revision named is removed after a day, an address after an hour', async () => {
    const { id } = await scene.create();
    const stored = await scene.upload(id);
    const { body } = await scene.ask('POST', `${DEPLOYMENTS}/${id}/upload-url`);
    await removeUnusedUploads(db());
    expect(await pathsOf(id)).toEqual([stored, body.object_path]);
    await age(body.object_path, '61 minutes');
    await age(stored, '23 hours');
    await removeUnusedUploads(db());
    expect(await pathsOf(id)).toEqual([stored]);
    await age(stored, '25 hours');
    await removeUnusedUploads(db());
    expect(await pathsOf(id)).toEqual([]);
  });

  it('whose row is gone is removed, unless it may be one that is being stored', async () => {
    const directory = join(scene.directory, 'deployment-sources');
    const sources = openSourceStore({ directory, machineId: 'machine' });
    const [kept, gone] = [await scene.create(), await scene.create()];
    await scene.upload(kept.id);
    await scene.upload(gone.id);
    await scene.ask('DELETE', `${DEPLOYMENTS}/${gone.id}`);
    const filesOf = async (id: string) => readdir(join(directory, scene.workspaceId, id)).catch(() => []);
    const sweep = () => sweepSources(scene.api.database.store.db, sources, 3_600_000);
    await sweep();
    expect([(await filesOf(kept.id)).length, (await filesOf(gone.id)).length]).toEqual([1, 1]);
    const old = new Date(Date.now() - 3_700_000);
    for (const { id } of [kept, gone])
      for (const file of await filesOf(id))
        await utimes(join(directory, scene.workspaceId, id, file), old, old);
    expect(await sweep()).toBe(1);
    expect([(await filesOf(kept.id)).length, (await filesOf(gone.id)).length]).toEqual([1, 0]);
  });
});

describe('the jobs', () => {
  it('run on an empty table as on a full one', async () => {
    const log = createLog('silent', { write: () => undefined });
    const { signal } = new AbortController();
    const send = async (): Promise<never> => {
      throw new Error('no jobs follow');
    };
    for (const job of upkeepJobs)
      await job.run({}, { id: '1', signal, log, store: scene.api.database.store, send });
  });
});
