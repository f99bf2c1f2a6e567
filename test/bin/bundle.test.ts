// The bundle, built into a package of its own and run from there: what users of npm and of the image get. The demo
// touches every part of it: rule, callback, cache, refusal.
// @module-tag long
import { access, copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createScratch } from '../support/scratch.ts';
import { launcher, projectRoot, runToEnd } from '../support/spawned-process.ts';

describe('the bundle', () => {
  it('runs the demo without the sources and without node_modules', async () => {
    await using scratch = await createScratch();
    await mkdir(join(scratch.path, 'bin'));
    const copied = join(scratch.path, 'bin', 'sallyport.js');
    await copyFile(launcher, copied);
    await copyFile(join(projectRoot, 'package.json'), join(scratch.path, 'package.json'));
    const build = join(projectRoot, 'scripts', 'build.ts');
    const built = await runToEnd(process.execPath, [build, join(scratch.path, 'dist')]);
    expect(built, built.stderr).toMatchObject({ code: 0, stderr: '' });
    await access(join(scratch.path, 'dist', 'THIRD-PARTY-LICENSES.txt'));

    const { code, stdout, stderr } = await runToEnd(process.execPath, [copied, 'demo'], {
      cwd: scratch.path,
    });
    expect({ code, stderr }, stdout).toEqual({ code: 0, stderr: '' });
    expect(stdout).not.toContain('FAIL');
    expect(stdout.match(/^ok /gm)?.length).toBeGreaterThanOrEqual(8);
  });
});
