// Builds as builders take and end them, with rows of a real database.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  type Builder,
  claimNextBuild,
  finishBuild,
  giveBuildBack,
  isBuilding,
} from '../../../src/platform/deployments/builds.ts';
import {
  buildDirectories,
  expiredBuilds,
  retireBuild,
} from '../../../src/platform/deployments/kept-builds.ts';
import { endUnwanted, listMoves } from '../../../src/platform/deployments/revision-moves.ts';
import { registerRunner } from '../../../src/platform/deployments/runners.ts';
import { sql } from '../../../src/platform/store/sql.ts';
import { createDeploymentScene, type Deployment, type DeploymentScene } from './deployment-scene.ts';

let scene: DeploymentScene;
beforeAll(async () => {
  scene = await createDeploymentScene();
});
afterAll(() => scene[Symbol.asyncDispose]());
beforeEach(() => scene.database.owner.db.deleteFrom('organizations').execute());

async function addBuilder(machineId?: string): Promise<Builder> {
  const { id, machineId: machine } = await scene.addRunner(machineId);
  return { runnerId: id, machineId: machine };
}

async function addQueued(deployment: Deployment, machineId: string | null = null): Promise<string> {
  const source = { source_tarball_path: await scene.addSource(deployment, machineId) };
  return scene.addRevision(deployment, { source: { ...source, langgraph_config_path: 'a/langgraph.json' } });
}

const claim = (builder: Builder) => claimNextBuild(scene.database.store, builder);
const statusOf = async (id: string) => {
  const { db } = scene.database.store;
  return (await db.selectFrom('revisions').select('status').where('id', '=', id).executeTakeFirst())?.status;
};

describe('the next build', () => {
  it('is one of a queued revision, which is being built then', async () => {
    const deployment = await scene.addDeployment();
    const source = { source_tarball_path: await scene.addSource(deployment) };
    const config = { install_command: 'npm ci', build_command: null };
    const revisionId = await scene.addRevision(deployment, { source, config });
    const task = await claim(await addBuilder());
    expect(task).toEqual({
      ...{ buildId: expect.any(String), attempt: 1, revisionId, number: 1 },
      ...{ deploymentId: deployment.id, deploymentName: deployment.name, secretsVersion: 0 },
      ...{ workspaceId: deployment.workspaceId, organizationId: deployment.organizationId },
      ...{ sourcePath: `${source.source_tarball_path}/stored`, sourceSha256: 'ab', installCommand: 'npm ci' },
    });
    const moves = await listMoves(scene.database.store.db, revisionId);
    expect(moves.map(({ from, to, actor }) => [from, to, actor])).toEqual([
      ['QUEUED', 'AWAITING_BUILD', 'system'],
      ['AWAITING_BUILD', 'BUILDING', 'system'],
    ]);
    expect(await isBuilding(scene.database.store.db, revisionId)).toBe(true);
  });

  it('is given to one of several builders', async () => {
    const revisionId = await addQueued(await scene.addDeployment());
    const builders = await Promise.all([1, 2, 3, 4].map(() => addBuilder()));
    const tasks = await Promise.all(builders.map(claim));
    expect(tasks.filter((task) => task !== undefined).map((task) => task.revisionId)).toEqual([revisionId]);
  });

  it('is one whose source this machine can read', async () => {
    const builder = await addBuilder();
    const deployment = await scene.addDeployment();
    await addQueued(deployment, randomUUID());
    expect(await claim(builder)).toBeUndefined();
    const revisionId = await addQueued(deployment, builder.machineId);
    expect(await claim(builder)).toMatchObject({ revisionId });
  });

  it('is one of a deployment that serves here, or nowhere: elsewhere it would have to end first', async () => {
    const { db } = scene.database.store;
    const [own, other] = [await addBuilder(), await addBuilder()];
    const deployment = await scene.addDeployment();
    const active = await scene.addRevision(deployment, { status: 'DEPLOYED' });
    const row = { runner_id: own.runnerId, active_revision_id: active };
    await db.updateTable('deployments').set(row).where('id', '=', deployment.id).execute();
    const revisionId = await addQueued(deployment);
    expect(await claim(other)).toBeUndefined();
    expect(await claim(own)).toMatchObject({ revisionId });
    const next = await addQueued(deployment);
    await scene.age(own.runnerId, 31);
    expect(await claim(other)).toMatchObject({ revisionId: next });
    const named = await addQueued(deployment, other.machineId);
    await scene.age(own.runnerId, 0);
    expect(await claim(other)).toMatchObject({ revisionId: named });
  });

  it('is not one of a deployment that is being deleted', async () => {
    await addQueued(await scene.addDeployment({ status: 'AWAITING_DELETE' }));
    expect(await claim(await addBuilder())).toBeUndefined();
  });

  it('is of the workspace that has the fewest, then the oldest', async () => {
    const [many, few] = [await scene.addWorkspace(), await scene.addWorkspace()];
    const add = async ({ workspaceId }: typeof many) => addQueued(await scene.addDeployment({ workspaceId }));
    const [a, b, c] = [await add(many), await add(many), await add(many)];
    const [d, e] = [await add(few), await add(few)];
    const builder = await addBuilder();
    const order: unknown[] = [];
    for (let n = 0; n < 5; n += 1) order.push((await claim(builder))?.revisionId);
    expect(order).toEqual([a, d, b, e, c]);
  });
});

