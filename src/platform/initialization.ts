// Creates the first organization of an installation, its workspace and its key, and records them in the audit log.
import { DomainError } from '../base/domain-error.ts';
import { InputError } from '../base/input-error.ts';
import type { Log } from '../base/log.ts';
import type { PlatformConfig } from './config.ts';
import { parseKey } from './identity/api-key.ts';
import { type NewOrganization, createFirstOrganization } from './management/first-organization.ts';
import { parseOrganizationName, recordCreation } from './organization-administration.ts';
import { openStorage } from './storage.ts';
import type { Store } from './store/database.ts';
import { createMasterKeys } from './vault/master-key-registry.ts';
import { readMasterKeys } from './vault/master-keys.ts';

export type InitializationOptions = {
  readonly log: Log;
  readonly name: string;
  /** An existing key to use. Without it, a key is created and returned once. */
  readonly key: string | undefined;
};

/** `there`: an earlier run did it with this very key, so a start script may run it every time. */
export async function initialize(
  config: PlatformConfig,
  { log, name, key }: InitializationOptions,
): Promise<NewOrganization | 'there'> {
  const organizationName = parseOrganizationName(name);
  // Before a database is created, which would be there at the next attempt.
  if (config.vault.isProvided) await readMasterKeys(config.vault.masterKeyFile);
  const storage = await openStorage(config, log);
  try {
    // Now: the embedded server has created the data directory, which its own user must be able to enter.
    await createMasterKeys(storage.pools.writes, config.vault);
    return await storage.pools.writes.write(async (trx) => {
      const created = await createFirstOrganization(trx, { name: organizationName, key });
      await recordCreation(trx, created);
      return created;
    });
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    const isConflict = error.kind === 'conflict';
    if (isConflict && (await isStored(storage.pools.reads, key))) return 'there';
    const hint = isConflict
      ? ': create more keys with the API, more organizations with `sallyport platform organization create`'
      : '';
    throw new InputError(`${error.message}${hint}`, { cause: error });
  } finally {
    await storage.close();
  }
}

async function isStored({ db }: Store, key: string | undefined): Promise<boolean> {
  const hash = key === undefined ? undefined : parseKey(key)?.hash;
  if (hash === undefined) return false;
  const found = db.selectFrom('api_keys').select('id').where('hash', '=', hash);
  return (await found.executeTakeFirst()) !== undefined;
}
