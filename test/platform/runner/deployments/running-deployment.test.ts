// What becomes of a deployment that runs: its rules change, its machine is full, it goes with its workspace, or another runner takes it.
import { randomUUID } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { notifyOfDeployment } from '../../../../src/platform/deployments/revision-moves.ts';
import { parseDocument } from '../../../../src/platform/proxy-documents/parsed-document.ts';
import { changeProfile, createProfile } from '../../../../src/platform/proxy-profiles/profiles.ts';
import { createRunnerScene, type RunnerScene } from '../runner-scene.ts';

let scene: RunnerScene;
beforeEach(async () => {
  scene = await createRunnerScene();
});
afterEach(() => scene?.[Symbol.asyncDispose]());

const options = { timeout: 60_000, tags: 'long' };
const patience = { timeout: 30_000 };

function documentOf(host: string) {
  const rule = { match_hosts: [host], headers: [{ name: 'X-Key', type: 'opaque', value: 'opaque-value' }] };
  return parseDocument({ rules: [{ name: host, ...rule }] }, { allowsPrivateCallbacks: true });
}

it(
  'a changed profile reaches what runs, and a rule whose secret is not there refuses its requests',
  options,
  async () => {
    const { vault, database } = scene.deployments;
    const { store } = database;
    await scene.start();
    const deployment = await scene.deployments.addDeployment({ status: 'AWAITING_DATABASE' });
    const { workspaceId } = deployment;
    await vault.prepare();
    const { id } = await store.write((trx) =>
      createProfile(
        { vault, trx, workspaceId },
        { name: 'p', is_default: true, document: documentOf('one.test') },
      ),
    );
    const revision = await scene.addRevision(deployment);
    await expect.poll(() => scene.statusOf(revision), patience).toBe('DEPLOYED');
    await expect
      .poll(() => scene.logOf(deployment), patience)
      .toContainEqual(expect.stringMatching(/^its runs are not traced: .* runner\.isolation/));
    const [workload] = scene.workloads.started;
    expect(JSON.stringify(workload?.spec.network)).toContain('one.test');
    const replacement = { document: documentOf('two.test'), basedOn: 1 };
    await store.write((trx) => changeProfile({ vault, trx, workspaceId }, id, { replacement }));
    await expect.poll(() => JSON.stringify(workload?.policies.at(-1)), patience).toContain('two.test');
    expect(scene.workloads.started).toHaveLength(1);
    const header = { name: 'X-Key', type: 'workspace_secret', value: '{ABSENT}' };
    const missing = parseDocument(
      { rules: [{ name: 'three', match_hosts: ['three.test'], headers: [header] }] },
      { allowsPrivateCallbacks: true },
    );
    await store.write((trx) =>
      changeProfile({ vault, trx, workspaceId }, id, { replacement: { document: missing, basedOn: 2 } }),
    );
    const refusing = { rules: [{ name: 'three', refuse: expect.stringContaining('ABSENT does not exist') }] };
    await expect.poll(() => workload?.policies.at(-1)?.document, patience).toMatchObject(refusing);
    const problem = expect.stringMatching(/refuses all requests of the rule three .* ABSENT does not exist/);
    await expect.poll(() => scene.logOf(deployment), patience).toContainEqual(problem);
    expect(await scene.ask(deployment)).toMatchObject({ revision });
    // It begins again, as after the end of a runner.
    await store.db.deleteFrom('runners').execute();
    await workload?.ended;
    await expect.poll(() => scene.ask(deployment), patience).toMatchObject({ revision });
    expect(scene.workloads.started.at(-1)?.spec.network).toMatchObject({ policy: { document: refusing } });
  },
);

