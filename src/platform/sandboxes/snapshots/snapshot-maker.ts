// Makes snapshots of directories on this machine, and removes files that no row names: of snapshots that were deleted, of requests
// that failed after their archive was read, of a database that was restored. Each step may be cut off and is decided anew.
import { setTimeout as delay } from 'node:timers/promises';
import { describeBug, type Log } from '../../../base/log.ts';
import { type Runtime, RuntimeError } from '../../runtime/contract.ts';
import type { Store } from '../../store/database.ts';
import { notify } from '../../store/postgres/notifications.ts';
import { sql } from '../../store/sql.ts';
import type { BoxChanges } from '../box-changes.ts';
import { readSnapshotBytes, type SnapshotQuota } from '../sizes/quotas.ts';
import type { SnapshotRow } from './snapshots.ts';

export type SnapshotMaking = {
  readonly store: Pick<Store, 'db' | 'write'>;
  readonly runtime: Runtime;
  readonly log: Log;
  readonly machineId: string;
  /** The operator's: a directory must be below one of these. */
  readonly directories: readonly string[];
  readonly quota: SnapshotQuota;
  /** Files without a row are younger while their request is still writing it. */
  readonly graceMs?: number;
};

/** Longer than a request may take after its archive was read. */
const GRACE_MS = 600_000;
const PAUSE_MS = 1_000;
const LOOK_MS = 30_000;
/** Directories at a time: they share one disk. */
const CONCURRENCY = 2;

/** Ends with the signal. */
export async function makeSnapshots(
  making: SnapshotMaking,
  changes: BoxChanges,
  signal: AbortSignal,
): Promise<void> {
  const running = new Map<string, Promise<void>>();
  let isFailing = false;
  const pass = async (): Promise<undefined> => {
    try {
      await claim(making, running, signal);
      await removeUnknown(making, running);
      isFailing = false;
    } catch (error) {
      if (!isFailing)
        making.log.warn(describeBug(error), 'the snapshots of this machine could not be looked at');
      isFailing = true;
    }
    await delay(PAUSE_MS, undefined, { signal, ref: false });
    return undefined;
  };
  while (!signal.aborted)
    await changes.waitFor(undefined, pass, { ms: LOOK_MS, everyMs: LOOK_MS, signal }).catch(() => undefined);
  await Promise.all(running.values());
}

async function claim(
  making: SnapshotMaking,
  running: Map<string, Promise<void>>,
  signal: AbortSignal,
): Promise<void> {
  const { store, machineId } = making;
  await sql`
    update snapshots set machine_id = ${machineId}
    where id in (select id from snapshots where status = 'building' and machine_id is null for update skip locked)`.execute(
    store.db,
  );
  const building = await store.db
    .selectFrom('snapshots')
    .selectAll()
    .where('machine_id', '=', machineId)
    .where('status', '=', 'building')
    .orderBy('created_at')
    .execute();
  for (const row of building) {
    if (running.has(row.id) || running.size >= CONCURRENCY) continue;
    const made = make(making, row, signal).finally(() => running.delete(row.id));
    running.set(row.id, made);
  }
}

/** Never rejects. */
async function make(making: SnapshotMaking, row: SnapshotRow, signal: AbortSignal): Promise<void> {
  const { store, runtime, log, quota, directories } = making;
  try {
    const maxBytes = Math.max(0, quota.snapshotBytes - (await readSnapshotBytes(store.db, row.workspace_id)));
    const source = { directory: row.directory ?? '', within: directories, maxBytes };
    const { bytes, entries } = await runtime.snapshots.importDirectory(row.id, source, signal);
    const set = { status: 'ready', size_bytes: String(bytes), entries } as const;
    // Others of the workspace may have been made at the same time.
    if (bytes > quota.snapshotBytes - (await readSnapshotBytes(store.db, row.workspace_id))) {
      await runtime.snapshots.remove(row.id);
      throw new RuntimeError('invalid_snapshot', 'The snapshots of the workspace would exceed their quota');
    }
    // Deleted meanwhile.
    if (!(await settle(making, row, set))) await runtime.snapshots.remove(row.id);
  } catch (error) {
    if (signal.aborted) return;
    if (error instanceof RuntimeError && error.kind !== 'unavailable')
      return void (await settle(making, row, { status: 'failed', status_message: error.message }).catch(
        () => false,
      ));
    log.warn(
      { ...describeBug(error), snapshot: row.id },
      'a snapshot could not be made yet; it is tried again',
    );
  }
}

async function settle(
  { store }: SnapshotMaking,
  { id }: SnapshotRow,
  set: Partial<Pick<SnapshotRow, 'status' | 'status_message' | 'size_bytes' | 'entries'>>,
): Promise<boolean> {
  return store.write(async (trx) => {
    const changed = await trx
      .updateTable('snapshots')
      .set({ ...set, updated_at: sql<Date>`now()` })
      .where('id', '=', id)
      .where('status', '=', 'building')
      .returning('id')
      .executeTakeFirst();
    await notify(trx, 'sandboxes', id);
    return changed !== undefined;
  });
}

async function removeUnknown(
  { store, runtime, log, graceMs = GRACE_MS }: SnapshotMaking,
  running: ReadonlyMap<string, Promise<void>>,
): Promise<void> {
  const listed = await runtime.snapshots.list().catch(nothingIfNone);
  const old = listed.filter(({ id, ageMs }) => ageMs >= graceMs && !running.has(id)).map(({ id }) => id);
  if (old.length === 0) return;
  const rows = await store.db.selectFrom('snapshots').select('id').where('id', 'in', old).execute();
  const known = new Set(rows.map(({ id }) => id));
  for (const id of old.filter((one) => !known.has(one))) {
    // A box of this machine uses it, which has no row either and is removed first.
    if (!(await removeUnused(runtime, id))) continue;
    log.info({ snapshot: id }, 'the files of a snapshot without a row were removed');
  }
}

async function removeUnused(runtime: Runtime, id: string): Promise<boolean> {
  try {
    await runtime.snapshots.remove(id);
    return true;
  } catch (error) {
    if (error instanceof RuntimeError && error.kind === 'invalid_snapshot') return false;
    throw error;
  }
}

function nothingIfNone(error: unknown): readonly [] {
  if (error instanceof RuntimeError && error.kind === 'not_supported') return [];
  throw error;
}
