import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { findHidden } from '../../../src/box-host/snapshots/base-snapshot.ts';
import { createScratch } from '../../support/scratch.ts';

it('what others may not read is found, and nothing below a closed directory', async () => {
  await using scratch = await createScratch();
  const at = (name: string): string => join(scratch.path, 'usr', name);
  await mkdir(at('closed'), { recursive: true });
  await mkdir(at('open'));
  for (const [name, mode] of [
    ['open/public', 0o644],
    ['open/program', 0o755],
    ['open/secret', 0o640],
    ['open/with\nnewline', 0o600],
    ['closed/secret', 0o600],
  ] as const) {
    await writeFile(at(name), '');
    await chmod(at(name), mode);
  }
  await chmod(at('closed'), 0o750);
  await chmod(at('open'), 0o755);
  const found = await findHidden(at('.'));
  const sorted = found.toSorted((a, b) => a.path.localeCompare(b.path));
  expect(sorted).toEqual([
    { path: at('closed'), isDirectory: true },
    { path: at('open/secret'), isDirectory: false },
    { path: at('open/with\nnewline'), isDirectory: false },
  ]);
});
