import { execFile } from 'node:child_process';
import { lstat, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { runCommand } from '../../src/box-host/command.ts';
import { removeTree } from '../../src/workload/tree-removal.ts';
import { canOccupy, occupy } from '../support/occupied-directory.ts';
import { createScratch, type Scratch } from '../support/scratch.ts';

const run = promisify(execFile);

/** An empty directory, removed whatever is in it. */
async function createTree(): Promise<{ tree: string; scratch: Scratch }> {
  const scratch = await createScratch();
  onTestFinished(() => scratch[Symbol.asyncDispose]());
  const tree = join(scratch.path, 'tree');
  await mkdir(tree);
  return { tree, scratch };
}

const isThere = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );

it('removes a tree, and nothing that its links lead to', async () => {
  const { tree, scratch } = await createTree();
  const outside = await scratch.write('outside', 'kept');
  await mkdir(join(scratch.path, 'directory'));
  const inside = await scratch.write('directory/inside', 'kept');
  await symlink(outside, join(tree, 'file'));
  await symlink(join(scratch.path, 'directory'), join(tree, 'directory'));
  await symlink('..', join(tree, 'up'));
  expect(await removeTree(tree)).toBe(true);
  expect(await isThere(tree)).toBe(false);
  expect(await Promise.all([outside, inside].map((file) => readFile(file, 'utf8')))).toEqual([
    'kept',
    'kept',
  ]);
});

it('removes a link itself, also one that leads nowhere', async () => {
  const { tree, scratch } = await createTree();
  const link = join(scratch.path, 'link');
  await symlink(tree, link);
  expect(await removeTree(link)).toBe(true);
  expect([await isThere(link), await isThere(tree)]).toEqual([false, true]);
});

it('has nothing to do where nothing is', async () => {
  const { tree } = await createTree();
  expect(await removeTree(join(tree, 'absent'))).toBe(true);
});

it.each(['/', 'relative', ''])('never removes %j', async (path) =>
  expect(await removeTree(path)).toBe(false),
);

it('removes a tree that is deeper than the longest path', { tags: ['long'] }, async () => {
  const { tree } = await createTree();
  // By steps: no path is that long.
  const script =
    'const { chdir } = process; for (let n = 0; n < 1200; n += 1) { mkdirSync("ddd"); chdir("ddd"); }';
  await run(process.execPath, ['-e', `const { mkdirSync } = require('node:fs'); ${script}`], { cwd: tree });
  expect(await removeTree(tree)).toBe(true);
});

it('removes names that look like options or contain line breaks', async () => {
  const { tree } = await createTree();
  for (const name of ['-rf', '--no-preserve-root', 'a\nb', ' ', '*']) await writeFile(join(tree, name), '');
  expect(await removeTree(tree)).toBe(true);
});

it('removes directories without permissions', async () => {
  const { tree } = await createTree();
  await mkdir(join(tree, 'closed', 'below'), { recursive: true });
  await writeFile(join(tree, 'closed', 'below', 'file'), '');
  await run('chmod', ['0', join(tree, 'closed', 'below'), join(tree, 'closed')]);
  expect(await removeTree(tree)).toBe(true);
});

it('tells that something protected is left, and fails for nobody', async ({ skip }) => {
  const { tree } = await createTree();
  await writeFile(join(tree, 'kept'), '');
  const { code } = await runCommand(['chattr', '+i', join(tree, 'kept')]);
  skip(code !== 0, 'this file system protects no file, or this user may not');
  try {
    expect(await removeTree(tree)).toBe(false);
  } finally {
    await run('chattr', ['-i', join(tree, 'kept')]);
  }
  expect(await removeTree(tree)).toBe(true);
});

it.skipIf(!canOccupy)('tries again for a while, and tells when something stays', async () => {
  const { tree } = await createTree();
  const free = await occupy(tree);
  expect(await removeTree(tree, { patienceMs: 20 })).toBe(false);
  const removed = removeTree(tree, { patienceMs: 20_000 });
  await free();
  expect(await removed).toBe(true);
});

it('stops when it takes too long, and continues the next time', async () => {
  const { tree } = await createTree();
  await run('/bin/bash', ['-c', 'for i in {1..10}; do mkdir d$i; (cd d$i; touch {1..50}); done'], {
    cwd: tree,
  });
  expect(await removeTree(tree, { timeoutMs: 0 })).toBe(false);
  expect(await removeTree(tree)).toBe(true);
});
