import { link, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { exceeds, measureUse, needsCount, readFree } from '../../../src/workload/limits/disk-usage.ts';
import { createScratch } from '../../support/scratch.ts';

const MIB = 1024 * 1024;

describe('what directories take', () => {
  it('is counted in all of them, files with several names once, and never behind a link', async () => {
    const scratch = await createScratch();
    onTestFinished(() => scratch[Symbol.asyncDispose]());
    const [one, two] = [join(scratch.path, 'one'), join(scratch.path, 'two')];
    await mkdir(one);
    await mkdir(two);
    await writeFile(join(one, 'file'), Buffer.alloc(2 * MIB, 1));
    await link(join(one, 'file'), join(one, 'again'));
    await writeFile(join(two, 'file'), Buffer.alloc(MIB, 1));
    await writeFile(join(scratch.path, 'outside'), Buffer.alloc(8 * MIB, 1));
    await symlink(join(scratch.path, 'outside'), join(one, 'link'));
    const use = await measureUse([one, two]);
    if (use === undefined || use === 'late') throw new Error('nothing is counted');
    expect(use.bytes).toBeGreaterThanOrEqual(3 * MIB);
    expect(use.bytes).toBeLessThan(4 * MIB);
    expect(use.files).toBe(5);
  });

  it('is nothing where nothing is', async () =>
    expect(await measureUse(['/absent'])).toEqual({ bytes: 0, files: 0 }));

  it('is taken from what is free', async () => {
    const { bytes, files } = await readFree(['/tmp', '/absent']);
    expect([bytes > 0, files >= 0]).toEqual([true, true]);
  });
});

describe('a limit of disk space', () => {
  it('is exceeded by bytes, and by files without any', () => {
    expect(exceeds({ bytes: 100 * MIB, files: 10 }, 100 * MIB)).toBe(false);
    expect(exceeds({ bytes: 100 * MIB + 1, files: 10 }, 100 * MIB)).toBe(true);
    expect(exceeds({ bytes: 0, files: 30_000 }, 100 * MIB)).toBe(true);
    expect(exceeds({ bytes: 0, files: 9_000 }, MIB)).toBe(false);
  });

  const measured = {
    use: { bytes: 10 * MIB, files: 10 },
    free: { bytes: 1000 * MIB, files: 9e6 },
    atMs: 1_000,
  };
  it.each([
    ['nothing was counted yet', undefined, 1000, 9e6, 2_000, true],
    ['nothing was written', measured, 1000, 9e6, 2_000, false],
    ['little was written', measured, 980, 9e6, 2_000, false],
    ['as much was written as is left', measured, 950, 9e6, 2_000, true],
    ['many files were written', measured, 1000, 9e6 - 20_000, 2_000, true],
    ['others freed space', measured, 2000, 9e6, 2_000, false],
    ['it was counted long ago', measured, 1000, 9e6, 70_000, true],
  ] as const)('%s: counts again', (_, before, freeMib, files, nowMs, expected) =>
    expect(needsCount(before, { bytes: freeMib * MIB, files }, nowMs, 100 * MIB)).toBe(expected),
  );
});
