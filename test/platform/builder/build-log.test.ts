// The lines of builds, in a real database.
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { BuildLog } from '../../../src/platform/builder/build-log.ts';
import { queryLogs } from '../../../src/platform/deployments/deployment-logs.ts';
import type { Database } from '../../../src/platform/store/database.ts';
import { createDeploymentScene, type DeploymentScene } from '../deployments/deployment-scene.ts';

let scene: DeploymentScene;
beforeAll(async () => {
  scene = await createDeploymentScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

const log = { warn: vi.fn() };

async function open({ maxChars, db = scene.database.store.db }: { maxChars?: number; db?: Database } = {}) {
  const deployment = await scene.addDeployment();
  const revisionId = await scene.addRevision(deployment, { status: 'BUILDING' });
  const build = { workspaceId: deployment.workspaceId, deploymentId: deployment.id, revisionId };
  const read = async () => {
    const page = { ...build, kind: 'build', limit: 5_000, order: 'asc' } as const;
    return queryLogs(scene.database.store.db, page);
  };
  return {
    timesOf: async () => (await read()).map(({ at }) => at.getTime()),
    lines: new BuildLog(db, build, {
      log,
      mask: (text) => text,
      ...(maxChars !== undefined && { maxChars }),
    }),
    async stored() {
      return (await read()).map(({ level, message }) => `${level} ${message}`);
    },
  };
}

it('lines are stored while the build runs, and all of them at its end', async () => {
  const { lines, stored } = await open();
  lines.add('INFO', 'one');
  await expect.poll(stored).toEqual(['INFO one']);
  for (let at = 0; at < 900; at += 1) lines.add('INFO', `line ${at}`);
  lines.add('WARNING', 'long', true);
  await lines.end('ERROR', 'it failed');
  const all = await stored();
  expect(all).toHaveLength(903);
  expect(all.slice(-3)).toEqual(['INFO line 899', 'WARNING long … (cut)', 'ERROR it failed']);
});

it('a build that prints without end has the last line nevertheless', async () => {
  const { lines, stored } = await open({ maxChars: 10_000 });
  for (let at = 0; at < 3_000; at += 1) lines.add('INFO', 'x'.repeat(100));
  await lines.end('ERROR', 'it failed');
  const all = await stored();
  expect(all.slice(-2)).toEqual([
    'WARNING the log of a build has at most 10 KiB: the rest is dropped',
    'ERROR it failed',
  ]);
  expect(all).toHaveLength(102);
});

it('lines that come faster than they may are counted', async () => {
  const { lines, stored } = await open();
  for (let at = 0; at < 5_000; at += 1) lines.add('INFO', 'x');
  await lines.end('INFO', 'done');
  const all = await stored();
  expect(all.find((line) => line.includes('lines were dropped'))).toBeDefined();
  expect(all.at(-1)).toBe('INFO done');
});

it('the last line has no time before that of the others, so that who follows by time reads it', async () => {
  const { lines, timesOf } = await open();
  for (let at = 0; at < 900; at += 1) lines.add('INFO', 'x');
  await lines.end('INFO', 'done');
  const times = await timesOf();
  expect(times).toEqual(times.toSorted((a, b) => a - b));
});

it('a database that is away for a moment loses no line', async () => {
  const { db } = scene.database.store;
  let failures = 0;
  const away = new Proxy(db, {
    get(target, name, receiver) {
      if (name === 'getExecutor' && failures < 2) {
        failures += 1;
        throw new Error('the connection is lost');
      }
      const value = Reflect.get(target, name, receiver);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const { lines, stored } = await open({ db: away });
  lines.add('INFO', 'one');
  await lines.end('INFO', 'two');
  expect(await stored()).toEqual(['INFO one', 'INFO two']);
  expect(failures).toBe(2);
});
