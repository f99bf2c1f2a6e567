import { lstat, mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { createOwnedDirectory } from '../../src/workload/owned-directory.ts';
import { createScratch } from '../support/scratch.ts';

const isRoot = process.getuid?.() === 0;

async function createPlace(): Promise<string> {
  const scratch = await createScratch();
  onTestFinished(() => scratch[Symbol.asyncDispose]());
  return join(scratch.path, 'owned');
}

it('is private to the user of this process without another one', async () => {
  const path = await createPlace();
  await createOwnedDirectory(path, undefined);
  const { mode, uid } = await lstat(path);
  expect([mode & 0o777, uid]).toEqual([0o700, process.getuid?.()]);
});

it.skipIf(!isRoot)('is private to its user', async () => {
  const path = await createPlace();
  await createOwnedDirectory(path, { uid: 254_321, gid: 254_322 });
  const { mode, uid, gid } = await lstat(path);
  expect([mode & 0o777, uid, gid]).toEqual([0o700, 254_321, 254_322]);
});

it('is never one that is there already, nor what a link leads to', async () => {
  const path = await createPlace();
  await mkdir(`${path}-other`);
  await symlink(`${path}-other`, path);
  await expect(createOwnedDirectory(path, undefined)).rejects.toThrow('EEXIST');
});
