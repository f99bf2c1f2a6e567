// Which files of this program a deployment sees: of a checkout, of an installed package.
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { findProgramFiles } from '../../../../src/platform/runner/instances/program-files.ts';
import { createScratch, type Scratch } from '../../../support/scratch.ts';

async function write(scratch: Scratch, ...files: readonly string[]): Promise<readonly string[]> {
  const paths = files.map((file) => join(scratch.path, file));
  for (const path of paths) {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, '');
  }
  return paths;
}

it('of a checkout its program and packages, and not what is beside them', async () => {
  await using scratch = await createScratch();
  const at = (name: string): string => join(scratch.path, name);
  const [node = ''] = await write(
    scratch,
    'node',
    'app/bin/sallyport.js',
    'app/src/main.ts',
    'app/data/secret',
  );
  await write(scratch, 'app/node_modules/pg/index.js', 'app/package.json', 'app/.git/config');
  expect(findProgramFiles([node, at('app/bin/sallyport.js')])).toEqual([
    node,
    ...['bin', 'src', 'node_modules', 'package.json'].map((name) => at(`app/${name}`)),
  ]);
});

it('of an installed package the packages beside it, which contain it', async () => {
  await using scratch = await createScratch();
  const at = (name: string): string => join(scratch.path, name);
  const [node = ''] = await write(scratch, 'node', 'lib/node_modules/sallyport/bin/sallyport.js');
  await mkdir(at('bin'));
  await symlink(at('lib/node_modules/sallyport/bin/sallyport.js'), at('bin/sallyport'));
  expect(findProgramFiles([node, at('bin/sallyport')])).toEqual([node, at('lib/node_modules')]);
});
