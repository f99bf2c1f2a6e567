// Data keys are wrapped with a new master key while values are sealed and opened, and each change is recorded once.
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secret.ts';
import { createOrganization } from '../../../src/platform/management/first-organization.ts';
import {
  changeCurrentKey,
  createMasterKeys,
  neededKeyIds,
} from '../../../src/platform/vault/master-key-registry.ts';
import { addMasterKey, type MasterKeys } from '../../../src/platform/vault/master-keys.ts';
import { type Rewrapped, rewrapKeys } from '../../../src/platform/vault/rewrap.ts';
import { createVault, type SealedPlace, type Vault } from '../../../src/platform/vault/vault.ts';
import { createTestDatabase, type TestDatabase } from '../../support/platform-database.ts';
import { createScratch, type Scratch } from '../../support/scratch.ts';

let database: TestDatabase;
let scratch: Scratch;
let masterKeyFile: string;
let vault: Vault;
let places: readonly SealedPlace[];
let sealed: readonly Buffer[];

beforeEach(async () => {
  [database, scratch] = await Promise.all([createTestDatabase(), createScratch()]);
  const { store } = database;
  masterKeyFile = join(scratch.path, 'vault-master.key');
  await createMasterKeys(store, { masterKeyFile, isProvided: false });
  vault = createVault({ masterKeyFile });
  places = await Promise.all(['One', 'Two', 'Three'].map(createPlace));
  sealed = await Promise.all(places.map(seal));
});
afterEach(async () => {
  await database?.[Symbol.asyncDispose]();
  await scratch?.[Symbol.asyncDispose]();
});

async function createPlace(name: string): Promise<SealedPlace> {
  const { workspaceId } = await database.store.write((trx) => createOrganization(trx, { name }));
  return { workspaceId, purpose: 'test', name: 'TOKEN', version: 1 };
}

const seal = (place: SealedPlace): Promise<Buffer> =>
  database.store.write((trx) => vault.seal(trx, place, new Secret(place.workspaceId)));

async function expectAllOpen(by: Vault = vault): Promise<void> {
  for (const [i, place] of places.entries()) {
    const opened = await by.unsealValue(database.store.db, place, sealed[i] as Buffer);
    expect(opened?.reveal()).toBe(place.workspaceId);
  }
}

function rewrap(keys: MasterKeys, recorded: string[] = []): Promise<Rewrapped> {
  return rewrapKeys(database.store, keys, async (_, _organization, ids) => void recorded.push(...ids));
}

