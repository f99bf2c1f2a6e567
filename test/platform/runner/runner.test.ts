// A runner from the rows of deployments to the programs that run: what serves, what follows it, and what is left.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { beginDeletion } from '../../../src/platform/deployments/deployment-deletion.ts';
import { createRunnerScene, type RunnerScene } from './runner-scene.ts';

let scene: RunnerScene;
/** Of a deployment that went with its workspace while no runner was there. */
const GONE = '00000000-0000-4000-8000-000000000000';
beforeAll(async () => {
  scene = await createRunnerScene();
  for (const owner of [GONE, `build-${GONE}`]) await scene.workloads.userOf(owner);
  await scene.start({ drainMs: 5_000 });
});
afterAll(() => scene?.[Symbol.asyncDispose]());

const patience = { timeout: 30_000 };
const SECRET = 'a-secret-of-the-deployment';

it('the host user of a deployment that is gone is released, and no other', patience, async () => {
  await expect.poll(() => [...scene.workloads.owners], patience).not.toContain(GONE);
  expect([...scene.workloads.owners]).toContain(`build-${GONE}`);
});

async function databases(): Promise<readonly string[]> {
  const rows = scene.deployments.database.store.db.selectFrom('runner_databases').select('name');
  return (await rows.execute()).map(({ name }) => name);
}

it(
  'a revision is deployed, another one follows it, and a broken one leaves it as it is',
  patience,
  async () => {
    const deployment = await scene.deployments.addDeployment({ status: 'AWAITING_DATABASE' });
    const first = await scene.addRevision(deployment, { secrets: { KEY: SECRET } });
    await expect.poll(() => scene.statusOf(first), patience).toBe('DEPLOYED');
    expect(await scene.ask(deployment)).toEqual({ revision: first, variables: { KEY: SECRET } });
    const second = await scene.addRevision(deployment);
    await expect.poll(() => scene.statusOf(second), patience).toBe('DEPLOYED');
    expect(await scene.ask(deployment)).toMatchObject({ revision: second });
    const broken = await scene.addRevision(deployment, { mode: 'ends', secrets: { KEY: SECRET } });
    await expect.poll(() => scene.statusOf(broken), patience).toBe('DEPLOY_FAILED');
    expect(await scene.ask(deployment)).toMatchObject({ revision: second });
    await expect
      .poll(() => scene.logOf(deployment), patience)
      .toContainEqual(
        expect.stringContaining('was not deployed: the agent server did not start: it ended with code 3'),
      );
    const moves = scene.deployments.database.store.db
      .selectFrom('revision_moves')
      .select(['to_status', 'reason']);
    const last = await moves.where('revision_id', '=', broken).orderBy('id', 'desc').executeTakeFirst();
    expect(last).toMatchObject({
      to_status: 'DEPLOY_FAILED',
      reason: expect.stringContaining('no such graph'),
    });
  },
);

it(
  'a program that ends is started again, and everything of a deleted deployment goes',
  patience,
  async () => {
    const deployment = await scene.deployments.addDeployment({ status: 'AWAITING_DATABASE' });
    const revision = await scene.addRevision(deployment);
    await expect.poll(() => scene.statusOf(revision), patience).toBe('DEPLOYED');
    const running = scene.workloads.started.at(-1);
    process.kill(Number(running?.pid), 'SIGKILL');
    await running?.ended;
    await expect
      .poll(() => scene.ask(deployment).catch(() => undefined), patience)
      .toMatchObject({ revision });
    expect(scene.workloads.started.at(-1)).not.toBe(running);
    expect(await databases()).toContain(`sallyport_d_${deployment.id.replaceAll('-', '')}`);
    const { store } = scene.deployments.database;
    await store.write((trx) => beginDeletion(trx, deployment.id, 'system'));
    const rows = store.db.selectFrom('deployments').select('id').where('id', '=', deployment.id);
    await expect.poll(() => rows.execute(), patience).toEqual([]);
    await scene.workloads.started.at(-1)?.ended;
    expect(await scene.ask(deployment)).toBeUndefined();
    expect(await databases()).not.toContain(`sallyport_d_${deployment.id.replaceAll('-', '')}`);
    const sockets = await readdir(join(scene.directory, 'db'));
    expect(sockets).not.toContain(deployment.id.replaceAll('-', '').slice(0, 16));
  },
);
