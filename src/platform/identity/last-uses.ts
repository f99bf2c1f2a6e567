// When keys were last used, to the minute.
import type { Database } from '../store/database.ts';

export type LastUses = {
  /** Writes that the key is used, where the last use that is stored is older than a minute. */
  note(db: Database, key: UsedKey, atMs: number): void;
  /** Resolves when all pending updates are written. */
  settle(): Promise<void>;
};

type UsedKey = { readonly key_id: string; readonly last_used_at: Date | null };

const LAST_USE_INTERVAL_MS = 60_000;

/** At most one pending write per key; no request waits for it. */
export function createLastUses(onError: (error: unknown) => void): LastUses {
  const pending = new Map<string, Promise<void>>();
  const update = async (db: Database, keyId: string, atMs: number): Promise<void> => {
    const since = new Date(atMs - LAST_USE_INTERVAL_MS);
    await db
      .updateTable('api_keys')
      .set({ last_used_at: new Date(atMs) })
      // Skipped while the key is changed: the update would keep a connection of the authentication waiting.
      .where('id', '=', (eb) =>
        eb.selectFrom('api_keys').select('id').where('id', '=', keyId).forNoKeyUpdate().skipLocked(),
      )
      .where((eb) => eb.or([eb('last_used_at', 'is', null), eb('last_used_at', '<=', since)]))
      .execute();
  };
  return {
    note(db, { key_id: keyId, last_used_at }, atMs) {
      const isRecent = last_used_at !== null && atMs - last_used_at.getTime() < LAST_USE_INTERVAL_MS;
      if (isRecent || pending.has(keyId)) return;
      const writing = update(db, keyId, atMs)
        .catch(onError)
        .finally(() => pending.delete(keyId));
      pending.set(keyId, writing);
    },
    async settle() {
      await Promise.all(pending.values());
    },
  };
}
