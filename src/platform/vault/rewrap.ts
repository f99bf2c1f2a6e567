// Wraps the data keys of all workspaces with the current master key, while platforms run. Sealed values do not change.
import type { Store, Transaction } from '../store/database.ts';
import { holdKey, neededKeyIds, retireKey } from './master-key-registry.ts';
import type { MasterKeys } from './master-keys.ts';
import { unwrapKey, wrapKey } from './vault.ts';

export type Rewrapped = {
  readonly rewrapped: number;
  /** The workspaces whose data keys were changed or moved in the database. */
  readonly unopened: readonly string[];
  /** Ids of master keys with which nothing is wrapped any more. */
  readonly retired: readonly string[];
  /** Ids of other master keys that are still needed, and how many data keys need each of them. */
  readonly needed: ReadonlyMap<string, number>;
};

/** Records what was changed for an organization, as the last statement of the transaction of the change. */
type RecordChange = (
  trx: Transaction,
  organizationId: string,
  workspaceIds: readonly string[],
) => Promise<unknown>;

type Located = { readonly workspace_id: string; readonly organization_id: string };

const BATCH = 100;
const BEFORE_ALL = '00000000-0000-0000-0000-000000000000';

/** May be ended at any time and run again, also by several processes at once: each data key is changed and recorded once. */
export async function rewrapKeys(store: Store, keys: MasterKeys, record: RecordChange): Promise<Rewrapped> {
  const known = await neededKeyIds(store.db);
  // A key that another run has added since is not in `keys`, and not older.
  const before = known.filter((id) => id !== keys.current.id && keys.find(id) !== undefined);
  const unopened: string[] = [];
  let rewrapped = 0;
  for (const old of before)
    for await (const [organizationId, workspaceIds] of keysOf(store, old)) {
      const done = await store.write(async (trx) => {
        const wrapped = await rewrapWorkspaces(trx, keys, { old, workspaceIds });
        if (wrapped.changed.length > 0) await record(trx, organizationId, wrapped.changed);
        return wrapped;
      });
      rewrapped += done.changed.length;
      unopened.push(...done.unopened);
    }
  const retired: string[] = [];
  const needed = new Map<string, number>();
  for (const id of before) {
    const count = await retireKey(store, id);
    if (count === 0) retired.push(id);
    else needed.set(id, count);
  }
  return { rewrapped, unopened, retired, needed };
}

/** The workspaces whose data keys `masterKeyId` wraps, of one organization at a time: an event is of one organization. */
async function* keysOf({ db }: Store, masterKeyId: string): AsyncGenerator<[string, readonly string[]]> {
  for (let last = BEFORE_ALL; ; ) {
    const rows: readonly Located[] = await db
      .selectFrom('vault_keys')
      .select(['workspace_id', 'organization_id'])
      .where('master_key_id', '=', masterKeyId)
      .where('workspace_id', '>', last)
      .orderBy('workspace_id')
      .limit(BATCH)
      .execute();
    const byOrganization = Map.groupBy(rows, (row) => row.organization_id);
    for (const [organizationId, of] of byOrganization)
      yield [organizationId, of.map((row) => row.workspace_id)];
    last = rows.at(-1)?.workspace_id ?? last;
    if (rows.length < BATCH) return;
  }
}

type Selected = {
  /** The id of the master key that wraps now. */
  readonly old: string;
  readonly workspaceIds: readonly string[];
};

async function rewrapWorkspaces(
  trx: Transaction,
  keys: MasterKeys,
  { old, workspaceIds }: Selected,
): Promise<{ readonly changed: readonly string[]; readonly unopened: readonly string[] }> {
  await holdKey(trx, keys.current.id);
  const rows = await trx
    .selectFrom('vault_keys')
    .select(['workspace_id', 'wrapped'])
    .where('workspace_id', 'in', workspaceIds)
    // Asked again behind the lock: another process may have wrapped it meanwhile.
    .where('master_key_id', '=', old)
    .orderBy('workspace_id')
    .forUpdate()
    .execute();
  const changed: string[] = [];
  const unopened: string[] = [];
  for (const { workspace_id: workspaceId, wrapped } of rows) {
    const now = await rewrapKey(keys, { old, workspaceId, wrapped });
    (now ? changed : unopened).push(workspaceId);
    if (now)
      await trx
        .updateTable('vault_keys')
        .set({ master_key_id: keys.current.id, wrapped: now })
        .where('workspace_id', '=', workspaceId)
        .execute();
  }
  return { changed, unopened };
}

async function rewrapKey(
  keys: MasterKeys,
  {
    old,
    workspaceId,
    wrapped,
  }: { readonly old: string; readonly workspaceId: string; readonly wrapped: Buffer },
): Promise<Buffer | undefined> {
  const masterKey = keys.find(old);
  // Checked before: the file has every key that the database needs.
  if (masterKey === undefined) throw new Error(`the master key ${old} is missing`);
  const key = await unwrapKey(masterKey, workspaceId, wrapped);
  if (key === undefined) return undefined;
  try {
    return await wrapKey(keys.current, workspaceId, key);
  } finally {
    key.fill(0);
  }
}
