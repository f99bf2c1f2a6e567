import { readFile, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { publishFile, readPublishedBundle } from '../../../src/sidecar/state/published-bundle.ts';
import { createScratch } from '../../support/scratch.ts';

const umask = process.umask();
afterEach(() => process.umask(umask));

it('every user can read the bundle, which is replaced as a whole', async () => {
  await using scratch = await createScratch();
  const file = join(scratch.path, 'ca-bundle.pem');
  process.umask('077');
  await publishFile(file, Buffer.from('one'));
  const { mode, ino } = await stat(file);
  expect(mode & 0o777).toBe(0o644);
  await publishFile(file, Buffer.from('one'));
  expect((await stat(file)).ino).toBe(ino);
  await publishFile(file, Buffer.from('two'));
  expect(await readFile(file, 'utf8')).toBe('two');
  expect((await stat(file)).ino).not.toBe(ino);
  expect(await readdir(scratch.path)).toEqual(['ca-bundle.pem']);
});

it('what a kill left of the bundle is removed', async () => {
  await using scratch = await createScratch();
  const file = await scratch.write('ca-bundle.pem', 'one');
  await scratch.write('ca-bundle.pem.0123456789ab.tmp', 'half');
  await scratch.write('other.0123456789ab.tmp', 'theirs');
  await publishFile(file, Buffer.from('one'));
  expect((await readdir(scratch.path)).toSorted()).toEqual(['ca-bundle.pem', 'other.0123456789ab.tmp']);
});

it('a bundle that cannot be written leaves nothing behind', async () => {
  await using scratch = await createScratch();
  const file = join(scratch.path, 'none', 'ca-bundle.pem');
  await expect(publishFile(file, Buffer.from('one'))).rejects.toMatchObject({ code: 'ENOENT' });
  expect(await readdir(scratch.path)).toEqual([]);
});

it('a bundle of another CA does not count', async () => {
  await using scratch = await createScratch();
  const file = await scratch.write('ca-bundle.pem', 'ONE\nTWO\n');
  expect(await readPublishedBundle(file, 'TWO\n')).toBe('ONE\nTWO\n');
  expect(await readPublishedBundle(file, 'THREE\n', { attempts: 1 })).toBeUndefined();
  expect(await readPublishedBundle(`${file}.none`, 'TWO\n', { attempts: 1 })).toBeUndefined();
});

it('a bundle that is written a moment later is found', async () => {
  await using scratch = await createScratch();
  const file = join(scratch.path, 'ca-bundle.pem');
  const reading = readPublishedBundle(file, 'ONE\n', { attempts: Number.POSITIVE_INFINITY });
  await publishFile(file, Buffer.from('ONE\n'));
  expect(await reading).toBe('ONE\n');
});