describe('rewrap', () => {
  it('wraps every data key, records each once, and retires the key before', async () => {
    const [old] = await neededKeyIds(database.store.db);
    const keys = await changeCurrentKey(database.store, masterKeyFile, true);
    const recorded: string[] = [];
    expect(await rewrap(keys, recorded)).toEqual({
      rewrapped: 3,
      unopened: [],
      retired: [old],
      needed: new Map(),
    });
    expect(recorded.toSorted()).toEqual(places.map((place) => place.workspaceId).toSorted());
    await expectAllOpen();
    await expectAllOpen(createVault({ masterKeyFile }));
    expect(await rewrap(keys)).toEqual({ rewrapped: 0, unopened: [], retired: [], needed: new Map() });
    expect(await neededKeyIds(database.store.db)).toEqual([keys.current.id]);
  });

  it('changes nothing of an organization whose change cannot be recorded', async () => {
    const keys = await changeCurrentKey(database.store, masterKeyFile, true);
    const failing = rewrapKeys(database.store, keys, () => Promise.reject(new Error('no event')));
    await expect(failing).rejects.toThrow('no event');
    const wrapped = database.store.db.selectFrom('vault_keys').select('workspace_id');
    expect(await wrapped.where('master_key_id', '=', keys.current.id).execute()).toEqual([]);
    await expectAllOpen();
  });

  it('by two at once changes and records each data key once', async () => {
    const keys = await changeCurrentKey(database.store, masterKeyFile, true);
    const recorded: string[] = [];
    const done = await Promise.all([rewrap(keys, recorded), rewrap(keys, recorded)]);
    expect(done.reduce((sum, one) => sum + one.rewrapped, 0)).toBe(3);
    expect(recorded.toSorted()).toEqual(places.map((place) => place.workspaceId).toSorted());
  });

  it('keeps the key before while a new data key is being wrapped with it', async () => {
    const late = await createPlace('Late');
    const [old = ''] = await neededKeyIds(database.store.db);
    const { promise: isSealed, resolve: onSealed } = Promise.withResolvers<void>();
    const { promise: mayCommit, resolve: commit } = Promise.withResolvers<void>();
    const sealing = database.store.write(async (trx) => {
      const value = await vault.seal(trx, late, new Secret('late'));
      onSealed();
      await mayCommit;
      return value;
    });
    await isSealed;
    const keys = await changeCurrentKey(database.store, masterKeyFile, true);
    const running = rewrap(keys);
    // It waits for that transaction before it retires the key.
    const waiting = database.owner.db
      .selectFrom('pg_stat_activity' as never)
      .select('pid' as never)
      .where('wait_event_type' as never, '=', 'Lock' as never)
      .where('query' as never, 'like', '%vault_master_keys%for update%' as never)
      .where('datname' as never, '=', database.connection.database as never);
    await expect.poll(async () => (await waiting.execute()).length, { timeout: 10_000 }).toBe(1);
    commit();
    const value = await sealing;
    expect(await running).toMatchObject({ rewrapped: 3, retired: [], needed: new Map([[old, 1]]) });
    expect(await rewrap(keys)).toMatchObject({ rewrapped: 1, retired: [old] });
    expect((await vault.unsealValue(database.store.db, late, value))?.reveal()).toBe('late');
  });

  it('names a data key that was moved, and keeps the master key that it may need', async () => {
    const [one, two] = places;
    const { db } = database.store;
    const row = db
      .selectFrom('vault_keys')
      .select('wrapped')
      .where('workspace_id', '=', two?.workspaceId ?? '');
    const { wrapped } = await row.executeTakeFirstOrThrow();
    await db
      .updateTable('vault_keys')
      .set({ wrapped })
      .where('workspace_id', '=', one?.workspaceId ?? '')
      .execute();
    const [old = ''] = await neededKeyIds(db);
    const keys = await changeCurrentKey(database.store, masterKeyFile, true);
    const expected = { unopened: [one?.workspaceId], retired: [], needed: new Map([[old, 1]]) };
    expect(await rewrap(keys)).toEqual({ rewrapped: 2, ...expected });
    expect(await rewrap(keys)).toEqual({ rewrapped: 0, ...expected });
  });

  it('wraps nothing with a key that was replaced meanwhile', async () => {
    const first = await changeCurrentKey(database.store, masterKeyFile, true);
    const second = await changeCurrentKey(database.store, masterKeyFile, true);
    await rewrap(second);
    places = [...places, await createPlace('Four')];
    sealed = [...sealed, await seal(places.at(-1) as SealedPlace)];
    expect(await rewrap(first)).toMatchObject({ rewrapped: 0 });
    expect(await neededKeyIds(database.store.db)).toEqual([second.current.id]);
    await expectAllOpen(createVault({ masterKeyFile }));
  });
});

it('a value of a new workspace is wrapped with a key that the database needs, whatever the file has first', async () => {
  const [old] = await neededKeyIds(database.store.db);
  // As an operator prepares a machine for a new key.
  await addMasterKey(masterKeyFile);
  const place = await createPlace('Late');
  await seal(place);
  const row = database.store.db.selectFrom('vault_keys').select('master_key_id');
  expect(await row.where('workspace_id', '=', place.workspaceId).executeTakeFirst()).toEqual({
    master_key_id: old,
  });
});
