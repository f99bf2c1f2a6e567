// The names and secrets of databases of deployments, and the status that depends on them.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  databaseNames,
  noteDatabase,
  noteReason,
  openDatabaseOf,
  planDatabase,
} from '../../../src/platform/deployments/deployment-databases.ts';
import { createDeploymentScene, type Deployment, type DeploymentScene } from './deployment-scene.ts';

let scene: DeploymentScene;
beforeAll(async () => {
  scene = await createDeploymentScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

const ownerOf = ({ id, workspaceId }: Deployment) => ({ workspaceId, deploymentId: id });
const plan = (deployment: Deployment) =>
  planDatabase({ vault: scene.vault, store: scene.database.store }, ownerOf(deployment));
const statusOf = ({ id }: Deployment) =>
  scene.database.store.db
    .selectFrom('deployments')
    .select(['status', 'status_reason'])
    .where('id', '=', id)
    .executeTakeFirst();

describe('the database of a deployment', () => {
  it('has the same name and secrets however often it is planned', async () => {
    const deployment = await scene.addDeployment();
    const [one, two] = await Promise.all([plan(deployment), plan(deployment)]);
    const again = await plan(deployment);
    const name = `sallyport_d_${deployment.id.replaceAll('-', '')}`;
    for (const found of [one, two, again]) {
      expect(found).toMatchObject({ databaseName: name, roleName: name });
      expect(found?.password.equals(one?.password.reveal() ?? '')).toBe(true);
      expect(found?.masterKey.equals(one?.masterKey.reveal() ?? '')).toBe(true);
    }
    expect(one?.masterKey.reveal()).toMatch(/^[A-Za-z0-9+/]{43}=$/);
    expect(one?.masterKey.equals(one.password.reveal())).toBe(false);
    expect(await databaseNames(scene.database.store.db)).toContain(name);
  });

  it('is none where nobody planned it, or the deployment is gone', async () => {
    const deployment = await scene.addDeployment();
    const source = { vault: scene.vault, db: scene.database.store.db };
    expect(await openDatabaseOf(source, ownerOf(deployment))).toBeUndefined();
    expect(await plan({ ...deployment, id: randomUUID() })).toBeUndefined();
  });

  it('does not open in another deployment', async () => {
    const [deployment, other] = [await scene.addDeployment(), await scene.addDeployment()];
    await plan(deployment);
    await scene.database.owner.db
      .updateTable('deployment_databases')
      .set({ deployment_id: other.id } as object)
      .where('deployment_id', '=', deployment.id)
      .execute();
    const source = { vault: scene.vault, db: scene.database.store.db };
    const moved = openDatabaseOf(source, { workspaceId: deployment.workspaceId, deploymentId: other.id });
    await expect(moved).rejects.toThrow(/was changed or moved/);
  });

  it('makes the deployment READY once it is there, and no other status', async () => {
    const { store } = scene.database;
    const waiting = await scene.addDeployment({ status: 'AWAITING_DATABASE' });
    await noteReason(store.db, waiting.id, 'no space');
    expect(await statusOf(waiting)).toEqual({ status: 'AWAITING_DATABASE', status_reason: 'no space' });
    await noteDatabase(store, waiting.id);
    expect(await statusOf(waiting)).toEqual({ status: 'READY', status_reason: null });
    const going = await scene.addDeployment({ status: 'AWAITING_DELETE' });
    await noteDatabase(store, going.id);
    expect(await statusOf(going)).toMatchObject({ status: 'AWAITING_DELETE' });
  });
});