describe('a build that has ended', () => {
  it('waits to be deployed, with its directory', async () => {
    const builder = await addBuilder();
    const revisionId = await addQueued(await scene.addDeployment());
    const task = (await claim(builder))!;
    const result = { kind: 'ready', directory: '/builds/1', sizeBytes: 7 } as const;
    expect(await finishBuild(scene.database.store, task, builder, result)).toBe(true);
    expect(await statusOf(revisionId)).toBe('AWAITING_DEPLOY');
    expect([...(await buildDirectories(scene.database.store.db, builder.machineId))]).toEqual(['/builds/1']);
    expect(await finishBuild(scene.database.store, task, builder, result)).toBe(false);
  });

  it.each(['CREATE_FAILED', 'BUILD_FAILED'] as const)('as %s gives its reason', async (status) => {
    const builder = await addBuilder();
    const revisionId = await addQueued(await scene.addDeployment());
    const task = (await claim(builder))!;
    await finishBuild(scene.database.store, task, builder, { kind: 'failed', status, reason: 'no tar' });
    const [last] = (await listMoves(scene.database.store.db, revisionId)).toReversed();
    expect(last).toMatchObject({ to: status, actor: 'system', reason: 'no tar' });
  });

  it('is not noted where a newer revision came', async () => {
    const builder = await addBuilder();
    const deployment = await scene.addDeployment();
    const revisionId = await addQueued(deployment);
    const task = (await claim(builder))!;
    await scene.database.store.write((trx) =>
      endUnwanted(trx, { deploymentId: deployment.id, actor: 'a', reason: 'newer' }),
    );
    expect([await statusOf(revisionId), await isBuilding(scene.database.store.db, revisionId)]).toEqual([
      'INTERRUPTED',
      false,
    ]);
    const result = { kind: 'ready', directory: '/builds/2', sizeBytes: 7 } as const;
    expect(await finishBuild(scene.database.store, task, builder, result)).toBe(false);
  });
});

