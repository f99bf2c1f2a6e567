// Which master keys this database needs. It knows their ids, so that the file of another installation, or an old copy, is refused
// before anything is served or sealed.
import { InputError } from '../../base/input-error.ts';
import type { Database, Store, Transaction } from '../store/database.ts';
import { sql } from '../store/sql.ts';
import {
  addMasterKey,
  createMasterKeyFile,
  findKeysOf,
  type MasterKeys,
  type MasterKeySource,
  readMasterKeys,
} from './master-keys.ts';

/** Of the advisory lock of everything that changes the file or the registry: any number that nothing else uses. */
const LOCK = 5_271_009_002;

/** For `init`: creates the file of an installation that never had one. */
export async function createMasterKeys(store: Store, source: MasterKeySource): Promise<void> {
  await store.write(async (trx) => {
    const needed = await lockRegistry(trx);
    // With another key than the other machines of this installation, this one would open nothing of theirs.
    if (needed.length === 0 && isCreated(source)) await createMasterKeyFile(source.masterKeyFile);
    await register(trx, await readNeededKeys(source, needed));
  });
}

/**
 * For the start of a platform. `absent`: there is no file, and nothing was sealed yet. Throws an InputError when the file does
 * not have a key that this database needs.
 */
export async function checkMasterKeys(store: Store, source: MasterKeySource): Promise<'ready' | 'absent'> {
  const needed = await neededKeyIds(store.db);
  if (needed.length === 0 && isCreated(source) && (await findKeysOf(source)) === undefined) return 'absent';
  await readNeededKeys(source, needed);
  if (needed.length === 0)
    await store.write(async (trx) => register(trx, await readNeededKeys(source, await lockRegistry(trx))));
  return 'ready';
}

/** By `init`, where nobody has provided it. */
function isCreated({ isProvided = false, masterKey }: MasterKeySource): boolean {
  return !isProvided && masterKey === undefined;
}

/** For `rewrap`: the keys, of which the current one is registered, and from now on wraps what is new. */
export function changeCurrentKey(store: Store, masterKeyFile: string, addsKey: boolean): Promise<MasterKeys> {
  return store.write(async (trx) => {
    const known = await readNeededKeys({ masterKeyFile }, await lockRegistry(trx));
    const keys = addsKey ? await addMasterKey(masterKeyFile) : known;
    await register(trx, keys);
    return keys;
  });
}

/** The key that wraps a new data key: the first of the file that all processes know to be needed; undefined without one. */
export async function lockWrappingKey(
  trx: Transaction,
  keys: MasterKeys,
): Promise<MasterKeys['current'] | undefined> {
  const rows = await trx
    .selectFrom('vault_master_keys')
    .select('id')
    .where('retired_at', 'is', null)
    // Until the commit none of them is retired.
    .forShare()
    .execute();
  const needed = new Set(rows.map(({ id }) => id));
  return keys.all.find(({ id }) => needed.has(id));
}

/** Until the commit this key is not retired. */
export async function holdKey(trx: Transaction, id: string): Promise<void> {
  await trx
    .selectFrom('vault_master_keys')
    .select('id')
    .where('id', '=', id)
    .where('retired_at', 'is', null)
    .forShare()
    .executeTakeFirstOrThrow(
      () => new InputError(`the master key ${id} was replaced meanwhile by another rewrap`),
    );
}

/** Retires a key with which nothing is wrapped any more; otherwise returns the number of data keys that need it. */
export function retireKey(store: Store, id: string): Promise<number> {
  return store.write(async (trx) => {
    // Waits for transactions that wrap a new data key with it; the statements after this one see what they wrapped.
    await trx.selectFrom('vault_master_keys').select('id').where('id', '=', id).forUpdate().execute();
    const { count } = await trx
      .selectFrom('vault_keys')
      .select(({ fn }) => fn.countAll<string>().as('count'))
      .where('master_key_id', '=', id)
      .executeTakeFirstOrThrow();
    if (count === '0')
      await trx
        .updateTable('vault_master_keys')
        .set({ retired_at: sql<Date>`now()` })
        .where('id', '=', id)
        .execute();
    return Number(count);
  });
}

export async function neededKeyIds(db: Database): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('vault_master_keys')
    .select('id')
    .where('retired_at', 'is', null)
    .execute();
  return rows.map(({ id }) => id);
}

async function lockRegistry(trx: Transaction): Promise<readonly string[]> {
  await sql`select pg_advisory_xact_lock(${sql.lit(LOCK)})`.execute(trx);
  return neededKeyIds(trx);
}

async function register(trx: Transaction, { current }: MasterKeys): Promise<void> {
  await trx
    .insertInto('vault_master_keys')
    .values({ id: current.id, retired_at: null })
    .onConflict((conflict) => conflict.column('id').doUpdateSet({ retired_at: null }))
    .execute();
}

async function readNeededKeys(source: MasterKeySource, needed: readonly string[]): Promise<MasterKeys> {
  const { masterKeyFile: file, masterKey } = source;
  const keys = (await findKeysOf(source)) ?? (needed.length === 0 ? await readMasterKeys(file) : undefined);
  const missing = needed.filter((id) => keys?.find(id) === undefined);
  if (keys !== undefined && missing.length === 0) return keys;
  if (masterKey !== undefined)
    throw new InputError(
      `the master key that was given is not the one that this database needs: ${missing.join(' and ')}`,
    );
  const problem =
    keys === undefined ? 'there is no master key' : 'this file is an old copy or of another installation';
  throw new InputError(
    `${file}: ${problem}, but this database needs the master key ${missing.join(' and ')}: restore it from a backup, or copy the file from a machine on which this platform runs, or name it by SALLYPORT_PLATFORM_VAULT_MASTER_KEY_FILE`,
  );
}