it('says that the machine is full, and begins when it is not any more', options, async () => {
  await scene.start({ limits: { instances: 1 } });
  const [first, second] = [await scene.deployments.addDeployment(), await scene.deployments.addDeployment()];
  for (const one of [first, second])
    await scene.deployments.database.store.db
      .updateTable('deployments')
      .set({ status: 'AWAITING_DATABASE' })
      .where('id', '=', one.id)
      .execute();
  const served = await scene.addRevision(first);
  await expect.poll(() => scene.statusOf(served), patience).toBe('DEPLOYED');
  const waiting = await scene.addRevision(second);
  const { db } = scene.deployments.database.store;
  const reason = async () => {
    const row = db.selectFrom('deployments').select('status_reason').where('id', '=', second.id);
    return (await row.executeTakeFirstOrThrow()).status_reason;
  };
  await expect.poll(reason, patience).toContain('runner.limits.instances');
  expect(await scene.statusOf(waiting)).toBe('AWAITING_DEPLOY');
  // A switch may go beyond the limit by half, which is not one more here.
  await db.deleteFrom('workspaces').where('id', '=', first.workspaceId).execute();
  await expect.poll(() => scene.statusOf(waiting), patience).toBe('DEPLOYED');
  await expect.poll(reason, patience).toBeNull();
});

it('nothing runs of one that goes with its workspace', options, async () => {
  await scene.start();
  const deployment = await scene.deployments.addDeployment({ status: 'AWAITING_DATABASE' });
  const revision = await scene.addRevision(deployment);
  await expect.poll(() => scene.statusOf(revision), patience).toBe('DEPLOYED');
  const { db } = scene.deployments.database.store;
  await db.deleteFrom('workspaces').where('id', '=', deployment.workspaceId).execute();
  await scene.workloads.started[0]?.ended;
  expect(await scene.ask(deployment)).toBeUndefined();
  await expect.poll(() => readdir(join(scene.directory, 'run')), patience).toEqual([]);
  await expect.poll(() => readdir(join(scene.directory, 'db')), patience).toEqual([]);
  const names = () => db.selectFrom('runner_databases').select('name').execute();
  await expect.poll(names, { timeout: 40_000 }).toEqual([]);
});

it('one that another runner has taken is ended here', options, async () => {
  await scene.start();
  const deployment = await scene.deployments.addDeployment({ status: 'AWAITING_DATABASE' });
  const revision = await scene.addRevision(deployment);
  await expect.poll(() => scene.statusOf(revision), patience).toBe('DEPLOYED');
  const { db } = scene.deployments.database.store;
  const { id: runnerId, machineId } = await scene.deployments.addRunner(randomUUID());
  // A runner takes back what was built on its machine.
  await db.transaction().execute(async (trx) => {
    await trx.updateTable('builds').set({ machine_id: machineId }).execute();
    const row = trx.updateTable('deployments').set({ runner_id: runnerId });
    await row.where('id', '=', deployment.id).execute();
  });
  await scene.workloads.started[0]?.ended;
  expect(await scene.ask(deployment)).toBeUndefined();
});

it('a runner whose row is gone ends what it runs, and begins again', options, async () => {
  await scene.start();
  const deployment = await scene.deployments.addDeployment({ status: 'AWAITING_DATABASE' });
  const revision = await scene.addRevision(deployment);
  await expect.poll(() => scene.statusOf(revision), patience).toBe('DEPLOYED');
  await scene.deployments.database.store.db.deleteFrom('runners').execute();
  await scene.workloads.started[0]?.ended;
  await expect.poll(() => scene.ask(deployment), patience).toMatchObject({ revision });
  expect(scene.workloads.started).toHaveLength(2);
});

it('a newer revision ends the switch to one that is never ready', options, async () => {
  await scene.start();
  const deployment = await scene.deployments.addDeployment({ status: 'AWAITING_DATABASE' });
  const never = await scene.addRevision(deployment, { mode: 'never ready' });
  await expect.poll(() => scene.statusOf(never), patience).toBe('DEPLOYING');
  const next = await scene.addRevision(deployment);
  const { endUnwanted, SYSTEM } = await import('../../../../src/platform/deployments/revision-moves.ts');
  await scene.deployments.database.store.write((trx) =>
    endUnwanted(trx, { deploymentId: deployment.id, except: next, actor: SYSTEM, reason: 'newer' }),
  );
  await expect.poll(() => scene.statusOf(next), patience).toBe('DEPLOYED');
  expect(await scene.statusOf(never)).toBe('INTERRUPTED');
  expect(await scene.ask(deployment)).toMatchObject({ revision: next });
});

