// Sealed values open where they were sealed for, and nowhere else.
import { chmod, copyFile, readFile } from 'node:fs/promises';
import { inspect } from 'node:util';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createFirstOrganization } from '../../../src/platform/management/first-organization.ts';
import { Secret } from '../../../src/base/secret.ts';
import { changeCurrentKey, createMasterKeys } from '../../../src/platform/vault/master-key-registry.ts';
import { createMasterKeyFile } from '../../../src/platform/vault/master-keys.ts';
import { rewrapKeys } from '../../../src/platform/vault/rewrap.ts';
import { createVault, type SealedPlace, type Vault } from '../../../src/platform/vault/vault.ts';
import { createTestDatabase, type TestDatabase } from '../../support/platform-database.ts';
import { createScratch, type Scratch } from '../../support/scratch.ts';

const VALUE = 'a value of the vault tests, with ümläuts and 🔑';

let database: TestDatabase;
let scratch: Scratch;
let masterKeyFile: string;
let vault: Vault;
let organizationId: string;

beforeAll(async () => {
  [database, scratch] = await Promise.all([createTestDatabase(), createScratch()]);
  masterKeyFile = join(scratch.path, 'vault-master.key');
  await createMasterKeys(database.store, { masterKeyFile, isProvided: false });
  vault = createVault({ masterKeyFile });
  const first = await database.store.write((trx) =>
    createFirstOrganization(trx, { name: 'One', key: undefined }),
  );
  organizationId = first.organizationId;
});
afterAll(async () => {
  await database?.[Symbol.asyncDispose]();
  await scratch?.[Symbol.asyncDispose]();
});

let workspaces = 0;
async function createWorkspace(): Promise<string> {
  workspaces += 1;
  const { id } = await database.store.db
    .insertInto('workspaces')
    .values({ organization_id: organizationId, display_name: `workspace ${workspaces}`, tenant_handle: null })
    .returning('id')
    .executeTakeFirstOrThrow();
  return id;
}

async function createPlace(): Promise<SealedPlace> {
  return { workspaceId: await createWorkspace(), purpose: 'test', name: 'TOKEN', version: 1 };
}

const seal = (place: SealedPlace): Promise<Buffer> =>
  database.store.write((trx) => vault.seal(trx, place, new Secret(VALUE)));
const open = async (place: SealedPlace, sealed: Buffer, by: Vault = vault): Promise<string | undefined> =>
  (await by.unsealValue(database.store.db, place, sealed))?.reveal();

describe('a sealed value', () => {
  it('opens in its place, and is not in the bytes', async () => {
    const place = await createPlace();
    const sealed = await seal(place);
    expect(await open(place, sealed)).toBe(VALUE);
    expect(sealed.includes(VALUE)).toBe(false);
    expect((await seal(place)).equals(sealed)).toBe(false);
  });

  it('is a secret that does not print when it is opened', async () => {
    const place = await createPlace();
    const opened = await vault.unsealValue(database.store.db, place, await seal(place));
    expect([String(opened), JSON.stringify(opened), inspect(opened)]).toEqual([
      '[secret]',
      '"[secret]"',
      '[secret]',
    ]);
  });

  it('does not open anywhere else', async () => {
    const place = await createPlace();
    const sealed = await seal(place);
    const other = await createPlace();
    await seal(other);
    const elsewhere: readonly SealedPlace[] = [
      { ...place, workspaceId: other.workspaceId },
      { ...place, workspaceId: await createWorkspace() },
      { ...place, purpose: 'other' },
      { ...place, name: 'TOKEN2' },
      { ...place, version: 2 },
      { ...place, purpose: 'test","TOKEN', name: '' },
    ];
    for (const one of elsewhere) expect([one, await open(one, sealed)]).toEqual([one, undefined]);
  });

  it('does not open when a byte was changed, cut off or added', async () => {
    const place = await createPlace();
    const sealed = await seal(place);
    for (let at = 0; at < sealed.length; at += 7) {
      const changed = Buffer.from(sealed);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect(await open(place, changed)).toBeUndefined();
    }
    for (const one of [Buffer.alloc(0), sealed.subarray(0, -1), Buffer.concat([sealed, Buffer.of(0)])])
      expect(await open(place, one)).toBeUndefined();
  });
});