describe('a build whose runner is lost', () => {
  it('is taken again on the same machine alone, and only there', async () => {
    const lost = await addBuilder();
    await addQueued(await scene.addDeployment());
    const task = (await claim(lost))!;
    const other = await addBuilder();
    await scene.age(lost.runnerId, 31);
    expect(await claim(other)).toBeUndefined();
    const next = await addBuilder(lost.machineId);
    expect(await claim(next)).toEqual({ ...task, attempt: 2 });
    expect(await claim(next)).toBeUndefined();
    const result = { kind: 'ready', directory: '/builds/3', sizeBytes: 7 } as const;
    expect(await finishBuild(scene.database.store, task, lost, result)).toBe(false);
    expect(await finishBuild(scene.database.store, task, next, result)).toBe(true);
  });

  it('is free at once when the next runner of its machine begins', async () => {
    const lost = await addBuilder();
    await addQueued(await scene.addDeployment());
    await claim(lost);
    const runnerId = randomUUID();
    const { machineId } = lost;
    await registerRunner(scene.database.store.db, { id: runnerId, machineId, host: 'host', pid: 2 });
    expect(await claim({ runnerId, machineId })).toMatchObject({ attempt: 2 });
  });

  it('keeps its attempts where its runner was ended, however often', async () => {
    let builder = await addBuilder();
    await addQueued(await scene.addDeployment());
    for (let restart = 1; restart <= 4; restart += 1) {
      const task = await claim(builder);
      expect(task).toMatchObject({ attempt: 1 });
      await giveBuildBack(scene.database.store.db, task!, builder);
      builder = await addBuilder(builder.machineId);
    }
    const task = (await claim(builder))!;
    const next = await addBuilder(builder.machineId);
    expect(await claim(next)).toMatchObject({ attempt: 2 });
    // What comes late, from a runner that has lost it, changes nothing.
    await giveBuildBack(scene.database.store.db, task, builder);
    expect(await claim(await addBuilder(builder.machineId))).toMatchObject({ attempt: 3 });
  });

  it('is not tried for ever', async () => {
    let builder = await addBuilder();
    const revisionId = await addQueued(await scene.addDeployment());
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      expect(await claim(builder)).toMatchObject({ attempt });
      builder = await addBuilder(builder.machineId);
    }
    expect(await claim(builder)).toBeUndefined();
    expect(await statusOf(revisionId)).toBe('BUILD_FAILED');
  });
});

describe('the builds that are kept', () => {
  it('are those of the last 5 revisions with a build, and the active one', async () => {
    const { store } = scene.database;
    const builder = await addBuilder();
    const deployment = await scene.addDeployment();
    const revisions: string[] = [];
    for (let n = 0; n < 8; n += 1) {
      revisions.push(await addQueued(deployment));
      const task = (await claim(builder))!;
      await finishBuild(store, task, builder, { kind: 'ready', directory: `/builds/${n}`, sizeBytes: 1 });
      await endAll(deployment.id);
    }
    await store.db
      .updateTable('deployments')
      .set({ active_revision_id: revisions[1]! })
      .where('id', '=', deployment.id)
      .execute();
    const expired = await expiredBuilds(store.db, builder.machineId, 1_000);
    expect(expired.map(({ directory }) => directory)).toEqual(['/builds/0', '/builds/2']);
    for (const { buildId } of expired)
      expect(await store.write((trx) => retireBuild(trx, buildId))).toBe(true);
    expect(await expiredBuilds(store.db, builder.machineId, 1_000)).toEqual([]);
    expect((await buildDirectories(store.db, builder.machineId)).size).toBe(6);
    expect(await store.write((trx) => retireBuild(trx, randomUUID()))).toBe(true);
  });

  it('take at most so much of a workspace, besides those that run', async () => {
    const { store } = scene.database;
    const builder = await addBuilder();
    const deployment = await scene.addDeployment();
    const revisions: string[] = [];
    for (let n = 0; n < 4; n += 1) {
      revisions.push(await addQueued(deployment));
      const task = (await claim(builder))!;
      await finishBuild(store, task, builder, { kind: 'ready', directory: `/large/${n}`, sizeBytes: 100 });
      await endAll(deployment.id);
    }
    await store.db
      .updateTable('deployments')
      .set({ active_revision_id: revisions[0]! })
      .where('id', '=', deployment.id)
      .execute();
    const expiredWith = async (keptBytes: number) =>
      (await expiredBuilds(store.db, builder.machineId, keptBytes)).map(({ directory }) => directory);
    expect(await expiredWith(400)).toEqual([]);
    expect(await expiredWith(200)).toEqual(['/large/1']);
    expect(await expiredWith(0)).toEqual(['/large/1', '/large/2', '/large/3']);
    expect(await expiredBuilds(store.db, randomUUID(), 0)).toEqual([]);
  });

  it('are those that a revision waits for', async () => {
    const { store } = scene.database;
    const builder = await addBuilder();
    await addQueued(await scene.addDeployment());
    const task = (await claim(builder))!;
    await finishBuild(store, task, builder, { kind: 'ready', directory: '/builds/9', sizeBytes: 1 });
    expect(await store.write((trx) => retireBuild(trx, task.buildId))).toBe(false);
  });
});

async function endAll(deploymentId: string): Promise<void> {
  await sql`update revisions set status = 'INTERRUPTED' where deployment_id = ${deploymentId}`.execute(
    scene.database.store.db,
  );
}
