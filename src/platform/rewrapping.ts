// Wraps the data keys of a platform's vault with the current master key, or with a new one, for `sallyport platform rewrap`.
import type { PlatformConfig } from './config.ts';
import { openOperatorStore } from './operator-database.ts';
import { addMasterKey, readMasterKeys } from './vault/master-keys.ts';
import { type Rewrapped, rewrapKeys } from './vault/rewrap.ts';

/** Platforms may run meanwhile: they read the file again when they meet a key that they do not know. */
export async function rewrapVault(
  config: Pick<PlatformConfig, 'database' | 'dataDirectory' | 'vault'>,
  addsKey: boolean,
): Promise<Rewrapped & { readonly masterKeyId: string }> {
  const { masterKeyFile } = config.vault;
  await using database = await openOperatorStore(config, 1);
  const keys = addsKey ? await addMasterKey(masterKeyFile) : await readMasterKeys(masterKeyFile);
  return { ...(await rewrapKeys(database.store, keys)), masterKeyId: keys.current.id };
}
