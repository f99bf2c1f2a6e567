import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { projectRoot } from '../../support/spawned-process.ts';

it('a program for which no descriptor is left fails, and the box host goes on', () => {
  const driver = join(import.meta.dirname, 'program-without-descriptors.ts');
  const { stdout, stderr } = spawnSync('prlimit', ['--nofile=128:128', process.execPath, driver], {
    cwd: projectRoot,
    encoding: 'utf8',
  });
  expect([stdout, stderr]).toEqual(['Error: no descriptor is left for a program of the box\n', '']);
});
