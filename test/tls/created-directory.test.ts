import { mkdir, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createDirectories } from '../../src/tls/pem-files.ts';
import { createScratch } from '../support/scratch.ts';

it('creates those above it too, and returns the first; nothing if it is there', async () => {
  await using scratch = await createScratch();
  const directory = join(scratch.path, 'a', 'b', 'c');
  expect(createDirectories(directory, 0o700)).toBe(join(scratch.path, 'a'));
  expect((await stat(directory)).mode & 0o777).toBe(0o700);
  expect(createDirectories(directory, 0o700)).toBeUndefined();
  expect(createDirectories('/', 0o700)).toBeUndefined();
});

it('follows a link to a directory', async () => {
  await using scratch = await createScratch();
  await mkdir(join(scratch.path, 'real'));
  await symlink('real', join(scratch.path, 'link'));
  expect(createDirectories(join(scratch.path, 'link', 'new'), 0o700)).toBe(join(scratch.path, 'link', 'new'));
});

it('fails where a part of the path is a file, or a link to nothing', async () => {
  await using scratch = await createScratch();
  const file = await scratch.write('file', '');
  await symlink('nothing', join(scratch.path, 'link'));
  expect(() => createDirectories(file, 0o700)).toThrow('EEXIST');
  expect(() => createDirectories(join(file, 'below', 'it'), 0o700)).toThrow('ENOTDIR');
  expect(() => createDirectories(join(scratch.path, 'link', 'below'), 0o700)).toThrow('EEXIST');
});

it.runIf(process.platform === 'linux')(
  'fails, and returns, where nothing can be created, as in /proc',
  () => {
    expect(() => createDirectories('/proc/sallyport', 0o700)).toThrow('ENOENT');
    expect(() => createDirectories('/proc/sallyport/below', 0o700)).toThrow('ENOENT');
  },
);
