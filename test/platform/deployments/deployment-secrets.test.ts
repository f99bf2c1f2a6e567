// Sets of secrets of deployments: what a change keeps, and what opens where.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secret.ts';
import {
  listSecretNames,
  openSecrets,
  removeUnusedSecrets,
  replaceSecrets,
} from '../../../src/platform/deployments/deployment-secrets.ts';
import { createDeploymentScene, type Deployment, type DeploymentScene } from './deployment-scene.ts';

let scene: DeploymentScene;
beforeAll(async () => {
  scene = await createDeploymentScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

const ownerOf = ({ id, workspaceId }: Deployment) => ({ workspaceId, deploymentId: id });

function replace(deployment: Deployment, version: number, values: Readonly<Record<string, string>>) {
  const secrets = Object.entries(values).map(([name, value]) => ({ name, value: new Secret(value) }));
  const { vault, database } = scene;
  return database.store.write((trx) => replaceSecrets({ vault, trx }, ownerOf(deployment), version, secrets));
}

async function open(deployment: Deployment, version: number): Promise<Readonly<Record<string, string>>> {
  const source = { vault: scene.vault, db: scene.database.store.db };
  const opened = await openSecrets(source, ownerOf(deployment), version);
  return Object.fromEntries([...opened].map(([name, value]) => [name, value.reveal()]));
}

describe('the secrets of a deployment', () => {
  it('are replaced as a set; an empty value keeps the stored one', async () => {
    const deployment = await scene.addDeployment();
    expect(await replace(deployment, 0, { A: 'first a', B: 'first b' })).toBe(1);
    expect(await replace(deployment, 1, { A: '', C: 'c', D: '' })).toBe(2);
    expect(await replace(deployment, 2, { A: '', C: '' })).toBe(3);
    expect(await open(deployment, 1)).toEqual({ A: 'first a', B: 'first b' });
    expect(await open(deployment, 2)).toEqual({ A: 'first a', C: 'c' });
    expect(await open(deployment, 3)).toEqual({ A: 'first a', C: 'c' });
    expect(await replace(deployment, 3, {})).toBe(4);
    expect(await open(deployment, 4)).toEqual({});
  });

  it('have a largest size together, those that are kept included', async () => {
    const deployment = await scene.addDeployment();
    const half = Object.fromEntries(
      Array.from({ length: 8 }, (_, index) => [`A${index}`, 'x'.repeat(65_536)]),
    );
    const kept = Object.fromEntries(Object.keys(half).map((name) => [name, '']));
    expect(await replace(deployment, 0, half)).toBe(1);
    const more = {
      ...kept,
      ...Object.fromEntries(Object.entries(half).map(([name, value]) => [`B${name}`, value])),
    };
    const refused = replace(deployment, 1, more);
    await expect(refused).rejects.toMatchObject({ issues: [{ loc: ['body', 'secrets'], type: 'too_long' }] });
    expect(Object.keys(await open(deployment, 1))).toHaveLength(8);
    expect(await open(deployment, 2)).toEqual({});
  });

  it('are stored sealed', async () => {
    const deployment = await scene.addDeployment();
    await replace(deployment, 0, { A: 'canary-value-1' });
    const rows = await scene.database.owner.db.selectFrom('deployment_secrets').selectAll().execute();
    expect(rows.some(({ sealed }) => sealed.includes('canary-value-1'))).toBe(false);
  });

  it.each(['name', 'deployment_id', 'sealed_version'] as const)(
    'do not open with another %s',
    async (column) => {
      const [deployment, other] = [await scene.addDeployment(), await scene.addDeployment()];
      await replace(deployment, 0, { A: 'value' });
      const moved = { name: 'B', deployment_id: other.id, sealed_version: 7 }[column];
      await scene.database.owner.db
        .updateTable('deployment_secrets')
        .set({ [column]: moved })
        .where('deployment_id', '=', deployment.id)
        .execute();
      const at = column === 'deployment_id' ? { ...other, workspaceId: deployment.workspaceId } : deployment;
      await expect(open(at, 1)).rejects.toThrow(/was changed or moved/);
    },
  );

  it('are listed by their names', async () => {
    const { db } = scene.database.store;
    const [one, two] = [await scene.addDeployment(), await scene.addDeployment()];
    await replace(one, 0, { b: '1', A: '2' });
    await db.updateTable('deployments').set({ secrets_version: 1 }).where('id', '=', one.id).execute();
    const names = await listSecretNames(db, [one.id, two.id]);
    expect([names.get(one.id), names.get(two.id)]).toEqual([['A', 'b'], undefined]);
    expect((await listSecretNames(db, [])).size).toBe(0);
  });

  it('are removed once no revision needs them', async () => {
    const { store } = scene.database;
    const deployment = await scene.addDeployment();
    for (let version = 0; version < 5; version += 1) await replace(deployment, version, { A: 'x' });
    const active = await scene.addRevision(deployment, { status: 'DEPLOYED', secretsVersion: 1 });
    await scene.addRevision(deployment, { status: 'BUILD_FAILED', secretsVersion: 2 });
    await scene.addRevision(deployment, { status: 'BUILDING', secretsVersion: 3 });
    await store.db
      .updateTable('deployments')
      .set({ active_revision_id: active, secrets_version: 5 })
      .where('id', '=', deployment.id)
      .execute();
    await store.write((trx) => removeUnusedSecrets(trx, deployment.id));
    const left: number[] = [];
    for (let version = 1; version <= 5; version += 1)
      if ('A' in (await open(deployment, version))) left.push(version);
    expect(left).toEqual([1, 3, 5]);
  });
});
