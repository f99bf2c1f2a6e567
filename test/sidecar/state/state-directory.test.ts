import { chmod, chown, mkdir, readdir, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { prepareStateDirectory, publicPart, secretPart } from '../../../src/sidecar/state/state-directory.ts';
import { createScratch } from '../../support/scratch.ts';

async function modeOf(path: string): Promise<string> {
  return ((await stat(path)).mode & 0o777).toString(8);
}

async function modesOf(directory: string): Promise<readonly string[]> {
  return Promise.all([directory, secretPart(directory), publicPart(directory)].map(modeOf));
}

const umask = process.umask();
afterEach(() => process.umask(umask));

describe('the state directory', () => {
  it.each(['000', '022', '077'])('under the umask %s has a secret part and a public one', async (mask) => {
    await using scratch = await createScratch();
    const directory = join(scratch.path, 'above', 'state');
    process.umask(mask);
    expect(await prepareStateDirectory(directory)).toEqual([]);
    expect(await modesOf(directory)).toEqual(['755', '700', '755']);
    expect(await modeOf(join(scratch.path, 'above'))).toBe('700');
    expect((await readdir(directory)).toSorted()).toEqual(['public', 'secret']);
    expect(await prepareStateDirectory(directory)).toEqual([]);
  });

  it('that exists keeps its mode, and the secret part becomes secret again', async () => {
    await using scratch = await createScratch();
    const { path } = scratch;
    await prepareStateDirectory(path);
    await chmod(path, 0o700);
    await chmod(secretPart(path), 0o775);
    await chmod(publicPart(path), 0o750);
    await prepareStateDirectory(path);
    expect(await modesOf(path)).toEqual(['700', '700', '750']);
  });

  it('is not used if its secret part is a link or a file', async () => {
    await using scratch = await createScratch();
    const elsewhere = join(scratch.path, 'elsewhere');
    await mkdir(elsewhere);
    for (const [name, make] of [
      ['link', (at: string) => symlink(elsewhere, at)],
      ['file', (at: string) => writeFile(at, '')],
    ] as const) {
      const directory = join(scratch.path, name);
      await mkdir(directory);
      await make(secretPart(directory));
      await expect(prepareStateDirectory(directory)).rejects.toThrow(
        name === 'link' ? 'secret: a symbolic link. Replace it' : 'secret: not a directory. Move it away',
      );
    }
    expect(await readdir(elsewhere)).toEqual([]);
  });

  it('is not used if its public part is a link', async () => {
    await using scratch = await createScratch();
    const [directory, elsewhere] = [join(scratch.path, 'state'), join(scratch.path, 'elsewhere')];
    for (const made of [directory, elsewhere]) await mkdir(made);
    await symlink(elsewhere, publicPart(directory));
    await expect(prepareStateDirectory(directory)).rejects.toThrow('public: a symbolic link. Replace it');
    expect(await readdir(elsewhere)).toEqual([]);
  });

  it.runIf(process.getuid?.() === 0)('is not used if a part belongs to another user', async () => {
    for (const part of [secretPart, publicPart]) {
      await using scratch = await createScratch();
      await mkdir(part(scratch.path));
      await chown(part(scratch.path), 4711, 4711);
      await expect(prepareStateDirectory(scratch.path)).rejects.toThrow('the directory belongs to uid 4711');
    }
  });

  it.runIf(process.getuid?.() === 0)('is not used if another user could replace its parts', async () => {
    await using scratch = await createScratch();
    const directory = join(scratch.path, 'state');
    await mkdir(directory);
    await chown(directory, 4711, 4711);
    await expect(prepareStateDirectory(directory)).rejects.toThrow(
      /state: the directory belongs to uid 4711/,
    );
    expect(await readdir(directory)).toEqual([]);
    const link = join(scratch.path, 'link');
    await symlink(directory, link);
    await expect(prepareStateDirectory(link)).rejects.toThrow('the directory belongs to uid 4711');
    await chown(directory, 0, 0);
    expect(await prepareStateDirectory(link)).toEqual([]);
  });
});
