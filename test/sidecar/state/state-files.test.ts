// What must survive a power failure: new bytes are on disk before they replace the old ones, and the directory entry is
// on disk before a write is confirmed. The system's own fsync is observed, and made to fail.
import { fstatSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { removeFile, replaceFile } from '../../../src/sidecar/state/state-files.ts';
import { createScratch } from '../../support/scratch.ts';

type Done = (error: Error | null) => void;
const watch = vi.hoisted(() => ({
  onSync: (_fd: number): Error | null => null,
}));

vi.mock('node:fs', async (original) => ({
  ...(await original<Record<string, unknown>>()),
  fsync: (fd: number, done: Done) => done(watch.onSync(fd)),
}));

afterEach(() => {
  watch.onSync = () => null;
});

it('the bytes are synced before the rename, the directory after it', async () => {
  await using scratch = await createScratch();
  const file = await scratch.write('box.sealed', 'old');
  const seen: string[] = [];
  watch.onSync = (fd) => {
    const kind = fstatSync(fd).isDirectory() ? 'directory' : 'file';
    seen.push(`${kind}, ${readFileSync(file, 'utf8')} in place`);
    return null;
  };
  expect(await replaceFile(file, Buffer.from('new'))).toBe('durable');
  expect(seen).toEqual(['file, old in place', 'directory, new in place']);
});

it('a file that cannot be synced does not replace the old one', async () => {
  await using scratch = await createScratch();
  const file = await scratch.write('box.sealed', 'old');
  watch.onSync = () => Object.assign(new Error('no'), { code: 'EIO' });
  await expect(replaceFile(file, Buffer.from('new'))).rejects.toThrow(/EIO/);
  expect(readFileSync(file, 'utf8')).toBe('old');
});

it('a directory that cannot be synced leaves the change in doubt, not undone', async () => {
  await using scratch = await createScratch();
  const file = await scratch.write('box.sealed', 'old');
  watch.onSync = (fd) => (fstatSync(fd).isDirectory() ? new Error('no') : null);
  expect(await replaceFile(file, Buffer.from('new'))).toBe('in_doubt');
  expect(readFileSync(file, 'utf8')).toBe('new');
  expect(await removeFile(file)).toBe('in_doubt');
  expect(() => readFileSync(file)).toThrow(/ENOENT/);
});

it('a missing directory is reported before anything is changed', async () => {
  await using scratch = await createScratch();
  await expect(replaceFile(join(scratch.path, 'gone', 'box.sealed'), Buffer.from('new'))).rejects.toThrow(
    /cannot be written \(ENOENT\). Its previous content is unchanged/,
  );
});
