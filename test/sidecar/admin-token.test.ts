// The admin token: the operator's, or one made once and kept in a file that only we may read.
import { chmod, mkdir, readFile, readdir, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadAdminToken } from '../../src/sidecar/admin-token.ts';
import { createScratch } from '../support/scratch.ts';

const TEXT = 'an-operators-own-admin-token';

describe('a token in a file', () => {
  it('that is not there is made, for us alone to read, and is the same at the next start', async () => {
    await using scratch = await createScratch();
    const file = join(scratch.path, 'state', 'admin-token');
    const token = await loadAdminToken({ file });
    const text = await readFile(file, 'utf8');
    expect(text).toMatch(/^[A-Za-z0-9_-]{43}\n$/);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await stat(join(scratch.path, 'state'))).mode & 0o777).toBe(0o700);
    expect(token.equals(text.trim())).toBe(true);
    expect((await loadAdminToken({ file })).equals(text.trim())).toBe(true);
    expect(await readdir(join(scratch.path, 'state'))).toEqual(['admin-token']);
  });

  it('is made once, however many start at once', async () => {
    await using scratch = await createScratch();
    const file = join(scratch.path, 'admin-token');
    const tokens = await Promise.all(Array.from({ length: 8 }, () => loadAdminToken({ file })));
    const text = (await readFile(file, 'utf8')).trim();
    expect(tokens.filter((token) => token.equals(text))).toHaveLength(8);
  });

  it.each(['', '\n', '\r\n'])('of the operator’s is taken without its line end %j', async (end) => {
    await using scratch = await createScratch();
    const file = await scratch.write('token', `${TEXT}${end}`);
    expect((await loadAdminToken({ file })).equals(TEXT)).toBe(true);
    expect(await readFile(file, 'utf8')).toBe(`${TEXT}${end}`);
  });

  it.each([0o644, 0o640, 0o620, 0o602, 0o604])('that others can open (%o) is refused', async (mode) => {
    await using scratch = await createScratch();
    const file = await scratch.write('token', TEXT);
    await chmod(file, mode);
    await expect(loadAdminToken({ file })).rejects.toThrow(
      `${file}: mode 0${mode.toString(8)} gives other users access to the key. chmod 0600 ${file}, and replace the token if they may have read it.`,
    );
  });

  it('that is a directory or a link to nowhere is refused, and nothing is made there', async () => {
    await using scratch = await createScratch();
    const [directory, link] = [join(scratch.path, 'd'), join(scratch.path, 'l')];
    await mkdir(directory);
    await symlink(join(scratch.path, 'nowhere'), link);
    await expect(loadAdminToken({ file: directory })).rejects.toThrow(`${directory}: not a regular file.`);
    await expect(loadAdminToken({ file: link })).rejects.toThrow(`${link}: cannot be opened (ENOENT).`);
    expect((await readdir(scratch.path)).toSorted()).toEqual(['d', 'l']);
  });
});

describe('a token of too little use', () => {
  const lines = 'should be one line of visible ASCII without spaces';
  const short = 'should have at least 16 characters';
  const rows = [
    ['nothing', '', short],
    ['15 characters', 'x'.repeat(15), short],
    ['two lines', `${TEXT}\n${TEXT}\n`, lines],
    ['two line ends', `${TEXT}\n\n`, lines],
    ['a space inside', `${TEXT} ${TEXT}`, lines],
    ['a space behind', `${TEXT} `, lines],
    ['letters beyond ASCII', `${TEXT}-é`, lines],
    ['a NUL', `${TEXT}\0`, lines],
  ] as const;
  it.each(rows)('%s is refused by its source alone', async (_, text, reason) => {
    await using scratch = await createScratch();
    const file = await scratch.write('token', text);
    await expect(loadAdminToken({ file })).rejects.toThrow(new Error(`${file}: the admin token ${reason}`));
    const given = loadAdminToken({ text, from: 'THE_VARIABLE' });
    await expect(given).rejects.toThrow(new Error(`THE_VARIABLE: the admin token ${reason}`));
  });
});

it('a token in a variable makes no file', async () => {
  expect((await loadAdminToken({ text: TEXT, from: 'THE_VARIABLE' })).equals(TEXT)).toBe(true);
  expect((await loadAdminToken({ text: 'x'.repeat(16), from: 'THE_VARIABLE' })).length).toBe(16);
});
