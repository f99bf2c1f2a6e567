// Builds from uploads to directories, with a real database and real processes that nothing isolates.
import { lstat, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Deployment } from '../deployments/deployment-scene.ts';
import { archive } from '../../support/archive-bytes.ts';
import { gzipSync } from 'node:zlib';
import { removeTree } from '../../../src/workload/tree-removal.ts';
import { type BuilderScene, createBuilderScene, type Files, graphFile } from './builder-scene.ts';
import { createPlainWorkloads } from './plain-workloads.ts';

const workloads = createPlainWorkloads();
let scene: BuilderScene;
let running: Awaited<ReturnType<BuilderScene['start']>>;
beforeAll(async () => {
  scene = await createBuilderScene();
  running = await scene.start({ workloads });
});
afterAll(async () => {
  await running.stop();
  await scene[Symbol.asyncDispose]();
});

const lock = (name: string): Files => ({
  'package.json': { dependencies: { [name]: '1' } },
  'package-lock.json': { lockfileVersion: 3, packages: {} },
});

async function become(revisionId: string, status: string): Promise<void> {
  await expect.poll(() => scene.statusOf(revisionId)).toBe(status);
}

/** Its last line. */
async function whenLogged(deployment: Deployment, revisionId: string, line: RegExp): Promise<void> {
  await expect.poll(async () => (await scene.logOf(deployment, revisionId)).at(-1)).toMatch(line);
}

/** A program of Node as a build_command: no shell reads it. */
const script = (code: string): Files => ({ 'script.mjs': code });
const runsScript = { config: { build_command: 'node script.mjs' } };

describe('a source', () => {
  it('is built, and its directory is read-only', async () => {
    const deployment = await scene.addDeployment();
    const revisionId = await scene.addRevision(deployment, graphFile);
    await become(revisionId, 'AWAITING_DEPLOY');
    const directory = await scene.directoryOf(revisionId);
    expect(await readFile(join(directory, 'agent.mjs'), 'utf8')).toBe('export const graph = {};');
    expect((await lstat(join(directory, 'agent.mjs'))).mode & 0o222).toBe(0);
    expect((await lstat(directory)).mode & 0o777).toBe(0o500);
    await whenLogged(deployment, revisionId, /^INFO built in/);
    expect(await scene.logOf(deployment, revisionId)).toEqual([
      'INFO the source has 2 files and directories',
      expect.stringMatching(/^INFO built in \d+\.\d s: 0\.\d MiB$/),
    ]);
  });

  it('is installed by its lock file, then by its commands, in the order and the directories of these', async () => {
    const deployment = await scene.addDeployment();
    const files = {
      ...lock('left'),
      'app/langgraph.json': { graphs: { agent: './dist/agent.mjs:graph' } },
      ...{
        'app/build.mjs':
          'import fs from "node:fs"; fs.mkdirSync("dist"); fs.writeFileSync("dist/agent.mjs", process.argv[2]);',
      },
    };
    const config = {
      build_command: "node build.mjs 'export const graph = 1' && node -e console.log(process.env.CI)",
    };
    const revisionId = await scene.addRevision(deployment, files, {
      config,
      configPath: 'app/langgraph.json',
    });
    await become(revisionId, 'AWAITING_DEPLOY');
    const directory = await scene.directoryOf(revisionId);
    expect(await readFile(join(directory, 'app/dist/agent.mjs'), 'utf8')).toBe('export const graph = 1');
    expect(await readFile(join(directory, 'node_modules/left/index.js'), 'utf8')).toContain('left');
    await whenLogged(deployment, revisionId, /^INFO built in/);
    expect(await scene.logOf(deployment, revisionId)).toEqual([
      'INFO the source has 4 files and directories',
      'INFO packages are installed by package-lock.json',
      'INFO $ npm ci --no-audit --no-fund',
      'INFO nothing isolates it',
      'INFO added 1',
      'INFO $ node build.mjs export const graph = 1',
      'INFO $ node -e console.log(process.env.CI)',
      'INFO true',
      expect.stringMatching(/^INFO built in/),
    ]);
  });

  it('whose lock file did not change is not installed again, in its own workspace alone', async () => {
    const { started } = workloads;
    const before = started.length;
    const first = await scene.addDeployment();
    const files = { ...graphFile, ...lock('kept') };
    const one = await scene.addRevision(first, files);
    await become(one, 'AWAITING_DEPLOY');
    expect(started).toHaveLength(before + 1);
    const sibling = await scene.addDeployment(first.workspaceId);
    const two = await scene.addRevision(sibling, { ...files, 'agent.mjs': 'export const graph = 2;' });
    await become(two, 'AWAITING_DEPLOY');
    expect(started).toHaveLength(before + 1);
    await expect
      .poll(() => scene.logOf(sibling, two))
      .toContain('INFO they were installed before and have not changed');
    const inodes = [one, two].map(
      async (id) => (await lstat(join(await scene.directoryOf(id), 'node_modules/kept/index.js'))).ino,
    );
    expect(new Set(await Promise.all(inodes)).size).toBe(1);
    const foreign = await scene.addDeployment();
    await become(await scene.addRevision(foreign, files), 'AWAITING_DEPLOY');
    expect(started).toHaveLength(before + 2);
  });

  it('that builds further has packages of its own, which it may change', async () => {
    const deployment = await scene.addDeployment();
    const change = 'import fs from "node:fs"; fs.appendFileSync("node_modules/mine/index.js", "// changed");';
    const files = { ...graphFile, ...lock('mine'), ...script(change) };
    const one = await scene.addRevision(deployment, files, runsScript);
    await become(one, 'AWAITING_DEPLOY');
    const two = await scene.addRevision(await scene.addDeployment(deployment.workspaceId), files);
    await become(two, 'AWAITING_DEPLOY');
    const contentOf = async (id: string) =>
      readFile(join(await scene.directoryOf(id), 'node_modules/mine/index.js'), 'utf8');
    expect([await contentOf(one), await contentOf(two)].map((text) => text.includes('changed'))).toEqual([
      true,
      false,
    ]);
  });

  it('shows no secret of its deployment in its log or its reason, although its archive has it', async () => {
    const deployment = await scene.addDeployment();
    const value = 'canary-of-a-deployment';
    const print = `console.log("key: ${value}"); process.exit(3)`;
    const files = { ...graphFile, ...script(print) };
    const options = { config: { build_command: `node script.mjs ${value}` }, secrets: { KEY: value } };
    const revisionId = await scene.addRevision(deployment, files, options);
    await become(revisionId, 'BUILD_FAILED');
    await whenLogged(deployment, revisionId, /failed: it ended with code 3$/);
    const log = await scene.logOf(deployment, revisionId);
    expect(log).toContain('INFO key: ***');
    expect([...log, await scene.reasonOf(revisionId)].join()).not.toContain(value);
  });

  it('that asks for its own installation is not installed by its lock file', async () => {
    const deployment = await scene.addDeployment();
    const config = { install_command: 'node -e console.log(1)' };
    const revisionId = await scene.addRevision(deployment, { ...graphFile, ...lock('left') }, { config });
    await become(revisionId, 'AWAITING_DEPLOY');
    await whenLogged(deployment, revisionId, /^INFO built in/);
    expect((await scene.logOf(deployment, revisionId)).join()).not.toContain('npm ci');
  });
});

