// Values of tenants that are stored encrypted. Each workspace has a data key of its own, which the master key wraps; the sealed
// bytes are stored by the module that owns the value, and open only where they were sealed for.
import { randomBytes } from 'node:crypto';
import { Secret } from '../../base/secret.ts';
import { createSealer, sealKeyBytes, type Sealer } from '../../base/seal.ts';
import type { Database } from '../store/database.ts';
import { type MasterKey, type MasterKeys, readMasterKeys } from './master-keys.ts';

/** What a sealed value is bound to: bytes that are moved to another row, column or version do not open. */
export type SealedPlace = {
  readonly workspaceId: string;
  /** The kind of value, one for each column that holds sealed bytes: `workspace_secret`. */
  readonly purpose: string;
  readonly name: string;
  readonly version: number;
};

export type Vault = {
  /** In the transaction that stores the bytes: the first value of a workspace creates its data key. */
  seal(db: Database, place: SealedPlace, value: string): Promise<Buffer>;
  /** Undefined: these bytes were not sealed for this place. Called in the files that a test lists, and nowhere else. */
  unsealValue(db: Database, place: SealedPlace, sealed: Buffer): Promise<Secret | undefined>;
};

/** Of the sealed bytes, so that another one can follow. */
const FORMAT = 1;

export function createVault({ masterKeyFile }: { readonly masterKeyFile: string }): Vault {
  const masterKeys = new ReloadedKeys(masterKeyFile);
  const dataKeyOf = async (db: Database, workspaceId: string): Promise<Sealer | undefined> => {
    const row = await db
      .selectFrom('vault_keys')
      .select(['master_key_id', 'wrapped'])
      .where('workspace_id', '=', workspaceId)
      .executeTakeFirst();
    if (row === undefined) return undefined;
    return createSealer(await unwrapKey(await masterKeys.get(row.master_key_id), workspaceId, row.wrapped));
  };
  return {
    async seal(db, place, value) {
      const { workspaceId } = place;
      const existing = await dataKeyOf(db, workspaceId);
      if (existing === undefined) await createDataKey(db, workspaceId, await masterKeys.current());
      // Read back: another transaction may have created it first.
      const sealer = existing ?? (await dataKeyOf(db, workspaceId));
      if (sealer === undefined) throw new Error('the workspace of a value to seal does not exist');
      const sealed = await sealer.seal(Buffer.from(value, 'utf8'), bindingOf(place));
      return Buffer.concat([Buffer.of(FORMAT), sealed]);
    },
    async unsealValue(db, place, sealed) {
      const sealer = sealed[0] === FORMAT ? await dataKeyOf(db, place.workspaceId) : undefined;
      const value = await sealer?.open(sealed.subarray(1), bindingOf(place));
      return value && new Secret(value.toString('utf8'));
    },
  };
}

/** The data key in a row, opened with the master key that wrapped it. Throws when the row was changed or moved. */
export async function unwrapKey(masterKey: MasterKey, workspaceId: string, wrapped: Buffer): Promise<Buffer> {
  const key = await masterKey.sealer.open(wrapped, wrappingOf(workspaceId));
  if (key === undefined)
    throw new Error(`the data key of workspace ${workspaceId} was changed or moved: it does not open`);
  return key;
}

export function wrapKey(masterKey: MasterKey, workspaceId: string, key: Buffer): Promise<Buffer> {
  return masterKey.sealer.seal(key, wrappingOf(workspaceId));
}

async function createDataKey(db: Database, workspaceId: string, masterKey: MasterKey): Promise<void> {
  const wrapped = await wrapKey(masterKey, workspaceId, randomBytes(sealKeyBytes));
  await registerMasterKey(db, masterKey.id);
  await db
    .insertInto('vault_keys')
    .columns(['organization_id', 'workspace_id', 'master_key_id', 'wrapped'])
    .expression((query) =>
      query
        .selectFrom('workspaces')
        .where('id', '=', workspaceId)
        .select(({ val }) => [
          'organization_id',
          'id',
          val(masterKey.id).as('master_key_id'),
          val(wrapped).as('wrapped'),
        ]),
    )
    .onConflict((conflict) => conflict.column('workspace_id').doNothing())
    .execute();
}

/** In the database: a data key refers to the master key that wraps it. */
export async function registerMasterKey(db: Database, id: string): Promise<void> {
  const row = db.insertInto('vault_master_keys').values({ id });
  await row.onConflict((conflict) => conflict.column('id').doNothing()).execute();
}

/** JSON, so that no two places have the same text. */
function bindingOf({ workspaceId, purpose, name, version }: SealedPlace): string {
  return JSON.stringify(['sallyport vault value', workspaceId, purpose, name, version]);
}

function wrappingOf(workspaceId: string): string {
  return JSON.stringify(['sallyport vault data key', workspaceId]);
}

/** Reads the file when it is first needed, and again for a key that it did not have: `rewrap` may have added one meanwhile. */
class ReloadedKeys {
  readonly #file: string;
  #keys: MasterKeys | undefined;

  constructor(file: string) {
    this.#file = file;
  }

  /** Always as the file is now: a key that was current may be about to be removed. */
  async current(): Promise<MasterKey> {
    this.#keys = await readMasterKeys(this.#file);
    return this.#keys.current;
  }

  async get(id: string): Promise<MasterKey> {
    const known = this.#keys?.find(id);
    if (known) return known;
    this.#keys = await readMasterKeys(this.#file);
    const found = this.#keys.find(id);
    if (found) return found;
    throw new Error(`a data key is wrapped with the master key ${id}, which ${this.#file} does not have`);
  }
}
