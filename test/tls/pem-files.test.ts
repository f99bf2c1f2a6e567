import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createFiles, isPresent, readKeyFile } from '../../src/tls/pem-files.ts';
import { createScratch } from '../support/scratch.ts';

describe('createFiles', () => {
  const draft = (directory: string, name: string): { file: string; text: string; mode: number } => ({
    file: join(directory, name),
    text: `text of ${name}`,
    mode: 0o600,
  });

  it('creates all of them and leaves nothing else', async () => {
    await using scratch = await createScratch();
    expect(await createFiles([draft(scratch.path, 'a'), draft(join(scratch.path, 'b'), 'c')])).toBe(true);
    expect(await readdir(scratch.path, { recursive: true })).toEqual(['a', 'b', 'b/c']);
    expect(await readFile(join(scratch.path, 'b', 'c'), 'utf8')).toBe('text of c');
  });

  it.each(['a', 'b'])('creates none and touches nothing if %s is there', async (taken) => {
    await using scratch = await createScratch();
    await writeFile(join(scratch.path, taken), 'older');
    expect(await createFiles([draft(scratch.path, 'a'), draft(scratch.path, 'b')])).toBe(false);
    expect(await readdir(scratch.path)).toEqual([taken]);
    expect(await readFile(join(scratch.path, taken), 'utf8')).toBe('older');
  });

  it('leaves nothing behind when it fails', async () => {
    await using scratch = await createScratch();
    await writeFile(join(scratch.path, 'file'), '');
    const drafts = [draft(scratch.path, 'a'), draft(join(scratch.path, 'file'), 'b')];
    await expect(createFiles(drafts)).rejects.toThrow(/EEXIST|ENOTDIR/);
    expect(await readdir(scratch.path)).toEqual(['file']);
  });
});

describe('isPresent', () => {
  it('does not take a path that cannot be looked at for a free one', async () => {
    await using scratch = await createScratch();
    await writeFile(join(scratch.path, 'file'), '');
    expect(await isPresent(join(scratch.path, 'file'))).toBe(true);
    expect(await isPresent(join(scratch.path, 'other'))).toBe(false);
    await expect(isPresent(join(scratch.path, 'file', 'below'))).rejects.toThrow('ENOTDIR');
  });
});

describe('readKeyFile', () => {
  it('names what to do about a path that is not a file', async () => {
    await using scratch = await createScratch();
    await mkdir(join(scratch.path, 'directory'), { mode: 0o700 });
    await expect(readKeyFile(join(scratch.path, 'directory'))).rejects.toThrow(
      `${join(scratch.path, 'directory')}: not a regular file. Use a certificate and its key`,
    );
    await expect(readKeyFile(join(scratch.path, 'absent'))).rejects.toThrow(
      `${join(scratch.path, 'absent')}: cannot be opened (ENOENT). Use a certificate and its key`,
    );
  });
});
