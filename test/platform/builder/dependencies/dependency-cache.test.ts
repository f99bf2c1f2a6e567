import { lstat, mkdir, readdir, readFile, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { DependencyCache } from '../../../../src/platform/builder/dependencies/dependency-cache.ts';
import { copyTree } from '../../../../src/platform/builder/dependencies/tree-copy.ts';
import { createScratch } from '../../../support/scratch.ts';

const silent = { warn: () => undefined };

async function createCache(maxBytes = 100) {
  const scratch = await createScratch();
  const directory = join(scratch.path, 'cache');
  const cache = await DependencyCache.open(directory, maxBytes, silent);
  let made = 0;
  return {
    ...{ cache, directory, path: scratch.path },
    async add(workspace: string, key: string, bytes: number, to = cache) {
      const tree = join(scratch.path, `tree-${(made += 1)}`);
      await mkdir(tree, { mode: 0o555 });
      await writeFile(join(tree, 'package'), `${workspace} ${key}`).catch(() => undefined);
      return to.add(workspace, key, { tree, bytes });
    },
    [Symbol.asyncDispose]: () => scratch[Symbol.asyncDispose](),
  };
}

const has = (cache: DependencyCache, workspace: string, key: string): boolean => {
  const held = cache.hold(workspace, key);
  held?.release();
  return held !== undefined;
};

it('a tree is found by its workspace and key alone', async () => {
  await using made = await createCache();
  expect(await made.add('w1', 'a1', 10)).toBe(true);
  const held = made.cache.hold('w1', 'a1');
  expect(held?.path).toBe(join(made.directory, 'w1/a1/tree'));
  held?.release();
  expect([has(made.cache, 'w2', 'a1'), has(made.cache, 'w1', 'a2')]).toEqual([false, false]);
  expect((await lstat(made.directory)).mode & 0o777).toBe(0o700);
});

it('of two builds that installed the same, the first is kept', async () => {
  await using made = await createCache();
  const added = await Promise.all([made.add('w1', 'a1', 10), made.add('w1', 'a1', 10)]);
  expect(added.toSorted()).toEqual([false, true]);
  expect(made.cache.bytes).toBe(10);
});

it('a tree is held when it is there, and not while it is being taken over', async () => {
  await using made = await createCache();
  const adding = made.add('w1', 'a1', 10);
  let path: string | undefined;
  while (path === undefined) {
    const held = made.cache.hold('w1', 'a1');
    path = held?.path;
    if (held !== undefined) expect(await readFile(join(held.path, 'package'), 'utf8')).toBe('w1 a1');
    held?.release();
    await setImmediate();
  }
  expect(await adding).toBe(true);
});

it('the tree that was not used for longest goes, and never one that is held', async () => {
  await using made = await createCache(30);
  await made.add('w1', 'a1', 10);
  await made.add('w1', 'a2', 10);
  const held = made.cache.hold('w1', 'a1');
  await made.add('w1', 'a3', 10);
  await made.add('w1', 'a4', 10);
  await made.add('w1', 'a5', 10);
  expect(['a1', 'a2', 'a3', 'a4', 'a5'].map((key) => has(made.cache, 'w1', key))).toEqual([
    ...[true, false, false, true, true],
  ]);
  held?.release();
  expect((await readdir(join(made.directory, 'w1'))).toSorted()).toEqual(['a1', 'a4', 'a5']);
  expect(made.cache.bytes).toBe(30);
});

it('a workspace displaces its own trees, and not those of others', async () => {
  await using made = await createCache(50);
  await made.add('quiet', 'a1', 10);
  for (let n = 0; n < 10; n += 1) await made.add('loud', `b${n}`, 10);
  expect(has(made.cache, 'quiet', 'a1')).toBe(true);
  expect(made.cache.bytes).toBe(50);
});

it('a tree that is larger than the whole cache is not kept', async () => {
  await using made = await createCache();
  expect(await made.add('w1', 'a1', 101)).toBe(false);
  expect(has(made.cache, 'w1', 'a1')).toBe(false);
});

it('after a restart it is what it was, without what was not finished', async () => {
  await using made = await createCache();
  await made.add('w1', 'a1', 60);
  await made.add('w1', 'a2', 20);
  await utimes(join(made.directory, 'w1/a2/entry.json'), 1, 1);
  await mkdir(join(made.directory, '.unfinished-1/tree'), { recursive: true });
  await mkdir(join(made.directory, 'w2/b1/tree'), { recursive: true });
  await writeFile(join(made.directory, 'w2/b1/entry.json'), '{"by');
  const again = await DependencyCache.open(made.directory, 70, silent);
  expect([has(again, 'w1', 'a1'), has(again, 'w1', 'a2'), has(again, 'w2', 'b1')]).toEqual([
    true,
    false,
    false,
  ]);
  expect((await readdir(made.directory)).toSorted()).toEqual(['w1', 'w2']);
  expect(await readdir(join(made.directory, 'w2'))).toEqual([]);
});

it('a copy has files of its own, a shared one the same', async () => {
  await using made = await createCache();
  const tree = join(made.path, 'tree');
  await mkdir(join(tree, 'd'), { recursive: true });
  await writeFile(join(tree, 'd/file'), 'content', { mode: 0o444 });
  await copyTree(tree, join(made.path, 'copied'), 'copied');
  await copyTree(tree, join(made.path, 'shared'), 'shared');
  const inodes = ['tree', 'copied', 'shared'].map(
    async (name) => (await lstat(join(made.path, name, 'd/file'))).ino,
  );
  const [source, copied, shared] = await Promise.all(inodes);
  expect([copied === source, shared === source]).toEqual([false, true]);
  expect(await readFile(join(made.path, 'copied/d/file'), 'utf8')).toBe('content');
});

it('a file beside the trees is left alone, with a line of the log, and the trees are there', async () => {
  await using made = await createCache();
  expect(await made.add('w1', 'a1', 10)).toBe(true);
  for (const name of ['stray', 'w1/stray']) await writeFile(join(made.directory, name), 'x');
  const warned: unknown[] = [];
  const log = { warn: (fields: { path?: string }) => void warned.push(fields.path) };
  const again = await DependencyCache.open(made.directory, 100, log as never);
  expect([has(again, 'w1', 'a1'), again.bytes]).toEqual([true, 10]);
  expect(warned).toEqual([join(made.directory, 'stray')]);
  expect(await readFile(join(made.directory, 'stray'), 'utf8')).toBe('x');
});
