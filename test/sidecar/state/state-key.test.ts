import { randomBytes } from 'node:crypto';
import { chmod, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createStateKey, readStateKey } from '../../../src/sidecar/state/state-store.ts';
import { createScratch } from '../../support/scratch.ts';

// Bytes that have + and / in base64, and - and _ in base64url.
const key = Buffer.concat([Buffer.from('fbefbefffbff', 'hex'), randomBytes(26)]);
const from = 'THE_VARIABLE';
const spellings: readonly string[] = [
  key.toString('base64'),
  key.toString('base64').replace('=', ''),
  key.toString('base64url'),
  `${key.toString('base64url')}=`,
  key.toString('hex'),
  key.toString('hex').toUpperCase(),
  `${key.toString('base64')}\n`,
  ` ${key.toString('hex')}\r\n`,
];
const misspellings: readonly string[] = [
  '',
  'a passphrase that somebody made up, long enough for it',
  key.toString('base64', 0, 31),
  Buffer.concat([key, key]).toString('base64'),
  key.toString('hex').slice(1),
  `${key.toString('hex')}0`,
  `${key.toString('base64')}=`,
  `${key.toString('base64', 0, 16)}\n${key.toString('base64', 16)}`,
  // Bits set in the last letter that no byte has.
  `${'A'.repeat(42)}B=`,
  // The two alphabets at once.
  `+_${'A'.repeat(41)}`,
];

describe('the key of a variable', () => {
  it.each(spellings.entries().toArray())('is read in spelling %i', async (_, text) => {
    expect(await readStateKey({ text, from })).toEqual(key);
  });

  it.each(misspellings.entries().toArray())(
    'is rejected in misspelling %i, and not quoted',
    async (_, text) => {
      const error = await readStateKey({ text, from }).catch((reason: Error) => reason);
      expect(String(error)).toBe(
        'Error: THE_VARIABLE: must be 32 random bytes as base64, base64url or hex (openssl rand -base64 32)',
      );
    },
  );
});

describe('the key of a file', () => {
  it.each(spellings.entries().toArray())('is read in spelling %i', async (_, text) => {
    await using scratch = await createScratch();
    expect(await readStateKey({ file: await scratch.write('state.key', text) })).toEqual(key);
  });

  it('is undefined if there is no file', async () => {
    await using scratch = await createScratch();
    expect(await readStateKey({ file: join(scratch.path, 'state.key') })).toBeUndefined();
  });

  it.each([0o640, 0o604, 0o620, 0o602, 0o644])('is rejected if other users may open it: %o', async (mode) => {
    await using scratch = await createScratch();
    const file = await scratch.write('state.key', key.toString('base64'));
    await chmod(file, mode);
    const error = await readStateKey({ file }).catch((reason: Error) => reason);
    expect(String(error)).toContain(
      `${file}: mode 0${mode.toString(8)} gives other users access to the key.`,
    );
    expect(String(error)).toContain(`chmod 0600 ${file}`);
    expect(String(error)).not.toContain('pair');
  });

  it('is rejected if the file holds no key, and not quoted', async () => {
    await using scratch = await createScratch();
    const file = await scratch.write('state.key', 'misplaced-canary');
    const error = await readStateKey({ file }).catch((reason: Error) => reason);
    expect(String(error)).toContain(`${file}: does not hold 32 random bytes`);
    expect(String(error)).not.toContain('canary');
  });

  it('is reported missing, not created, behind a dangling link', async () => {
    await using scratch = await createScratch();
    const file = join(scratch.path, 'state.key');
    await symlink(join(scratch.path, 'nowhere'), file);
    await expect(readStateKey({ file })).rejects.toThrow(
      `${file}: cannot be opened (ENOENT). Restore the key`,
    );
    await expect(createStateKey(file)).rejects.toThrow('cannot be opened (ENOENT)');
    expect(await readdir(scratch.path)).toEqual(['state.key']);
  });
});

describe('a key that is created', () => {
  it('is the same for all processes that create it at once, with mode 0600', async () => {
    await using scratch = await createScratch();
    const file = join(scratch.path, 'state.key');
    const keys = await Promise.all(Array.from({ length: 8 }, () => createStateKey(file)));
    expect(new Set(keys.map((made) => made.toString('hex'))).size).toBe(1);
    expect(await readStateKey({ file })).toEqual(keys[0]);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readdir(scratch.path)).toEqual(['state.key']);
  });

  it('never replaces another', async () => {
    await using scratch = await createScratch();
    const file = join(scratch.path, 'state.key');
    await writeFile(file, key.toString('hex'), { mode: 0o600 });
    expect(await createStateKey(file)).toEqual(key);
    expect(await readFile(file, 'utf8')).toBe(key.toString('hex'));
  });
});
