// Lines of several deployments on their way to a database: what one prints costs the others nothing, and what is left out is counted.
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { DomainError } from '../../../../src/base/domain-error.ts';
import { queryLogs } from '../../../../src/platform/deployments/deployment-logs.ts';
import { createDeployLogs } from '../../../../src/platform/runner/logs/deploy-logs.ts';
import {
  createDeploymentScene,
  type Deployment,
  type DeploymentScene,
} from '../../deployments/deployment-scene.ts';

let scene: DeploymentScene;
beforeAll(async () => {
  scene = await createDeploymentScene();
});
afterAll(() => scene?.[Symbol.asyncDispose]());
afterEach(() => void vi.useRealTimers());

const silent = { warn: () => undefined };
const plain = (text: string): string => text;

async function addRevision() {
  const deployment = await scene.addDeployment();
  const revisionId = await scene.addRevision(deployment);
  return {
    deployment,
    revision: { workspaceId: deployment.workspaceId, deploymentId: deployment.id, revisionId },
  };
}

async function logOf({ id: deploymentId, workspaceId }: Deployment): Promise<readonly string[]> {
  const page = { workspaceId, deploymentId, kind: 'deploy', limit: 5_000, order: 'asc' } as const;
  return (await queryLogs(scene.database.store.db, page)).map(({ message }) => message);
}

const line = (message: string) => ({ level: 'INFO', message, instance: randomUUID() }) as const;

it('a deployment that fills what may wait costs others no line', async () => {
  const [loud, quiet] = [await addRevision(), await addRevision()];
  const logs = createDeployLogs({ db: scene.database.store.db, log: silent, maxWaiting: 100_000 });
  const [flood, other] = [logs.open(loud.revision, plain), logs.open(quiet.revision, plain)];
  for (let count = 0; count < 100; count += 1) flood.add(line('x'.repeat(10_000)));
  other.add(line('important'));
  const limits = 'at most 1000 a second and 64 MiB an hour are kept';
  await expect.poll(() => logOf(loud.deployment)).toContainEqual(expect.stringContaining(limits));
  await logs.close();
  expect(await logOf(quiet.deployment)).toEqual(['important']);
  expect((await logOf(loud.deployment)).length).toBeLessThan(20);
});

it('lines that are shorter when they are stored leave the place that they do not need', async () => {
  const { deployment, revision } = await addRevision();
  const logs = createDeployLogs({ db: scene.database.store.db, log: silent, maxWaiting: 100_000 });
  const log = logs.open(revision, (text) => text.replace(/x+/, '***'));
  for (let count = 0; count < 100; count += 1) log.add(line('x'.repeat(10_000)));
  log.add(line('last'));
  await logs.close();
  expect(await logOf(deployment)).toHaveLength(101);
});

it('what is above the bytes of an hour is counted', async () => {
  const { deployment, revision } = await addRevision();
  const logs = createDeployLogs({
    db: scene.database.store.db,
    log: silent,
    hourlyBytes: 2 * 1024 ** 2,
    now: () => 0,
  });
  const log = logs.open(revision, plain);
  for (let count = 0; count < 300; count += 1) log.add(line('x'.repeat(10_000)));
  const dropped = '91 lines were dropped: at most 1000 a second and 2 MiB an hour are kept';
  await expect.poll(() => logOf(deployment)).toContain(dropped);
  await logs.close();
  expect(await logOf(deployment)).toHaveLength(210);
});

it('lines of several revisions are stored in the order in which they were printed', async () => {
  const { deployment, revision } = await addRevision();
  const next = { ...revision, revisionId: await scene.addRevision(deployment) };
  const logs = createDeployLogs({ db: scene.database.store.db, log: silent });
  const [old, young] = [logs.open(revision, plain), logs.open(next, plain)];
  for (const [log, message] of [
    [young, 'first'],
    [old, 'second'],
    [young, 'third'],
    [old, 'fourth'],
  ] as const) {
    const beganMs = Date.now();
    log.add(line(message));
    // Times of lines are whole milliseconds.
    await expect.poll(() => Date.now(), { interval: 1 }).toBeGreaterThan(beganMs + 1);
  }
  await logs.close();
  expect(await logOf(deployment)).toEqual(['first', 'second', 'third', 'fourth']);
});

it('a database that is away for a while gets every line', async () => {
  const { deployment, revision } = await addRevision();
  const { db } = scene.database.store;
  let isAway = true;
  const interrupted = db.withPlugin({
    transformQuery({ node }) {
      if (isAway) throw new DomainError('unavailable', 'The database cannot be reached');
      return node;
    },
    transformResult: async ({ result }) => result,
  });
  const warned: string[] = [];
  const warn = (_: unknown, message?: string): void => void warned.push(String(message));
  const logs = createDeployLogs({ db: interrupted as typeof db, log: { warn } as typeof silent });
  const log = logs.open(revision, plain);
  log.add(line('before'));
  await expect.poll(() => warned).toContain('lines of deployments wait to be stored');
  log.add(line('after'));
  log.close();
  isAway = false;
  await expect.poll(() => logOf(deployment)).toEqual(['before', 'after']);
  await logs.close();
});

it('the lines of two runners, one of which has a clock that is ahead, are in the order in which they were printed', async () => {
  const { deployment, revision } = await addRevision();
  const { db } = scene.database.store;
  const beganMs = Date.now();
  for (const [message, aheadMs] of [
    ['first', 3_600_000],
    ['second', -3_600_000],
    ['third', 0],
  ] as const) {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + aheadMs });
    const logs = createDeployLogs({ db, log: silent });
    logs.open(revision, plain).add(line(message));
    await logs.close();
    vi.useRealTimers();
  }
  const { id: deploymentId, workspaceId } = deployment;
  const page = { workspaceId, deploymentId, kind: 'deploy', limit: 10, order: 'asc' } as const;
  const rows = await queryLogs(db, page);
  expect(rows.map(({ message }) => message)).toEqual(['first', 'second', 'third']);
  for (const { at } of rows) expect(Math.abs(at.getTime() - beganMs)).toBeLessThan(60_000);
});
