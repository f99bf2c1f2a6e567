import { execFile } from 'node:child_process';
import {
  chmod,
  chown,
  link,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import {
  measureTree,
  openTree,
  sealTree,
  shareTree,
} from '../../../../src/platform/builder/output/sealed-tree.ts';
import { createScratch } from '../../../support/scratch.ts';

const run = promisify(execFile);
const isRoot = process.getuid?.() === 0;
const author = isRoot ? { uid: 61_234, gid: 61_235 } : undefined;
const own = { uid: process.getuid?.(), gid: process.getgid?.() };

/** `outside` is a file of somebody else beside the tree. */
async function createTree() {
  const scratch = await createScratch();
  const tree = join(scratch.path, 'tree');
  const outside = join(scratch.path, 'outside');
  await mkdir(join(tree, 'd'), { recursive: true });
  await writeFile(join(tree, 'd/file'), 'content', { mode: 0o600 });
  await writeFile(join(tree, 'tool'), '#!/bin/sh', { mode: 0o700 });
  await writeFile(outside, 'secret', { mode: 0o600 });
  const give = async (...names: readonly string[]): Promise<void> => {
    const { uid, gid } = author ?? {};
    for (const name of names)
      if (uid !== undefined && gid !== undefined) await chown(join(tree, name), uid, gid);
  };
  await give('.', 'd', 'd/file', 'tool');
  return {
    ...{ tree, outside, give },
    modeOf: async (name: string) => ((await lstat(join(tree, name))).mode & 0o7777).toString(8),
    async [Symbol.asyncDispose]() {
      await run('chmod', ['-R', 'u+w', scratch.path]);
      await scratch[Symbol.asyncDispose]();
    },
  };
}

describe('what a build wrote', () => {
  it('is ours, and read-only for everybody', async () => {
    await using made = await createTree();
    await chmod(join(made.tree, 'tool'), 0o6711);
    await chmod(join(made.tree, 'd'), 0o1700);
    await sealTree(made.tree, author);
    const modes = await Promise.all(['.', 'd', 'd/file', 'tool'].map(made.modeOf));
    expect(modes).toEqual(['555', '555', '444', '555']);
    for (const name of ['.', 'd', 'd/file', 'tool'])
      expect(await lstat(join(made.tree, name))).toMatchObject(own);
  });

  it('has links, which are not followed', async () => {
    await using made = await createTree();
    await symlink(made.outside, join(made.tree, 'link'));
    await symlink('..', join(made.tree, 'd/up'));
    await sealTree(made.tree, author);
    expect(await readlink(join(made.tree, 'link'))).toBe(made.outside);
    expect((await lstat(made.outside)).mode & 0o777).toBe(0o600);
  });

  it('has no pipe and no socket', async () => {
    await using made = await createTree();
    await run('mkfifo', [join(made.tree, 'd/pipe')]);
    const server = createServer().listen(join(made.tree, 'socket'));
    await new Promise((resolve) => server.once('listening', resolve));
    await sealTree(made.tree, author);
    server.close();
    expect((await readdir(made.tree, { recursive: true })).toSorted()).toEqual(['d', 'd/file', 'tool']);
  });

  it.runIf(isRoot)('has no hard link to a file of somebody else, which stays as it is', async () => {
    await using made = await createTree();
    await link(made.outside, join(made.tree, 'd/stolen'));
    await link(join(made.tree, 'd/file'), join(made.tree, 'again'));
    await sealTree(made.tree, author);
    expect((await readdir(made.tree, { recursive: true })).toSorted()).toEqual([
      'again',
      'd',
      'd/file',
      'tool',
    ]);
    expect(await lstat(made.outside)).toMatchObject({ ...own, nlink: 1, mode: 0o100600 });
  });

  it('may be opened again for another build', async () => {
    await using made = await createTree();
    await sealTree(made.tree, author);
    await openTree(made.tree, author);
    expect(await made.modeOf('d')).toBe('755');
    expect(await lstat(join(made.tree, 'd/file'))).toMatchObject({ ...own, ...author });
  });

  it('is shared with one reader', async () => {
    await using made = await createTree();
    await sealTree(made.tree, author);
    await shareTree(made.tree, undefined);
    expect(await made.modeOf('.')).toBe('500');
    await shareTree(made.tree, author && { uid: 61_300, gid: 61_301 });
    if (!isRoot) return;
    expect(await made.modeOf('.')).toBe('550');
    expect(await lstat(made.tree)).toMatchObject({ uid: 0, gid: 61_301 });
  });

  it('is measured', async () => {
    await using made = await createTree();
    await writeFile(join(made.tree, 'large'), Buffer.alloc(1024 * 1024, 1));
    await link(join(made.tree, 'large'), join(made.tree, 'again'));
    const bytes = await measureTree(made.tree);
    expect(bytes).toBeGreaterThan(1024 * 1024);
    expect(bytes).toBeLessThan(2 * 1024 * 1024);
    expect(await readFile(join(made.tree, 'd/file'), 'utf8')).toBe('content');
  });
});
