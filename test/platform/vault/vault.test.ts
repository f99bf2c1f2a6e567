// Sealed values open where they were sealed for, and nowhere else.
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createFirstOrganization } from '../../../src/platform/management/first-organization.ts';
import {
  addMasterKey,
  createMasterKeyFile,
  readMasterKeys,
} from '../../../src/platform/vault/master-keys.ts';
import { rewrapKeys } from '../../../src/platform/vault/rewrap.ts';
import { createVault, type SealedPlace, type Vault } from '../../../src/platform/vault/vault.ts';
import { createTestDatabase, type TestDatabase } from '../../support/platform-database.ts';
import { createScratch, type Scratch } from '../../support/scratch.ts';

const VALUE = 'a value of the vault tests';

let database: TestDatabase;
let scratch: Scratch;
let masterKeyFile: string;
let vault: Vault;
let organizationId: string;

beforeAll(async () => {
  [database, scratch] = await Promise.all([createTestDatabase(), createScratch()]);
  masterKeyFile = join(scratch.path, 'vault-master.key');
  await createMasterKeyFile(masterKeyFile);
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
  database.store.write((trx) => vault.seal(trx, place, VALUE));
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

  it('of a transaction that was rolled back is not used again', async () => {
    const place = await createPlace();
    const rolledBack = database.store.write(async (trx) => {
      await vault.seal(trx, place, VALUE);
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

// Last: it changes the file of all tests.
describe('rewrap', () => {
  it('with a new master key, while a vault is in use', async () => {
    const places = await Promise.all([createPlace(), createPlace(), createPlace()]);
    const sealed = await Promise.all(places.map(seal));
    const old = await readMasterKeys(masterKeyFile);
    // The rows that other tests moved do not open.
    const kept = places.map(({ workspaceId }) => workspaceId);
    await database.store.db.deleteFrom('vault_keys').where('workspace_id', 'not in', kept).execute();
    const keys = await addMasterKey(masterKeyFile);
    const before = await seal(await createPlace());
    expect(before.length).toBeGreaterThan(0);
    expect(await rewrapKeys(database.store, keys)).toEqual({ rewrapped: 3, missing: new Map() });
    for (const [i, place] of places.entries()) expect(await open(place, sealed[i] ?? before)).toBe(VALUE);
    expect(await rewrapKeys(database.store, keys)).toEqual({ rewrapped: 0, missing: new Map() });
    // Without the new key nothing opens any more, and what misses is named.
    const { missing, rewrapped } = await rewrapKeys(database.store, old);
    expect([rewrapped, [...missing]]).toEqual([0, [[keys.current.id, 4]]]);
  });
});
