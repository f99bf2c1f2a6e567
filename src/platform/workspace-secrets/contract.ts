// What other modules need of the secrets of a workspace: their names, and the values of those that a document uses. One of
// the files that open values of the vault.
import type { Secret } from '../../base/secret.ts';
import type { Reader } from '../store/database.ts';
import { type Entity, type Generated, sql } from '../store/sql.ts';
import type { SealedPlace, Vault } from '../vault/vault.ts';

declare module '../store/tables.ts' {
  interface Tables {
    readonly workspace_secrets: Entity & {
      readonly workspace_id: string;
      readonly key: string;
      /** Different for each value that was ever stored. */
      version: string;
      sealed: Buffer;
      updated_at: Generated<Date>;
    };
  }
}

/** The values by name. */
export type WorkspaceSecrets = ReadonlyMap<string, Secret>;

/** The names of the secrets of a workspace, sorted by their characters. */
export async function listSecretNames(db: Reader, workspaceId: string): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('workspace_secrets')
    .select('key')
    .where('workspace_id', '=', workspaceId)
    .orderBy(sql`key collate "C"`)
    .execute();
  return rows.map(({ key }) => key);
}

/** The secrets with these names; one that does not exist is left out. */
export async function openSecrets(
  { vault, db }: { readonly vault: Vault; readonly db: Reader },
  workspaceId: string,
  names: readonly string[],
): Promise<WorkspaceSecrets> {
  if (names.length === 0) return new Map();
  const rows = await db
    .selectFrom('workspace_secrets')
    .select(['key', 'version', 'sealed'])
    .where('workspace_id', '=', workspaceId)
    .where('key', 'in', names)
    .execute();
  const opened = new Map<string, Secret>();
  for (const { key, version: stored, sealed } of rows) {
    const version = Number(stored);
    const value = await vault.unsealValue(db, placeOf({ workspaceId, key, version }), sealed);
    // Its name may be shown; that it was moved or changed in the database is a matter of the operator.
    if (value === undefined)
      throw new Error(`the workspace secret ${key} of ${workspaceId} was changed or moved: it does not open`);
    opened.set(key, value);
  }
  return opened;
}

/** Where a value is sealed for. */
export function placeOf({
  workspaceId,
  key,
  version,
}: {
  readonly workspaceId: string;
  readonly key: string;
  readonly version: number;
}): SealedPlace {
  return { workspaceId, purpose: 'workspace_secret', name: key, version };
}
