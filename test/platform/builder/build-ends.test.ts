// Builds that end by something else than themselves: newer revisions, deleted deployments, and processes that stop or are killed.
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { endUnwanted, notifyOfDeployment } from '../../../src/platform/deployments/revision-moves.ts';
import { canOccupy, occupy } from '../../support/occupied-directory.ts';
import { type BuilderScene, createBuilderScene, graphFile } from './builder-scene.ts';
import { createPlainWorkloads } from './plain-workloads.ts';

let scene: BuilderScene;
beforeEach(async () => {
  scene = await createBuilderScene();
});
afterEach(() => scene[Symbol.asyncDispose]());

const endless = { ...graphFile, 'script.mjs': 'console.log("waiting"); setInterval(() => {}, 1000)' };
const runsScript = { config: { build_command: 'node script.mjs' } };

const whenWaiting = (deployment: Parameters<BuilderScene['logOf']>[0], revisionId: string) =>
  expect.poll(() => scene.logOf(deployment, revisionId)).toContain('INFO waiting');

it('a build whose revision is not wanted any more is ended, and nothing of it is left', async () => {
  await using running = await scene.start();
  const deployment = await scene.addDeployment();
  const revisionId = await scene.addRevision(deployment, endless, runsScript);
  await whenWaiting(deployment, revisionId);
  await scene.store.write(async (trx) => {
    await endUnwanted(trx, { deploymentId: deployment.id, actor: 'system', reason: 'a newer one came' });
    await notifyOfDeployment(trx, deployment.id);
  });
  await expect.poll(() => running.ends.get(revisionId)).toBe('interrupted');
  expect(await scene.statusOf(revisionId)).toBe('INTERRUPTED');
  expect((await scene.logOf(deployment, revisionId)).at(-1)).toMatch(/^WARNING the build was ended: a newer/);
  expect(await scene.left()).toEqual({ builds: [], installations: [] });
});

it('a process that stops leaves its build to the next one, which begins it again', {
  tags: ['long'],
}, async () => {
  const first = await scene.start();
  const deployment = await scene.addDeployment();
  const revisionId = await scene.addRevision(deployment, endless, runsScript);
  await whenWaiting(deployment, revisionId);
  await first.stop();
  expect(first.ends.get(revisionId)).toBe('abandoned');
  expect(await scene.statusOf(revisionId)).toBe('BUILDING');
  expect(await scene.left()).toEqual({ builds: [], installations: [] });
  await using second = await scene.start({ settings: { timeoutMs: 500 } });
  await expect.poll(() => second.ends.get(revisionId)).toBe('build_failed');
  const log = await scene.logOf(deployment, revisionId);
  expect(log).toContainEqual(expect.stringContaining('its machine stops: it begins again'));
  // A stop is no attempt: however often a machine stops, its builds do not fail by it.
  expect(log).not.toContainEqual(expect.stringContaining('attempt 2'));
  expect(await scene.reasonOf(revisionId)).toBe('`node script.mjs` failed: it took longer than allowed');
});

it('what a killed process has left is removed by the next one, and what a revision may need is not', async () => {
  const first = await scene.start();
  const deployment = await scene.addDeployment();
  const revisionId = await scene.addRevision(deployment, graphFile);
  await expect.poll(() => scene.statusOf(revisionId)).toBe('AWAITING_DEPLOY');
  await first.stop();
  const kept = await scene.left();
  for (const name of ['builds/00000000-0000-4000-8000-000000000000', 'installations/one']) {
    await mkdir(join(scene.directory, name), { recursive: true });
    await writeFile(join(scene.directory, name, 'file'), '');
  }
  await using _second = await scene.start();
  await expect.poll(() => scene.left()).toEqual(kept);
  expect(await readdir(await scene.directoryOf(revisionId))).toContain('langgraph.json');
});

it.skipIf(!canOccupy)(
  'a build of a killed process begins again when its directory can be removed',
  async () => {
    const deployment = await scene.addDeployment();
    const revisionId = await scene.addRevision(deployment, graphFile);
    const buildId = await scene.claimAndDie();
    const free = await occupy(join(scene.directory, 'builds', buildId));
    await using running = await scene.start({ patienceMs: 20_000 });
    await expect.poll(() => running.builder.running).toBe(1);
    await free();
    await expect.poll(() => running.ends.get(revisionId)).toBe('ready');
    expect(await scene.left()).toEqual({ builds: [buildId], installations: [] });
  },
);

