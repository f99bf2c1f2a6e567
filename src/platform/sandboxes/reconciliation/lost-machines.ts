// Machines that do not come back: what ran on one has failed, and what its users delete is gone without it. By the clock of the
// database. Nothing else is deleted: the files of a box may still be on the disk of the machine.
import type { Store, Transaction } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import { moveBox, removeRow } from '../box-moves.ts';
import { BATCH, inBatches } from './batches.ts';

/** After a database was away all machines look lost: each has so long to be seen again. */
const GRACE_SECONDS = 120;

const MESSAGE =
  'The machine that runs it has not been seen for a long time: start it again when the machine is back, or delete it';

/** Every process may do this. A machine that is seen again is no longer lost. */
export async function giveUpLostMachines(
  store: Pick<Store, 'db' | 'write'>,
  lostAfterSeconds: number,
): Promise<{ readonly failed: number; readonly removed: number }> {
  await store.db
    .updateTable('box_machines')
    .set({ lost_at: sql<Date>`now() + make_interval(secs => ${GRACE_SECONDS})` })
    .where('lost_at', 'is', null)
    .where('seen_at', '<', sql<Date>`now() - make_interval(secs => ${lostAfterSeconds})`)
    .execute();
  const failed = await inBatches(store, async (trx) => {
    const boxes = await lockLost(trx, ['provisioning', 'ready']);
    for (const { id, workspace_id: workspaceId, status: from } of boxes)
      if (from === 'provisioning' || from === 'ready')
        await moveBox(trx, {
          ...{ id, workspaceId, from, to: 'failed', reason: 'machine_lost' },
          set: { status_message: MESSAGE },
        });
    return boxes.length;
  });
  const removed = await inBatches(store, async (trx) => {
    const boxes = await lockLost(trx, ['deleting']);
    for (const { id } of boxes) await removeRow(trx, id, 'machine_lost');
    return boxes.length;
  });
  return { failed, removed };
}

async function lockLost(trx: Transaction, statuses: readonly ('provisioning' | 'ready' | 'deleting')[]) {
  return trx
    .selectFrom('boxes')
    .select(['id', 'workspace_id', 'status'])
    .where('status', 'in', statuses)
    .where('machine_id', 'in', (query) =>
      query.selectFrom('box_machines').select('id').where('lost_at', '<', sql<Date>`now()`),
    )
    .orderBy('id')
    .limit(BATCH)
    .forNoKeyUpdate()
    .skipLocked()
    .execute();
}
