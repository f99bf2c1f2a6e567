import {
  chmod,
  chown,
  lchown,
  mkdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { writePublicFile } from '../../../src/cli/client/public-files.ts';
import { createScratch } from '../../support/scratch.ts';

const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o777;
const draft = { name: 'ca', extension: 'pem', content: 'text' };

/** What a shell with a strict umask gives to its programs. */
async function withStrictUmask<T>(work: () => Promise<T>): Promise<T> {
  const before = process.umask(0o077);
  try {
    return await work();
  } finally {
    process.umask(before);
  }
}

describe('a file for clients', () => {
  it('and a directory made for it are readable by other users whatever the umask', async () => {
    await using scratch = await createScratch();
    const directory = join(scratch.path, 'state', 'client');
    const file = await withStrictUmask(() => writePublicFile(directory, draft));
    expect(await readFile(file, 'utf8')).toBe('text');
    expect(await modeOf(file)).toBe(0o644);
    expect(await modeOf(directory)).toBe(0o755);
  });

  it('that cannot be written names the directory and what to do', async () => {
    await using scratch = await createScratch();
    const directory = join(await scratch.write('file', ''), 'client');
    await expect(writePublicFile(directory, draft)).rejects.toThrow(
      `${directory} cannot be written to (ENOTDIR): use a writable directory with free space (--write, or TMPDIR for \`sallyport run\`)`,
    );
  });

  it('leaves the mode of a directory that existed', async () => {
    await using scratch = await createScratch();
    const directory = join(scratch.path, 'home');
    await mkdir(directory, { mode: 0o700 });
    await writePublicFile(directory, draft);
    expect(await modeOf(directory)).toBe(0o700);
  });

  it('has a name of its content, and is written once', async () => {
    await using scratch = await createScratch();
    const once = await writePublicFile(scratch.path, draft);
    expect(once).toMatch(/\/ca-[0-9a-f]{16}\.pem$/);
    expect(await writePublicFile(scratch.path, draft)).toBe(once);
    const bytes = { ...draft, content: Buffer.from([0, 0xff]) };
    const other = await writePublicFile(scratch.path, bytes);
    expect([other === once, await readFile(other)]).toEqual([false, bytes.content]);
  });

  it('is not used where somebody wrote another content', async () => {
    await using scratch = await createScratch();
    const file = await writePublicFile(scratch.path, draft);
    await writeFile(file, 'other');
    await expect(writePublicFile(scratch.path, draft)).rejects.toThrow(`${file} has other content`);
  });

  // The name of a file can be guessed before it is written, and its content can be changed once clients use it.
  it.each([
    [
      'is a link',
      async (file: string) => {
        await rename(file, `${file}.theirs`);
        await symlink(`${file}.theirs`, file);
      },
    ],
    ['can be written by others', (file: string) => chmod(file, 0o646)],
    ['can be written by a group', (file: string) => chmod(file, 0o664)],
  ])('is not used where it has the same content and %s', async (_, change) => {
    await using scratch = await createScratch();
    const file = await writePublicFile(scratch.path, draft);
    await change(file);
    await expect(writePublicFile(scratch.path, draft)).rejects.toThrow('other users can change it');
  });

  it('is not written to a directory in which others can replace it', async () => {
    await using scratch = await createScratch();
    const { path } = scratch;
    await chmod(path, 0o777);
    await expect(writePublicFile(path, draft)).rejects.toThrow(`other users can replace files in ${path}`);
    // As /tmp: only the owner of a file can replace it.
    await chmod(path, 0o1777);
    expect(await readFile(await writePublicFile(path, draft), 'utf8')).toBe('text');
  });

  it.runIf(process.getuid?.() === 0)('is not used where another user owns it or the directory', async () => {
    await using scratch = await createScratch();
    const { path } = scratch;
    const file = await writePublicFile(path, draft);
    await chown(file, 4711, 4711);
    await expect(writePublicFile(path, draft)).rejects.toThrow('other users can change it');
    await rm(file);
    await chown(path, 4711, 4711);
    await chmod(path, 0o1777);
    await expect(writePublicFile(path, draft)).rejects.toThrow('other users can replace files');
  });

  it.runIf(process.getuid?.() === 0)('is not written through a link of another user', async () => {
    await using scratch = await createScratch();
    const [link, target] = ['link', 'target'].map((name) => join(scratch.path, name)) as [string, string];
    await mkdir(target);
    await symlink(target, link);
    expect(await readFile(await writePublicFile(link, draft), 'utf8')).toBe('text');
    await lchown(link, 4711, 4711);
    await expect(writePublicFile(link, draft)).rejects.toThrow('other users can replace files');
  });

  it('in a directory made for it is not in one that others can rename', async () => {
    await using scratch = await createScratch();
    const before = process.umask(0);
    try {
      await writePublicFile(join(scratch.path, 'a', 'b'), draft);
    } finally {
      process.umask(before);
    }
    expect([await modeOf(join(scratch.path, 'a')), await modeOf(join(scratch.path, 'a', 'b'))]).toEqual([
      0o755, 0o755,
    ]);
  });
});