it('an older build serves again as a new revision, with the secrets of that revision', options, async () => {
  await scene.start();
  const deployment = await scene.deployments.addDeployment({ status: 'AWAITING_DATABASE' });
  for (const value of ['first-value', 'second-value', 'first-value']) {
    const revision = await scene.addRevision(deployment, { secrets: { KEY: value } });
    await expect.poll(() => scene.statusOf(revision), patience).toBe('DEPLOYED');
    expect(await scene.ask(deployment)).toEqual({ revision, variables: { KEY: value } });
  }
});

it('another profile of the deployment reaches what runs, without another revision', options, async () => {
  const { vault, database } = scene.deployments;
  const { store } = database;
  await scene.start();
  const deployment = await scene.deployments.addDeployment({ status: 'AWAITING_DATABASE' });
  const { workspaceId } = deployment;
  const revision = await scene.addRevision(deployment);
  await expect.poll(() => scene.statusOf(revision), patience).toBe('DEPLOYED');
  await vault.prepare();
  const given = { name: 'p', is_default: false, document: documentOf('named.test') };
  const { id } = await store.write((trx) => createProfile({ vault, trx, workspaceId }, given));
  const [workload] = scene.workloads.started;
  for (const [proxyProfileId, expected] of [
    [id, 'named.test'],
    [null, '{}'],
  ] as const) {
    await store.write(async (trx) => {
      const row = trx.updateTable('deployments').set({ proxy_profile_id: proxyProfileId });
      await row.where('id', '=', deployment.id).execute();
      await notifyOfDeployment(trx, deployment.id);
    });
    await expect
      .poll(() => JSON.stringify(workload?.policies.at(-1)?.document), patience)
      .toContain(expected);
  }
  expect(scene.workloads.started).toHaveLength(1);
  expect(await scene.ask(deployment)).toMatchObject({ revision });
});

it('a revision of the same build has as many agent servers as it asks for', options, async () => {
  await scene.start();
  const deployment = await scene.deployments.addDeployment({ status: 'AWAITING_DATABASE' });
  for (const min_scale of [1, 3, 2]) {
    const revision = await scene.addRevision(deployment, { resources: { min_scale } });
    await expect.poll(() => scene.statusOf(revision), patience).toBe('DEPLOYED');
    const running = () => readdir(join(scene.directory, 'run'));
    await expect.poll(running, patience).toHaveLength(min_scale);
    expect(await scene.ask(deployment)).toMatchObject({ revision });
  }
});

it('a newer revision replaces one that cannot be started any more', options, async () => {
  await scene.start();
  const deployment = await scene.deployments.addDeployment({ status: 'AWAITING_DATABASE' });
  const lost = await scene.addRevision(deployment);
  await expect.poll(() => scene.statusOf(lost), patience).toBe('DEPLOYED');
  const { db } = scene.deployments.database.store;
  await db.updateTable('builds').set({ directory: '/no/such/build', removed_at: new Date() }).execute();
  // It begins again with what is left.
  await db.deleteFrom('runners').execute();
  await scene.workloads.started[0]?.ended;
  const reason = async () => {
    const row = db.selectFrom('deployments').select('status_reason').where('id', '=', deployment.id);
    return (await row.executeTakeFirstOrThrow()).status_reason;
  };
  await expect.poll(reason, patience).toContain('deploy it again');
  const next = await scene.addRevision(deployment);
  await expect.poll(() => scene.statusOf(next), patience).toBe('DEPLOYED');
  expect(await scene.ask(deployment)).toMatchObject({ revision: next });
  await expect.poll(reason, patience).toBeNull();
});
