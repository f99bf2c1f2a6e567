// Which deployments a runner takes, and what it finds of them that it is to run.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { claimNextBuild, finishBuild } from '../../../src/platform/deployments/builds.ts';
import { moveRevision, SYSTEM } from '../../../src/platform/deployments/revision-moves.ts';
import type { RevisionStatus } from '../../../src/platform/deployments/revision-states.ts';
import { removeLostRunners, removeRunner, renewRunner } from '../../../src/platform/deployments/runners.ts';
import { claimDeployments, readWanted } from '../../../src/platform/deployments/wanted-deployments.ts';
import {
  createDeploymentScene,
  type Deployment,
  type DeploymentScene,
  type TestRunner,
} from './deployment-scene.ts';

let scene: DeploymentScene;
beforeAll(async () => {
  scene = await createDeploymentScene();
});
afterAll(() => scene[Symbol.asyncDispose]());
beforeEach(() => scene.database.owner.db.deleteFrom('organizations').execute());

const claim = (runner: TestRunner) => claimDeployments(scene.database.store.db, runner);
const wanted = ({ id }: TestRunner) => readWanted(scene.database.store.db, id);

async function build(deployment: Deployment, { id: runnerId, machineId }: TestRunner): Promise<string> {
  const { store } = scene.database;
  const source = { source_tarball_path: await scene.addSource(deployment, machineId) };
  const config = { resource_spec: { cpu: 0.5, max_scale: 2 } };
  await scene.addRevision(deployment, { source, config, secretsVersion: 3 });
  const builder = { runnerId, machineId };
  const task = (await claimNextBuild(store, builder))!;
  const { revisionId } = task;
  await finishBuild(store, task, builder, { kind: 'ready', directory: `/b/${revisionId}`, sizeBytes: 1 });
  return revisionId;
}

async function move(revisionId: string, ...path: readonly RevisionStatus[]): Promise<void> {
  for (const to of path)
    await scene.database.store.write((trx) => moveRevision(trx, { revisionId, to, actor: SYSTEM }));
}

describe('a deployment', () => {
  it('is taken by one of several runners', async () => {
    const { id } = await scene.addDeployment({ status: 'AWAITING_DATABASE' });
    const runners = await Promise.all([1, 2, 3, 4].map(() => scene.addRunner()));
    const claimed = await Promise.all(runners.map(claim));
    expect(claimed.flat()).toEqual([id]);
  });

  it('has the revision that serves, and the one that follows', async () => {
    const runner = await scene.addRunner();
    const deployment = await scene.addDeployment();
    const { id, name, workspaceId, organizationId } = deployment;
    const first = await build(deployment, runner);
    await move(first, 'DEPLOYING', 'DEPLOYED');
    const second = await build(deployment, runner);
    await claim(runner);
    const limits = { minScale: 1, maxScale: 2, limits: { cpuMillicores: 1000, memBytes: 2 * 1024 ** 3 } };
    const shown = (revisionId: string) => ({
      ...{ revisionId, buildId: expect.any(String), buildDirectory: `/b/${revisionId}`, secretsVersion: 3 },
      ...limits,
    });
    expect(await wanted(runner)).toEqual([
      {
        ...{ id, name, workspaceId, organizationId, status: 'READY', isDeleting: false },
        active: { ...shown(first), number: 1, status: 'DEPLOYED' },
        next: { ...shown(second), number: 2, status: 'AWAITING_DEPLOY' },
      },
    ]);
    await move(second, 'DEPLOYING');
    expect(await wanted(runner)).toMatchObject([{ next: { status: 'DEPLOYING' } }]);
    await move(second, 'DEPLOY_FAILED');
    const [{ active, next } = {}] = await wanted(runner);
    expect([active?.revisionId, next]).toEqual([first, undefined]);
  });

  it('goes to the machine where it was built', async () => {
    const [one, two] = [await scene.addRunner(), await scene.addRunner()];
    const deployment = await scene.addDeployment();
    expect(await claim(one)).toEqual([deployment.id]);
    await build(deployment, two);
    expect(await claim(one)).toEqual([]);
    expect(await claim(two)).toEqual([deployment.id]);
    expect([await wanted(one), (await wanted(two)).length]).toEqual([[], 1]);
  });

  it('has no revision that serves on the machine that it comes to: its files are on another one', async () => {
    const [one, two] = [await scene.addRunner(), await scene.addRunner()];
    const deployment = await scene.addDeployment();
    const first = await build(deployment, one);
    await claim(one);
    await move(first, 'DEPLOYING', 'DEPLOYED');
    const second = await build(deployment, two);
    expect(await claim(two)).toEqual([deployment.id]);
    const [{ active, next } = {}] = await wanted(two);
    expect([active, next?.revisionId]).toEqual([undefined, second]);
    // Without success it goes back to where something can serve.
    await move(second, 'DEPLOYING', 'DEPLOY_FAILED');
    expect(await claim(one)).toEqual([deployment.id]);
    expect(await wanted(one)).toMatchObject([{ active: { revisionId: first } }]);
  });

  it('of a runner that is lost is taken on the same machine, and elsewhere only without files', async () => {
    const lost = await scene.addRunner();
    const [built, empty] = [await scene.addDeployment(), await scene.addDeployment()];
    await build(built, lost);
    await claim(lost);
    const other = await scene.addRunner();
    expect(await claim(other)).toEqual([]);
    await scene.age(lost.id, 31);
    expect(await claim(other)).toEqual([empty.id]);
    const same = await scene.addRunner(lost.machineId);
    expect(await claim(same)).toEqual([built.id]);
    expect(await renewRunner(scene.database.store.db, lost.id)).toBe(false);
  });

  it('that is being deleted is taken by anybody when its runner is lost', async () => {
    const { db } = scene.database.store;
    const lost = await scene.addRunner();
    const deployment = await scene.addDeployment();
    await build(deployment, lost);
    await claim(lost);
    await db
      .updateTable('deployments')
      .set({ status: 'AWAITING_DELETE' })
      .where('id', '=', deployment.id)
      .execute();
    const other = await scene.addRunner();
    expect(await claim(other)).toEqual([]);
    await removeRunner(db, lost.id);
    expect(await claim(other)).toEqual([deployment.id]);
    expect(await wanted(other)).toMatchObject([{ isDeleting: true }]);
  });
});

describe('a runner', () => {
  it('has a row as long as it renews it', async () => {
    const { db } = scene.database.store;
    const [one, two] = [await scene.addRunner(), await scene.addRunner()];
    await scene.age(one.id, 86_401);
    await scene.age(two.id, 86_401);
    expect(await renewRunner(db, one.id)).toBe(true);
    await removeLostRunners(db);
    expect([await renewRunner(db, one.id), await renewRunner(db, two.id)]).toEqual([true, false]);
  });
});
