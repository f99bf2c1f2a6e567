// Which processes keep the agent alive.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { hasOtherProcesses } from '../../src/box-agent/process-list.ts';
import { createScratch } from '../support/scratch.ts';

describe('other processes', () => {
  it.each([
    ['none but the agent and its parent', { 1: 'S', 7: 'R' }, false],
    ['one that sleeps', { 1: 'S', 7: 'R', 9: 'S' }, true],
    ['one that is stopped', { 1: 'S', 7: 'R', 9: 'T' }, true],
    ['one that has ended and was not waited for', { 1: 'S', 7: 'R', 9: 'Z' }, false],
  ])('%s', async (_, states, expected) => {
    await using scratch = await createScratch();
    for (const [pid, state] of Object.entries(states)) {
      await mkdir(join(scratch.path, pid));
      await writeFile(join(scratch.path, pid, 'stat'), `${pid} (a) R) ${state} 1 2 3`);
    }
    await scratch.write('meminfo', 'x');
    expect(hasOtherProcesses([7, 1], scratch.path)).toBe(expected);
  });

  it('that ended while they were listed do not count', async () => {
    await using scratch = await createScratch();
    await mkdir(join(scratch.path, '9'));
    expect(hasOtherProcesses([], scratch.path)).toBe(false);
  });
});
