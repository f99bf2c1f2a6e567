// What the benchmark starts: a benchmark of an old bundle would measure other sources than those of the checkout, and one
// with another compile cache another start than that of the image.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { build } from 'esbuild';
import { expect, it } from 'vitest';
import { IMAGE_RULES } from '../../bench/cases/start.ts';
import { buildInputs } from '../../bench/support/package.ts';
import { projectRoot } from '../support/spawned-process.ts';

it('every script of the build, and every source, is an input of the bundle', async () => {
  const { metafile } = await build({
    absWorkingDir: projectRoot,
    entryPoints: ['scripts/build.ts', 'src/main.ts'],
    outdir: join(projectRoot, 'unwritten'),
    bundle: true,
    write: false,
    metafile: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
  });
  const read = Object.keys(metafile.inputs);
  expect(read).toContain('scripts/command-bundle.ts');
  expect(buildInputs()).toEqual(expect.arrayContaining(read));
});

it('the compile cache is filled with the rules of the image', async () => {
  const image = await readFile(join(projectRoot, 'Dockerfile'), 'utf8');
  expect(image).toContain(`echo '${JSON.stringify(IMAGE_RULES)}'`);
});
