// The mask for the lines of one revision, by its secrets: who may read its log may not read them.
import type { Reader } from '../store/database.ts';
import type { Vault } from '../vault/vault.ts';
import { openSecrets, type SecretOwner } from './deployment-secrets.ts';
import type { Mask } from './log-lines.ts';
import { createMask } from './log-mask.ts';

/** `version`: of the set of the revision. Rejects when it cannot be opened. */
export async function openSecretMask(
  source: { readonly vault: Vault; readonly db: Reader },
  owner: SecretOwner,
  version: number,
): Promise<Mask> {
  await source.vault.prepare();
  return createMask((await openSecrets(source, owner, version)).values());
}
