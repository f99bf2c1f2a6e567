// Wraps the data keys of all workspaces with the current master key, while platforms run. Sealed values do not change.
import type { Store } from '../store/database.ts';
import type { MasterKeys } from './master-keys.ts';
import { registerMasterKey, unwrapKey, wrapKey } from './vault.ts';

export type Rewrapped = {
  readonly rewrapped: number;
  /** The ids of master keys that the file does not have, and how many data keys each of them wraps. */
  readonly missing: ReadonlyMap<string, number>;
};

const BATCH = 100;
const BEFORE_ALL = '00000000-0000-0000-0000-000000000000';

/** May be ended at any time and run again. */
export async function rewrapKeys({ db }: Pick<Store, 'db'>, keys: MasterKeys): Promise<Rewrapped> {
  const missing = new Map<string, number>();
  let rewrapped = 0;
  await registerMasterKey(db, keys.current.id);
  for (let last = BEFORE_ALL; ; ) {
    const rows = await db
      .selectFrom('vault_keys')
      .select(['workspace_id', 'master_key_id', 'wrapped'])
      .where('master_key_id', '!=', keys.current.id)
      .where('workspace_id', '>', last)
      .orderBy('workspace_id')
      .limit(BATCH)
      .execute();
    for (const { workspace_id, master_key_id, wrapped } of rows) {
      last = workspace_id;
      const old = keys.find(master_key_id);
      if (old === undefined) {
        missing.set(master_key_id, (missing.get(master_key_id) ?? 0) + 1);
        continue;
      }
      const key = await unwrapKey(old, workspace_id, wrapped);
      const changed = await db
        .updateTable('vault_keys')
        .set({ master_key_id: keys.current.id, wrapped: await wrapKey(keys.current, workspace_id, key) })
        .where('workspace_id', '=', workspace_id)
        // Another run may have been here in between.
        .where('master_key_id', '=', master_key_id)
        .executeTakeFirst();
      rewrapped += Number(changed.numUpdatedRows);
    }
    if (rows.length < BATCH) return { rewrapped, missing };
  }
}
