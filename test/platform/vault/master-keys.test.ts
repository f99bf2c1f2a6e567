// The file with the master keys: created once, readable by its owner alone, and never quoted.
import { randomBytes } from 'node:crypto';
import { chmod, chown, mkdir, readdir, readFile, rename, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  addMasterKey,
  createMasterKeyFile,
  readMasterKeys,
} from '../../../src/platform/vault/master-keys.ts';
import { createScratch, type Scratch } from '../../support/scratch.ts';

let scratch: Scratch;
let file: string;
beforeEach(async () => {
  scratch = await createScratch();
  file = join(scratch.path, 'data', 'vault-master.key');
});
afterEach(() => scratch[Symbol.asyncDispose]());

const keyText = (): string => randomBytes(32).toString('base64');

async function write(...lines: readonly string[]): Promise<void> {
  await createMasterKeyFile(file);
  await writeFile(file, lines.join('\n'));
}

describe('a new file', () => {
  it('holds one key, for its owner alone, and nothing else is left', async () => {
    expect(await createMasterKeyFile(file)).toBe('created');
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readdir(join(scratch.path, 'data'))).toEqual(['vault-master.key']);
    expect((await readMasterKeys(file)).current.id).toMatch(/^[0-9a-f]{16}$/);
  });

  it('is made once, whoever asks', async () => {
    const made = await Promise.all(Array.from({ length: 8 }, () => createMasterKeyFile(file)));
    expect(made.filter((one) => one === 'created')).toHaveLength(1);
    const before = await readFile(file, 'utf8');
    expect(await createMasterKeyFile(file)).toBe('exists');
    expect(await readFile(file, 'utf8')).toBe(before);
  });
});

it('an added key is the current one, and the others are still found', async () => {
  await createMasterKeyFile(file);
  const old = await readMasterKeys(file);
  const added = await addMasterKey(file);
  expect(added.current.id).not.toBe(old.current.id);
  const read = await readMasterKeys(file);
  expect([read.current.id, read.find(old.current.id)?.id]).toEqual([added.current.id, old.current.id]);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
});

describe('a file is refused', () => {
  it.each([
    ['without a key', ['', ' ']],
    ['with a line that is no key', [keyText(), 'password']],
    ['with a key of another length', [randomBytes(16).toString('base64')]],
    ['with a mistyped last letter', [`${'A'.repeat(42)}B=`]],
    ['with too many keys', Array.from({ length: 17 }, keyText)],
  ])('%s', async (_, lines) => {
    await write(...lines);
    const error = await readMasterKeys(file).catch((caught: unknown) => caught);
    expect(String(error)).toMatch(/vault-master\.key: (every line must be 32|has more than 16)/);
    for (const line of lines.filter((one) => one.trim() !== '')) expect(String(error)).not.toContain(line);
  });

  it('that others can read', async () => {
    await createMasterKeyFile(file);
    await chmod(file, 0o640);
    await expect(readMasterKeys(file)).rejects.toThrow(
      'other users can read or change this key; run chmod 600',
    );
    await chmod(file, 0o602);
    await expect(addMasterKey(file)).rejects.toThrow(
      'other users can read or change this key; run chmod 600',
    );
  });

  it.runIf(process.getuid?.() === 0)('of another user', async () => {
    await createMasterKeyFile(file);
    await chown(file, 65_534, 65_534);
    await expect(readMasterKeys(file)).rejects.toThrow('this key belongs to another user; run chown on it');
  });

  it('that is a symbolic link, a directory or too large', async () => {
    await createMasterKeyFile(file);
    const other = join(scratch.path, 'elsewhere.key');
    await rename(file, other);
    await symlink(other, file);
    await expect(readMasterKeys(file)).rejects.toThrow('is a symbolic link; name the file itself');
    expect(await createMasterKeyFile(file)).toBe('exists');
    const directory = join(scratch.path, 'directory');
    await mkdir(directory, { mode: 0o700 });
    await expect(readMasterKeys(directory)).rejects.toThrow('is not a regular file');
    await writeFile(other, `${keyText()}\n`.repeat(100));
    await expect(readMasterKeys(other)).rejects.toThrow('is larger than 4096 bytes');
  });

  it('that is missing', async () => {
    await expect(readMasterKeys(file)).rejects.toThrow(
      'there is no master key; sallyport platform init creates one',
    );
  });
});