describe('the data key of a workspace', () => {
  it('is one, whatever seals first', async () => {
    const place = await createPlace();
    const all = await Promise.all(Array.from({ length: 8 }, () => seal(place)));
    for (const sealed of all) expect(await open(place, sealed)).toBe(VALUE);
    const rows = database.store.db.selectFrom('vault_keys').selectAll();
    expect(await rows.where('workspace_id', '=', place.workspaceId).execute()).toHaveLength(1);
  });

  it('is wrapped by the same key where that is held in memory', async () => {
    const place = await createPlace();
    const sealed = await seal(place);
    const masterKey = new Secret((await readFile(masterKeyFile, 'utf8')).trim());
    expect(await open(place, sealed, createVault({ masterKeyFile: '/nowhere', masterKey }))).toBe(VALUE);
  });

  it('of a transaction that was rolled back is not used again', async () => {
    const place = await createPlace();
    const rolledBack = database.store.write(async (trx) => {
      await vault.seal(trx, place, new Secret(VALUE));
      throw new Error('rolled back');
    });
    await expect(rolledBack).rejects.toThrow('rolled back');
    const sealed = await seal(place);
    expect(await open(place, sealed, createVault({ masterKeyFile }))).toBe(VALUE);
  });

  it('does not open in the row of another workspace', async () => {
    const [place, other] = [await createPlace(), await createPlace()];
    const sealed = await seal(place);
    await seal(other);
    const { db } = database.store;
    const wrapped = db
      .selectFrom('vault_keys')
      .select('wrapped')
      .where('workspace_id', '=', other.workspaceId);
    await db
      .updateTable('vault_keys')
      .set({ wrapped: (await wrapped.executeTakeFirstOrThrow()).wrapped })
      .where('workspace_id', '=', place.workspaceId)
      .execute();
    await expect(open(place, sealed)).rejects.toThrow('was changed or moved: it does not open');
  });

  it('is gone with its workspace', async () => {
    const place = await createPlace();
    const sealed = await seal(place);
    await database.store.db.deleteFrom('workspaces').where('id', '=', place.workspaceId).execute();
    expect(await open(place, sealed)).toBeUndefined();
    await expect(seal(place)).rejects.toThrow('does not exist');
  });
});

describe('a vault that is prepared', () => {
  it('says what the operator must do where there is no master key, and finds it once it is there', async () => {
    const file = join(scratch.path, 'later.key');
    const later = createVault({ masterKeyFile: file });
    await expect(later.prepare()).rejects.toMatchObject({
      ...{ kind: 'unavailable', code: 'MASTER_KEY_ABSENT' },
      message: expect.stringMatching(/must run sallyport platform init$/),
    });
    await copyFile(masterKeyFile, file);
    await chmod(file, 0o644);
    const error = await later.prepare().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ kind: 'unavailable', code: 'MASTER_KEY_UNUSABLE' });
    expect(String(error)).not.toContain(file);
    await chmod(file, 0o600);
    await later.prepare();
    const place = await createPlace();
    const sealed = await database.store.write((trx) => later.seal(trx, place, new Secret(VALUE)));
    expect(await open(place, sealed)).toBe(VALUE);
  });

  it('reads the file again for a new data key when the master keys that it knows were retired since', async () => {
    const file = join(scratch.path, 'replaced.key');
    await copyFile(masterKeyFile, file);
    const early = createVault({ masterKeyFile: file });
    await early.prepare();
    const keys = await changeCurrentKey(database.store, file, true);
    await rewrapKeys(database.store, keys, async () => undefined);
    const place = await createPlace();
    const sealed = await database.store.write((trx) => early.seal(trx, place, new Secret(VALUE)));
    expect(await open(place, sealed, early)).toBe(VALUE);
    await copyFile(file, masterKeyFile);
  });

  it('names what is missing when the file has none of the keys that the database uses', async () => {
    const file = join(scratch.path, 'foreign.key');
    await createMasterKeyFile(file);
    const foreign = createVault({ masterKeyFile: file });
    const place = await createPlace();
    const sealing = database.store.write((trx) => foreign.seal(trx, place, new Secret(VALUE)));
    await expect(sealing).rejects.toMatchObject({
      ...{ kind: 'unavailable', code: 'MASTER_KEY_UNKNOWN' },
      message: expect.stringContaining('no key that this database uses'),
    });
  });
});
