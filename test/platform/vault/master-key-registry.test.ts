// The database knows which master keys it needs: a file without them is refused before anything is served, and a key that is
// still needed is not given up.
import { randomBytes } from 'node:crypto';
import { copyFile, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secret.ts';
import {
  changeCurrentKey,
  checkMasterKeys,
  createMasterKeys,
  neededKeyIds,
} from '../../../src/platform/vault/master-key-registry.ts';
import {
  createMasterKeyFile,
  type MasterKeySource,
  readMasterKeys,
} from '../../../src/platform/vault/master-keys.ts';
import { createTestDatabase, type TestDatabase } from '../../support/platform-database.ts';
import { createScratch, type Scratch } from '../../support/scratch.ts';

let database: TestDatabase;
let scratch: Scratch;
beforeEach(async () => {
  [database, scratch] = await Promise.all([createTestDatabase(), createScratch()]);
});
afterEach(async () => {
  await database?.[Symbol.asyncDispose]();
  await scratch?.[Symbol.asyncDispose]();
});

const fileOf = (machine: string): string => join(scratch.path, machine, 'vault-master.key');
const own = (machine: string) => ({ masterKeyFile: fileOf(machine), isProvided: false });
const provided = (machine: string) => ({ masterKeyFile: fileOf(machine), isProvided: true });
const idOf = async (machine: string): Promise<string> => (await readMasterKeys(fileOf(machine))).current.id;

describe('init', () => {
  it('creates the file once, and the database needs its key', async () => {
    await createMasterKeys(database.store, own('a'));
    const before = await readFile(fileOf('a'), 'utf8');
    await createMasterKeys(database.store, own('a'));
    expect(await readFile(fileOf('a'), 'utf8')).toBe(before);
    expect(await neededKeyIds(database.store.db)).toEqual([await idOf('a')]);
  });

  it('on several machines at once makes one key, and the others say that it must be copied', async () => {
    const machines = ['a', 'b', 'c', 'd'];
    const made = await Promise.allSettled(machines.map((one) => createMasterKeys(database.store, own(one))));
    const failed = made.filter((one) => one.status === 'rejected').map(({ reason }) => String(reason));
    expect(failed).toHaveLength(3);
    for (const message of failed)
      expect(message).toMatch(/there is no master key, but .* copy the file from/);
    expect(await neededKeyIds(database.store.db)).toHaveLength(1);
  });

  it('creates no file that the operator named', async () => {
    await expect(createMasterKeys(database.store, provided('a'))).rejects.toThrow('there is no master key');
    await expect(readFile(fileOf('a'))).rejects.toThrow('ENOENT');
  });
});

describe('a master key in memory', () => {
  const inMemory = (): MasterKeySource => ({
    ...own('a'),
    masterKey: new Secret(randomBytes(32).toString('base64')),
  });

  it('is what the database needs from then on, without a file', async () => {
    const source = inMemory();
    await createMasterKeys(database.store, source);
    await createMasterKeys(database.store, source);
    expect(await checkMasterKeys(database.store, source)).toBe('ready');
    expect(await neededKeyIds(database.store.db)).toHaveLength(1);
    await expect(readFile(fileOf('a'))).rejects.toThrow('ENOENT');
  });

  it('that is another one is rejected, and so is what is no key; neither is quoted', async () => {
    await createMasterKeys(database.store, inMemory());
    await expect(checkMasterKeys(database.store, inMemory())).rejects.toThrow(
      /^the master key that was given is not the one that this database needs: [0-9a-f]{16}$/,
    );
    const noKey = { ...inMemory(), masterKey: new Secret('no key') };
    await expect(checkMasterKeys(database.store, noKey)).rejects.toThrow(
      /^the master key: every line must be 32 random bytes in base64/,
    );
  });
});

describe('the start of a platform', () => {
  it('needs no file while nothing was sealed and none is named', async () => {
    expect(await checkMasterKeys(database.store, own('a'))).toBe('absent');
    await expect(checkMasterKeys(database.store, provided('a'))).rejects.toThrow('there is no master key');
    expect(await neededKeyIds(database.store.db)).toEqual([]);
  });

  it('registers the file of an installation that is older than the vault', async () => {
    await createMasterKeyFile(fileOf('a'));
    expect(await checkMasterKeys(database.store, own('a'))).toBe('ready');
    expect(await neededKeyIds(database.store.db)).toEqual([await idOf('a')]);
    expect(await checkMasterKeys(database.store, own('a'))).toBe('ready');
  });

  it('is refused with the file of another installation, and with none', async () => {
    await createMasterKeys(database.store, own('a'));
    await createMasterKeyFile(fileOf('b'));
    const id = await idOf('a');
    await expect(checkMasterKeys(database.store, provided('b'))).rejects.toThrow(
      `is an old copy or of another installation, but this database needs the master key ${id}`,
    );
    await rm(fileOf('a'));
    for (const file of [own('a'), provided('a')])
      await expect(checkMasterKeys(database.store, file)).rejects.toThrow(
        `there is no master key, but this database needs the master key ${id}`,
      );
  });

  it('is refused with a copy from before a new master key', async () => {
    await createMasterKeys(database.store, own('a'));
    await createMasterKeys(database.store, own('a'));
    await createMasterKeyFile(fileOf('old'));
    await copyFile(fileOf('a'), fileOf('old'));
    const { current } = await changeCurrentKey(database.store, fileOf('a'), true);
    await expect(checkMasterKeys(database.store, own('old'))).rejects.toThrow(`the master key ${current.id}`);
    expect(await checkMasterKeys(database.store, own('a'))).toBe('ready');
  });
});

describe('a new master key', () => {
  it('of several that are added at once is lost in no case', async () => {
    await createMasterKeys(database.store, own('a'));
    const added = await Promise.all(
      Array.from({ length: 4 }, () => changeCurrentKey(database.store, fileOf('a'), true)),
    );
    const { all } = await readMasterKeys(fileOf('a'));
    expect(all).toHaveLength(5);
    expect(all.map(({ id }) => id)).toEqual(expect.arrayContaining(added.map(({ current }) => current.id)));
    expect((await neededKeyIds(database.store.db)).toSorted()).toEqual(all.map(({ id }) => id).toSorted());
  });

  it('is not added to an old copy of the file', async () => {
    await createMasterKeys(database.store, own('a'));
    await createMasterKeyFile(fileOf('old'));
    await copyFile(fileOf('a'), fileOf('old'));
    await changeCurrentKey(database.store, fileOf('a'), true);
    const before = await readFile(fileOf('old'), 'utf8');
    await expect(changeCurrentKey(database.store, fileOf('old'), true)).rejects.toThrow('is an old copy');
    expect(await readFile(fileOf('old'), 'utf8')).toBe(before);
  });
});
