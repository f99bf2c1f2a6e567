import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readMachineId } from '../../../../src/platform/store/data-directory/machine-id.ts';
import { createScratch } from '../../../support/scratch.ts';

describe('the id of a machine', () => {
  it('is made once, also when two processes start at the same time', async () => {
    await using scratch = await createScratch();
    const directory = join(scratch.path, 'new');
    const ids = await Promise.all([readMachineId(directory), readMachineId(directory)]);
    expect([new Set(ids).size, await readMachineId(directory)]).toEqual([1, ids[0]]);
    expect(await readFile(join(directory, 'machine-id'), 'utf8')).toBe(ids[0]);
  });

  it('that cannot be read stops the start with the name of the file', async () => {
    await using scratch = await createScratch();
    await writeFile(join(scratch.path, 'machine-id'), 'x');
    await expect(readMachineId(scratch.path)).rejects.toThrow(/machine-id must contain one UUID/);
  });
});
