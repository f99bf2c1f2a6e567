import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { HiddenPaths } from '../../../src/box-host/bubblewrap/hidden-paths.ts';
import { createScratch } from '../../support/scratch.ts';

it('what is hidden is searched for again after a package was installed, and not before', async () => {
  await using scratch = await createScratch();
  const database = join(scratch.path, 'status');
  let searches = 0;
  const find = async () => [{ path: `/usr/found-${(searches += 1)}`, isDirectory: false }];
  const hidden = new HiddenPaths(find, [database, scratch.path, join(scratch.path, 'none')]);
  const both = await Promise.all([hidden.current(), hidden.current()]);
  expect([...both, await hidden.current()].map(([first]) => first?.path)).toEqual(
    Array.from({ length: 3 }, () => '/usr/found-1'),
  );
  await writeFile(database, 'a package');
  expect(await hidden.current()).toMatchObject([{ path: '/usr/found-2' }]);
  expect(await hidden.current()).toMatchObject([{ path: '/usr/found-2' }]);
});

it('a search that fails is no empty result, and is tried again', async () => {
  let searches = 0;
  const hidden = new HiddenPaths(async () => {
    if ((searches += 1) === 1) throw new Error('no find');
    return [];
  }, []);
  await expect(hidden.current()).rejects.toThrow('no find');
  expect(await hidden.current()).toEqual([]);
});
