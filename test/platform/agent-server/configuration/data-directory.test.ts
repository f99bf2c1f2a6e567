// Which data directories stop a start.
import { stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { requireDataDirectory } from '../../../../src/platform/agent-server/configuration/data-directory.ts';
import { createScratch } from '../../../support/scratch.ts';

it('one that is not there is created, and nothing is left in it', async () => {
  await using scratch = await createScratch();
  const path = join(scratch.path, 'a', 'b');
  await requireDataDirectory(path, { hasDatabase: true });
  await requireDataDirectory(path, { hasDatabase: true });
  expect((await stat(path)).nlink).toBe(2);
});

it.each([
  ['a file', 'file', 'a part of its path is a file'],
  ['below a file', 'file/below', 'a part of its path is a file'],
  ['in a place without files', '/proc/nowhere', 'it cannot be created there'],
  ['in another one', '/sys/nowhere', 'permission denied|read-only|cannot be created'],
])('%s', async (_, name, reason) => {
  await using scratch = await createScratch();
  await writeFile(join(scratch.path, 'file'), '');
  const path = name.startsWith('/') ? name : join(scratch.path, name);
  await expect(requireDataDirectory(path, { hasDatabase: false })).rejects.toMatchObject({
    name: 'InputError',
    message: expect.stringMatching(new RegExp(`^The data directory ${path}: (?:${reason}).*--data-dir`)),
  });
});
