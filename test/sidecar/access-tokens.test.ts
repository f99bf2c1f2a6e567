// The tokens of the proxy and of the admin API: the operator's, or one that is generated once in a file of mode 0600.
import { chmod, mkdir, readFile, readdir, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadAdminToken, proxyTokenWarnings, readProxyToken } from '../../src/sidecar/access-tokens.ts';
import { createScratch } from '../support/scratch.ts';

const TEXT = 'an-operators-own-admin-token';

describe('an admin token in a file', () => {
  it('is generated if it does not exist, with mode 0600, and is the same at the next start', async () => {
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

  it('is generated once, however many processes start at the same time', async () => {
    await using scratch = await createScratch();
    const file = join(scratch.path, 'admin-token');
    const tokens = await Promise.all(Array.from({ length: 8 }, () => loadAdminToken({ file })));
    const text = (await readFile(file, 'utf8')).trim();
    expect(tokens.filter((token) => token.equals(text))).toHaveLength(8);
  });

  it.each(['', '\n', '\r\n'])('of the operator is read without its line end %j', async (end) => {
    await using scratch = await createScratch();
    const file = await scratch.write('token', `${TEXT}${end}`);
    expect((await loadAdminToken({ file })).equals(TEXT)).toBe(true);
    expect(await readFile(file, 'utf8')).toBe(`${TEXT}${end}`);
  });

  it.each([0o644, 0o640, 0o620, 0o602, 0o604])('that other users can open (%o) is rejected', async (mode) => {
    await using scratch = await createScratch();
    const file = await scratch.write('token', TEXT);
    await chmod(file, mode);
    await expect(loadAdminToken({ file })).rejects.toThrow(
      `${file}: mode 0${mode.toString(8)} gives other users access to the key. chmod 0600 ${file}, and replace the token if they may have read it.`,
    );
  });

  it('that is a directory or a dangling link is rejected, and nothing is created', async () => {
    await using scratch = await createScratch();
    const [directory, link] = [join(scratch.path, 'd'), join(scratch.path, 'l')];
    await mkdir(directory);
    await symlink(join(scratch.path, 'nowhere'), link);
    await expect(loadAdminToken({ file: directory })).rejects.toThrow(`${directory}: not a regular file.`);
    await expect(loadAdminToken({ file: link })).rejects.toThrow(`${link}: cannot be opened (ENOENT).`);
    expect((await readdir(scratch.path)).toSorted()).toEqual(['d', 'l']);
  });
});

describe('an unusable admin token', () => {
  const lines = 'must be one line of visible ASCII without spaces';
  const short = 'must have at least 16 characters';
  const rows = [
    ['nothing', '', short],
    ['15 characters', 'x'.repeat(15), short],
    ['two lines', `${TEXT}\n${TEXT}\n`, lines],
    ['two line ends', `${TEXT}\n\n`, lines],
    ['a space inside', `${TEXT} ${TEXT}`, lines],
    ['a space at the end', `${TEXT} `, lines],
    ['letters beyond ASCII', `${TEXT}-é`, lines],
    ['a NUL', `${TEXT}\0`, lines],
  ] as const;
  it.each(rows)('(%s) is rejected, and the error names only its source', async (_, text, reason) => {
    await using scratch = await createScratch();
    const file = await scratch.write('token', text);
    await expect(loadAdminToken({ file })).rejects.toThrow(new Error(`${file}: the admin token ${reason}`));
    const given = loadAdminToken({ text, from: 'THE_VARIABLE' });
    await expect(given).rejects.toThrow(new Error(`THE_VARIABLE: the admin token ${reason}`));
  });
});

it('an admin token in a variable creates no file', async () => {
  expect((await loadAdminToken({ text: TEXT, from: 'THE_VARIABLE' })).equals(TEXT)).toBe(true);
  expect((await loadAdminToken({ text: 'x'.repeat(16), from: 'THE_VARIABLE' })).length).toBe(16);
});

describe('the proxy token', () => {
  it.each(['0123456789abcdef', '0123456789abcdef\n', '0123456789abcdef\r\n'])(
    'is the text of its file without the line break: %j',
    async (text) => {
      await using scratch = await createScratch();
      const tokenFile = await scratch.write('token', text);
      expect(readProxyToken({ auth: { tokenFile } })).toBe('0123456789abcdef');
    },
  );

  it('that is too short is rejected, and not quoted', async () => {
    await using scratch = await createScratch();
    const file = await scratch.write('token', '0123456789abcde\n');
    expect(() => readProxyToken({ auth: { tokenFile: file } })).toThrow(
      `${file}: the proxy token must have at least 16 characters`,
    );
  });
});

describe('the file of the proxy token', () => {
  it.each(['644', '640', '604', '620'])('that other users may open (mode %s) is reported', async (mode) => {
    await using scratch = await createScratch();
    const file = await scratch.write('token', '0123456789abcdef');
    await chmod(file, Number.parseInt(mode, 8));
    expect(proxyTokenWarnings({ auth: { tokenFile: file } })).toEqual([
      `${file} can be read by other users: chmod 600 it`,
    ]);
  });

  it.each(['600', '400'])('that only its owner may open (mode %s) is not reported', async (mode) => {
    await using scratch = await createScratch();
    const file = await scratch.write('token', '0123456789abcdef');
    await chmod(file, Number.parseInt(mode, 8));
    expect(proxyTokenWarnings({ auth: { tokenFile: file } })).toEqual([]);
  });

  it('is not read if no token is set', () => {
    expect([...proxyTokenWarnings({ auth: undefined }), ...proxyTokenWarnings({ auth: 'none' })]).toEqual([]);
  });
});