describe('a build fails with a reason', () => {
  const rows: readonly (readonly [string, Files | Uint8Array, object, string, RegExp])[] = [
    ['no archive', Buffer.from('text'), {}, 'CREATE_FAILED', /not compressed by gzip/],
    [
      'a hostile archive',
      gzipSync(archive([{ name: '../x' }])),
      {},
      'CREATE_FAILED',
      /"\.\.\/x" leads outside/,
    ],
    ['no configuration', { 'a.js': '' }, {}, 'CREATE_FAILED', /no langgraph\.json in the archive/],
    [
      'a wrong configuration',
      { 'langgraph.json': { graphs: { a: 'x' } } },
      {},
      'CREATE_FAILED',
      /langgraph\.json: graphs\.a: must be file:export/,
    ],
    [
      'a graph that is not there',
      { 'langgraph.json': { graphs: { a: './x.ts:graph' } } },
      {},
      'CREATE_FAILED',
      /graphs\.a: \.\/x\.ts does not exist/,
    ],
    [
      'a graph that the build does not write',
      { ...script(''), 'langgraph.json': { graphs: { a: './x.ts:graph' } } },
      runsScript,
      'BUILD_FAILED',
      /graphs\.a: \.\/x\.ts does not exist/,
    ],
    [
      'a package that is not there',
      { ...graphFile, ...lock('missing') },
      {},
      'BUILD_FAILED',
      /`npm ci --no-audit --no-fund` failed: it ended with code 1/,
    ],
    [
      'a command that fails',
      { ...graphFile, ...script('process.exit(3)') },
      runsScript,
      'BUILD_FAILED',
      /`node script\.mjs` failed: it ended with code 3/,
    ],
    [
      'a command that is not there',
      graphFile,
      { config: { build_command: 'absent' } },
      'BUILD_FAILED',
      /could not be started/,
    ],
    [
      'a command with a shell',
      graphFile,
      { config: { build_command: 'a | b' } },
      'BUILD_FAILED',
      /build_command: it contains "\|"/,
    ],
    [
      'a link out of the source',
      {
        ...graphFile,
        ...script(
          'import fs from "node:fs"; fs.rmSync("agent.mjs"); fs.symlinkSync("/etc/passwd", "agent.mjs");',
        ),
      },
      runsScript,
      'BUILD_FAILED',
      /agent\.mjs is outside of the archive/,
    ],
    [
      'a directory that is gone',
      { ...graphFile, ...script('import fs from "node:fs"; fs.rmSync(process.cwd(), { recursive: true });') },
      runsScript,
      'BUILD_FAILED',
      /removed its own directory/,
    ],
  ];
  it.each(rows)('%s', async (_, files, options, status, reason) => {
    const before = await scene.left();
    const deployment = await scene.addDeployment();
    const revisionId = await scene.addRevision(deployment, files, options);
    await become(revisionId, status);
    expect(await scene.reasonOf(revisionId)).toMatch(reason);
    await whenLogged(deployment, revisionId, reason);
    await expect.poll(() => running.ends.get(revisionId)).toBe(status.toLowerCase());
    const { owners } = workloads;
    expect([...owners].filter((owner) => owner.startsWith('build-'))).toEqual([]);
    expect(await scene.left()).toEqual(before);
  });

  it.each([
    Object.assign(new Error('it was not written'), { code: 'ENOSPC' }),
    new Error("the packages could not be copied: cp: error writing 'x': No space left on device"),
  ])('a disk that is full: %s', async (error) => {
    const deployment = await scene.addDeployment();
    vi.spyOn(workloads, 'userOf').mockRejectedValueOnce(error);
    const revisionId = await scene.addRevision(deployment, graphFile);
    await become(revisionId, 'BUILD_FAILED');
    expect(await scene.reasonOf(revisionId)).toBe('no space is left on the machine that builds');
  });

  it('not a machine that fails once', async () => {
    const deployment = await scene.addDeployment();
    vi.spyOn(workloads, 'userOf').mockRejectedValueOnce(new Error('the bucket does not respond'));
    const revisionId = await scene.addRevision(deployment, graphFile);
    await become(revisionId, 'AWAITING_DEPLOY');
    expect(await scene.logOf(deployment, revisionId)).toContainEqual(
      expect.stringMatching(/^WARNING the machine that builds has failed: .* begins again$/),
    );
  });

  it('a machine that fails each time', { tags: ['long'] }, async () => {
    const deployment = await scene.addDeployment();
    const failing = vi.spyOn(workloads, 'userOf').mockRejectedValue(new Error('the bucket does not respond'));
    const revisionId = await scene.addRevision(deployment, graphFile);
    await expect.poll(() => scene.statusOf(revisionId), { timeout: 10_000 }).toBe('BUILD_FAILED');
    expect(await scene.reasonOf(revisionId)).toMatch(/^the machine that builds has failed/);
    failing.mockRestore();
  });

  it('not what its host user has left, which is released later', async () => {
    const deployment = await scene.addDeployment();
    vi.spyOn(workloads, 'releaseUser').mockRejectedValueOnce(new Error('a process does not end'));
    const revisionId = await scene.addRevision(deployment, graphFile);
    await become(revisionId, 'AWAITING_DEPLOY');
    await expect
      .poll(() => [...workloads.owners].filter((owner) => owner.startsWith('build-')), { timeout: 10_000 })
      .toEqual([]);
  });

  it('a source that is not what was uploaded', async () => {
    const deployment = await scene.addDeployment();
    const revisionId = await scene.addRevision(deployment, graphFile, { sha256: 'ab' });
    await become(revisionId, 'CREATE_FAILED');
    expect(await scene.reasonOf(revisionId)).toContain('is not what was uploaded');
  });
});

describe('the directory of a build that is gone', () => {
  it('is not kept any more, although its revision is the active one', async () => {
    const deployment = await scene.addDeployment();
    const [lost, kept] = [
      await scene.addRevision(deployment, graphFile),
      await scene.addRevision(deployment, graphFile),
    ];
    for (const one of [lost, kept]) await become(one, 'AWAITING_DEPLOY');
    const { db } = scene.store;
    await db.updateTable('revisions').set({ status: 'DEPLOYED' }).where('id', 'in', [lost, kept]).execute();
    const active = db.updateTable('deployments').set({ active_revision_id: lost });
    await active.where('id', '=', deployment.id).execute();
    await removeTree(await scene.directoryOf(lost));
    // It looks when it begins.
    await using _ = await scene.start();
    const removed = async () => {
      const rows = db
        .selectFrom('builds as b')
        .innerJoin('revisions as r', 'r.build_id', 'b.id')
        .select('r.id');
      const all = await rows
        .where('r.deployment_id', '=', deployment.id)
        .where('removed_at', 'is not', null)
        .execute();
      return all.map(({ id }) => id);
    };
    await expect.poll(removed, { timeout: 10_000 }).toEqual([lost]);
  });
});
