// Wraps the data keys of a platform's vault with the current master key, or with a new one, for `sallyport platform rewrap`. The
// audit log of each organization names the workspaces.
import { appendEvent } from './audit/journal.ts';
import type { PlatformConfig } from './config.ts';
import { openOperatorStore } from './operator-database.ts';
import { changeCurrentKey } from './vault/master-key-registry.ts';
import { type Rewrapped, rewrapKeys } from './vault/rewrap.ts';

/** Platforms may run meanwhile: they read the file again when they meet a key that they do not know. */
export async function rewrapVault(
  config: Pick<PlatformConfig, 'database' | 'dataDirectory' | 'vault'>,
  addsKey: boolean,
): Promise<Rewrapped & { readonly masterKeyId: string }> {
  await using database = await openOperatorStore(config, 1);
  const { store } = database;
  const keys = await changeCurrentKey(store, config.vault.masterKeyFile, addsKey);
  const rewrapped = await rewrapKeys(store, keys, (trx, organizationId, workspaceIds) =>
    appendEvent(trx, {
      organizationId,
      operation: 'update_vault_keys',
      isSuccess: true,
      resources: workspaceIds,
    }),
  );
  return { ...rewrapped, masterKeyId: keys.current.id };
}
