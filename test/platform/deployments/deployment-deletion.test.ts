// The end of a deployment: at once where there is nothing of it, otherwise by its runner.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { planDatabase } from '../../../src/platform/deployments/deployment-databases.ts';
import { beginDeletion, finishDeletion } from '../../../src/platform/deployments/deployment-deletion.ts';
import { claimDeployments } from '../../../src/platform/deployments/wanted-deployments.ts';
import { createDeploymentScene, type Deployment, type DeploymentScene } from './deployment-scene.ts';

let scene: DeploymentScene;
beforeAll(async () => {
  scene = await createDeploymentScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

const begin = ({ id }: Deployment) => scene.database.store.write((trx) => beginDeletion(trx, id, 'someone'));
const statusOf = async ({ id }: Deployment) => {
  const row = scene.database.store.db.selectFrom('deployments').select('status').where('id', '=', id);
  return (await row.executeTakeFirst())?.status;
};

describe('a deployment that is deleted', () => {
  it('is gone at once where no runner had it', async () => {
    const deployment = await scene.addDeployment({ status: 'AWAITING_DATABASE' });
    await scene.addRevision(deployment, { status: 'CREATING' });
    await begin(deployment);
    expect(await statusOf(deployment)).toBeUndefined();
  });

  it('ends its revisions, and stays until its runner has removed everything', async () => {
    const { store } = scene.database;
    const deployment = await scene.addDeployment();
    const building = await scene.addRevision(deployment, { status: 'BUILDING' });
    const [runner, other] = [await scene.addRunner(), await scene.addRunner()];
    await claimDeployments(store.db, runner);
    expect(await finishDeletion(store, deployment.id, runner.id)).toBe(false);
    await begin(deployment);
    const revision = store.db.selectFrom('revisions').select('status').where('id', '=', building);
    expect(await revision.executeTakeFirst()).toEqual({ status: 'INTERRUPTED' });
    expect(await statusOf(deployment)).toBe('AWAITING_DELETE');
    expect(await finishDeletion(store, deployment.id, other.id)).toBe(false);
    expect(await finishDeletion(store, deployment.id, runner.id)).toBe(true);
    expect(await statusOf(deployment)).toBeUndefined();
  });

  it('waits for a runner where it has a database', async () => {
    const deployment = await scene.addDeployment();
    const owner = { workspaceId: deployment.workspaceId, deploymentId: deployment.id };
    await planDatabase({ vault: scene.vault, store: scene.database.store }, owner);
    await begin(deployment);
    expect(await statusOf(deployment)).toBe('AWAITING_DELETE');
  });
});
