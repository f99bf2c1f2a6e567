import { mkdir, rename, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { fingerprintOf } from '../../../src/sidecar/reload/watched-files.ts';
import { createScratch } from '../../support/scratch.ts';

type Row = readonly [what: string, change: (directory: string) => Promise<unknown>];

/** A file `rules.json`, and a mount of secrets as Kubernetes makes it: `mount/key` leads to `mount/..data/key`. */
async function layOut(directory: string): Promise<void> {
  const mount = join(directory, 'mount');
  await mkdir(join(mount, '..one'), { recursive: true });
  await writeFile(join(mount, '..one', 'key'), 'old');
  await symlink('..one', join(mount, '..data'));
  await symlink('..data/key', join(mount, 'key'));
  await writeFile(join(directory, 'rules.json'), '{}');
}

async function swap(mount: string, from: string): Promise<void> {
  await symlink(from, join(mount, '..tmp'));
  await rename(join(mount, '..tmp'), join(mount, '..data'));
}

const changes: readonly Row[] = [
  ['a file is written again with equal bytes', (at) => writeFile(join(at, 'rules.json'), '{}')],
  ['a file is emptied', (at) => truncate(join(at, 'rules.json'))],
  ['a file is removed', (at) => rm(join(at, 'rules.json'))],
  [
    'an editor puts another file in its place',
    async (at) => {
      await writeFile(join(at, 'rules.json~'), '{}');
      await rename(join(at, 'rules.json~'), join(at, 'rules.json'));
    },
  ],
  [
    'a directory is in its place',
    async (at) => {
      await rm(join(at, 'rules.json'));
      await mkdir(join(at, 'rules.json'));
    },
  ],
  [
    'the link of a mount is swapped',
    async (at) => {
      await mkdir(join(at, 'mount', '..two'));
      await writeFile(join(at, 'mount', '..two', 'key'), 'new');
      await swap(join(at, 'mount'), '..two');
    },
  ],
  ['a file is added to the mount', (at) => writeFile(join(at, 'mount', 'another'), '1')],
  ['the target of a link is gone', (at) => rm(join(at, 'mount', '..one'), { recursive: true })],
  ['the mount is away', (at) => rename(join(at, 'mount'), join(at, 'away'))],
];

const nothing: readonly Row[] = [
  ['nothing happens', async () => undefined],
  ['a file beside them changes', (at) => writeFile(join(at, 'other.json'), '{}')],
  ['a dot entry is added to the mount', (at) => writeFile(join(at, 'mount', '..new'), '1')],
];

async function fingerprints(change: Row[1]): Promise<readonly [before: string, after: string]> {
  await using scratch = await createScratch();
  await layOut(scratch.path);
  const paths = ['rules.json', 'mount', 'never-there'].map((name) => join(scratch.path, name));
  const before = fingerprintOf(paths);
  await change(scratch.path);
  return [before, fingerprintOf(paths)];
}

describe('the fingerprint of files is another one when', () => {
  it.each(changes)('%s', async (_, change) => {
    const [before, after] = await fingerprints(change);
    expect(after).not.toBe(before);
  });
});

describe('it is the same when', () => {
  it.each(nothing)('%s', async (_, change) => {
    const [before, after] = await fingerprints(change);
    expect(after).toBe(before);
  });
});

it('tells nothing of pipes and devices, which are read once', () => {
  expect(fingerprintOf(['/dev/null'])).toBe('/dev/null special');
});
