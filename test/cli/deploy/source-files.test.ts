import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { findSourceFiles } from '../../../src/cli/deploy/source-files.ts';
import { createScratch } from '../../support/scratch.ts';

it('finds regular files in the order of their characters, and names the rest', async () => {
  await using scratch = await createScratch();
  for (const folder of ['b', 'a/deep', 'node_modules/x', 'out', 'empty'])
    await mkdir(join(scratch.path, folder), { recursive: true });
  for (const path of ['b/2.ts', 'B.ts', 'é.ts', 'a/deep/1.ts', 'a-1.ts', 'node_modules/x/i.js', 'out/x.js'])
    await writeFile(join(scratch.path, path), '');
  await scratch.write('.gitignore', 'out\n');
  await symlink('/etc', join(scratch.path, 'b', 'link'));
  await symlink('B.ts', join(scratch.path, 'other'));
  const server = createServer().listen(join(scratch.path, 'socket'));
  await once(server, 'listening');
  const { paths, irregular } = await findSourceFiles(scratch.path, ['b/2.ts']);
  server.close();
  expect(paths).toEqual(['.gitignore', 'B.ts', 'a-1.ts', 'a/deep/1.ts', 'é.ts']);
  expect(irregular).toEqual(['b/link', 'other', 'socket']);
});

it('reads the .gitignore of each folder', async () => {
  await using scratch = await createScratch();
  await mkdir(join(scratch.path, 'src/gen'), { recursive: true });
  for (const path of ['src/a.ts', 'src/gen/b.ts', 'gen']) await writeFile(join(scratch.path, path), '');
  await writeFile(join(scratch.path, 'src/.gitignore'), 'gen/\n');
  const { paths } = await findSourceFiles(scratch.path);
  expect(paths).toEqual(['gen', 'src/.gitignore', 'src/a.ts']);
});