it.skipIf(!canOccupy)('a build of a killed process begins elsewhere where its directory stays', async () => {
  const deployment = await scene.addDeployment();
  const revisionId = await scene.addRevision(deployment, graphFile);
  const buildId = await scene.claimAndDie();
  const workloads = createPlainWorkloads();
  await workloads.userOf(`build-${buildId}`);
  const free = await occupy(join(scene.directory, 'builds', buildId));
  await using running = await scene.start({ workloads, patienceMs: 0 });
  await expect.poll(() => running.ends.get(revisionId)).toBe('ready');
  const directory = await scene.directoryOf(revisionId);
  expect(basename(directory)).not.toBe(buildId);
  const log = await scene.logOf(deployment, revisionId);
  expect(log).toContainEqual(expect.stringMatching(/^WARNING what an earlier attempt has left/));
  // Nothing of the build has failed: its attempt is the one that the killed process had begun.
  const attempts = scene.store.db
    .selectFrom('builds')
    .select(['attempts'])
    .where('directory', '=', directory);
  expect(await attempts.execute()).toEqual([{ attempts: 2 }]);
  await free();
  await expect.poll(() => scene.left()).toEqual({ builds: [basename(directory)], installations: [] });
  expect([...workloads.owners].filter((owner) => owner.startsWith('build-'))).toEqual([]);
});

it('the host user of a build that nobody begins again is released', async () => {
  const workloads = createPlainWorkloads();
  await workloads.userOf('build-00000000-0000-4000-8000-000000000000');
  await workloads.userOf('of-somebody-else');
  await using _running = await scene.start({ workloads });
  await expect.poll(() => [...workloads.owners]).toEqual(['of-somebody-else']);
});

it('builds of a deployment that goes are removed', async () => {
  await using running = await scene.start();
  const deployment = await scene.addDeployment();
  const revisionId = await scene.addRevision(deployment, graphFile);
  await expect.poll(() => running.ends.get(revisionId)).toBe('ready');
  await running.builder.removeBuilds(deployment.id);
  expect(await scene.left()).toEqual({ builds: [], installations: [] });
});

it('builds of a deployment that goes are removed before the builder runs', async () => {
  const first = await scene.start();
  const deployment = await scene.addDeployment();
  const revisionId = await scene.addRevision(deployment, graphFile);
  await expect.poll(() => first.ends.get(revisionId)).toBe('ready');
  await first.stop();
  await scene.createBuilder().removeBuilds(deployment.id);
  expect(await scene.left()).toEqual({ builds: [], installations: [] });
});

it('no more builds run at once than the machine may', { tags: ['long'] }, async () => {
  await using running = await scene.start({ settings: { concurrency: 2, timeoutMs: 1_500 } });
  const deployments = await Promise.all([1, 2, 3].map(() => scene.addDeployment()));
  const revisions = await Promise.all(deployments.map((one) => scene.addRevision(one, endless, runsScript)));
  await expect.poll(() => running.builder.running).toBe(2);
  const statuses = await Promise.all(revisions.map((id) => scene.statusOf(id)));
  expect(statuses.toSorted()).toEqual(['BUILDING', 'BUILDING', 'QUEUED']);
  await expect.poll(() => running.ends.size).toBe(3);
});

it('a machine that cannot prepare itself for builds tries again until it can', async () => {
  const blocking = join(scene.directory, 'packages');
  await mkdir(scene.directory, { recursive: true });
  // As a file system that fails: the cache of packages cannot be listed.
  await rm(blocking, { recursive: true, force: true });
  await writeFile(blocking, '');
  const failed = Promise.withResolvers<void>();
  await using running = await scene.start({ onError: failed.resolve });
  await failed.promise;
  const deployment = await scene.addDeployment();
  const revisionId = await scene.addRevision(deployment, graphFile);
  await rm(blocking);
  await expect.poll(() => scene.statusOf(revisionId)).toBe('AWAITING_DEPLOY');
  await expect.poll(() => running.ends.get(revisionId)).toBe('ready');
});
