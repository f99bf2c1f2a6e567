// Values of tenants that are stored encrypted. Each workspace has a data key of its own, which the master key wraps; the sealed
// bytes are stored by the module that owns the value, and open only where they were sealed for.
import { randomBytes } from 'node:crypto';
import { DomainError } from '../../base/domain-error.ts';
import { InputError } from '../../base/input-error.ts';
import { Secret } from '../../base/secret.ts';
import { createSealer, loadSodium, sealKeyBytes } from '../../base/seal.ts';
import type { Reader, Transaction } from '../store/database.ts';
import { defineRead } from '../store/statement.ts';
import { lockWrappingKey } from './master-key-registry.ts';
import { findKeysOf, type MasterKey, type MasterKeys, type MasterKeySource } from './master-keys.ts';

/** What a sealed value is bound to: bytes that are moved to another row, column or version do not open. */
export type SealedPlace = {
  readonly workspaceId: string;
  /** The kind of value, one for each column that holds sealed bytes: `workspace_secret`. */
  readonly purpose: string;
  readonly name: string;
  readonly version: number;
};

export type Vault = {
  /**
   * Before the transaction: reads the master keys, so that `seal` in it waits for the database alone. Throws a DomainError
   * `unavailable` that says what the operator must do.
   */
  prepare(): Promise<void>;
  /** In the transaction that stores the bytes: the first value of a workspace creates its data key. */
  seal(trx: Transaction, place: SealedPlace, value: Secret): Promise<Buffer>;
  /** Undefined: these bytes were not sealed for this place. Called in the files that a test lists, and nowhere else. */
  unsealValue(db: Reader, place: SealedPlace, sealed: Buffer): Promise<Secret | undefined>;
};

/** Of the sealed bytes, so that another one can follow. */
const FORMAT = 1;

export function createVault(source: MasterKeySource): Vault {
  const masterKeys = new ReloadedKeys(source);
  const findDataKey = async (db: Reader, workspaceId: string): Promise<Buffer | undefined> => {
    const [row] = await findWrapped(db, { workspaceId });
    if (row === undefined) return undefined;
    const key = await unwrapKey(await masterKeys.get(row.master_key_id), workspaceId, row.wrapped);
    if (key === undefined)
      throw new Error(`the data key of workspace ${workspaceId} was changed or moved: it does not open`);
    return key;
  };
  return {
    async prepare() {
      await Promise.all([masterKeys.read(), loadSodium()]);
    },
    async seal(trx, place, value) {
      const { workspaceId } = place;
      const existing = await findDataKey(trx, workspaceId);
      if (existing === undefined) await createDataKey(trx, workspaceId, masterKeys);
      // Read back: another transaction may have created it first.
      const key = existing ?? (await findDataKey(trx, workspaceId));
      if (key === undefined) throw new Error('the workspace of a value to seal does not exist');
      const plaintext = Buffer.from(value.reveal(), 'utf8');
      try {
        const sealed = await createSealer(key).seal(plaintext, bindingOf(place));
        return Buffer.concat([Buffer.of(FORMAT), sealed]);
      } finally {
        wipe(key, plaintext);
      }
    },
    async unsealValue(db, place, sealed) {
      const key = sealed[0] === FORMAT ? await findDataKey(db, place.workspaceId) : undefined;
      if (key === undefined) return undefined;
      const plaintext = await createSealer(key).open(sealed.subarray(1), bindingOf(place));
      const value = plaintext && new Secret(plaintext.toString('utf8'));
      wipe(key, plaintext);
      return value;
    },
  };
}

const findWrapped = defineRead('find-vault-key', (db, { workspaceId }: { readonly workspaceId: string }) =>
  db
    .selectFrom('vault_keys')
    .select(['master_key_id', 'wrapped'])
    .where('workspace_id', '=', workspaceId)
    .compile(),
);

/** The data key in a row. Undefined: the row was changed or moved, or another master key wraps it. The caller wipes it. */
export function unwrapKey(
  masterKey: MasterKey,
  workspaceId: string,
  wrapped: Buffer,
): Promise<Buffer | undefined> {
  return masterKey.sealer.open(wrapped, wrappingOf(workspaceId));
}

export function wrapKey(masterKey: MasterKey, workspaceId: string, key: Buffer): Promise<Buffer> {
  return masterKey.sealer.seal(key, wrappingOf(workspaceId));
}

async function createDataKey(trx: Transaction, workspaceId: string, keys: ReloadedKeys): Promise<void> {
  const masterKey = await keys.lockWrappingKey(trx);
  const key = randomBytes(sealKeyBytes);
  const wrapped = await wrapKey(masterKey, workspaceId, key);
  wipe(key);
  await trx
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

/** What has been a key or a value must not stay in memory until the memory is used again. */
function wipe(...all: readonly (Buffer | undefined)[]): void {
  for (const bytes of all) bytes?.fill(0);
}

/** For callers of the API, who cannot do it themselves. The code is in the line of the log. */
const REASONS = {
  MASTER_KEY_ABSENT:
    'This installation has no master key, so it cannot store secret values: its operator must run sallyport platform init',
  MASTER_KEY_UNUSABLE:
    'The master key of this installation cannot be used: its operator learns the reason from sallyport platform init',
  MASTER_KEY_UNKNOWN:
    'The master key file has no key that this database uses: its operator must run sallyport platform init or rewrap',
} as const;

class MasterKeyUnavailable extends DomainError {
  readonly code: keyof typeof REASONS;

  constructor(code: keyof typeof REASONS, cause?: unknown) {
    super('unavailable', REASONS[code]);
    this.code = code;
    this.cause = cause;
  }
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
  readonly #source: MasterKeySource;
  #keys: MasterKeys | undefined;

  constructor(source: MasterKeySource) {
    this.#source = source;
  }

  /** As the file is now. */
  async read(): Promise<MasterKeys> {
    const keys = await findKeysOf(this.#source).catch((error: unknown) => {
      // Its message names the file, which is a matter of the operator.
      throw error instanceof InputError ? new MasterKeyUnavailable('MASTER_KEY_UNUSABLE', error) : error;
    });
    if (keys === undefined) throw new MasterKeyUnavailable('MASTER_KEY_ABSENT');
    this.#keys = keys;
    return keys;
  }

  /** Of the keys as they were last read; of the file as it is now, if those were retired since. */
  async lockWrappingKey(trx: Transaction): Promise<MasterKey> {
    const known = this.#keys && (await lockWrappingKey(trx, this.#keys));
    const found = known ?? (await lockWrappingKey(trx, await this.read()));
    if (found !== undefined) return found;
    throw new MasterKeyUnavailable('MASTER_KEY_UNKNOWN');
  }

  async get(id: string): Promise<MasterKey> {
    const known = this.#keys?.find(id);
    if (known) return known;
    const found = (await this.read()).find(id);
    if (found) return found;
    const { masterKeyFile: file } = this.#source;
    throw new Error(`a data key is wrapped with the master key ${id}, which ${file} does not have`);
  }
}
