// Moves of boxes between their states in the database: each leaves a row with its reason, and wakes whoever waits for the box or
// reconciles it. A row that was moved by another is not moved.
import type { Transaction } from '../store/database.ts';
import { notify } from '../store/postgres/notifications.ts';
import { sql } from '../store/sql.ts';
import { type BoxRow, gatewayUrl, type PlacedRow } from './boxes.ts';
import { type BoxStatus, isMove, type MoveReason, type Place } from './box-states.ts';

type Set = Partial<
  Pick<
    BoxRow,
    | 'status_message'
    | 'desired'
    | 'desired_reason'
    | 'applied_version'
    | 'applied_token_version'
    | 'applied_profile_id'
    | 'applied_profile_version'
    | 'proxy_url'
    | 'needs_proxy_token'
    | 'ca_pem'
    | 'updated_by'
  >
>;

export type Move = {
  readonly id: string;
  readonly workspaceId: string;
  readonly from: BoxStatus;
  readonly to: BoxStatus;
  readonly reason: MoveReason;
  readonly set?: Set;
};

/** In the transaction of the caller. Undefined: the box has another state by now, or is to run although it would be stopped. */
export async function moveBox(
  trx: Transaction,
  { id, workspaceId, from, to, reason, set = {} }: Move,
): Promise<PlacedRow | undefined> {
  if (!isMove(from, to, reason)) throw new Error(`no box moves from ${from} to ${to} as ${reason}`);
  const moved = await trx
    .updateTable('boxes')
    .set({
      status: to,
      status_message: null,
      ...set,
      updated_at: sql<Date>`now()`,
      ...(to === 'stopped' ? { stopped_at: sql<Date>`now()` } : {}),
      ...(to === 'ready' ? { stopped_at: null, active_at: sql<Date>`now()` } : {}),
    })
    .where('id', '=', id)
    .where('status', '=', from)
    // Another request may want it to run by now: nothing would start a box that is stopped.
    .$if(to === 'stopped', (query) => query.where('desired', '=', 'stopped'))
    .returningAll()
    .returning(gatewayUrl)
    .executeTakeFirst();
  if (moved === undefined) return undefined;
  await noteMove(trx, { id, workspaceId, from, to, reason });
  return moved;
}

/** Also of a box that is new or gone. */
export async function noteMove(
  trx: Transaction,
  move: Pick<Move, 'id' | 'workspaceId' | 'reason'> & { readonly from: Place; readonly to: Place },
): Promise<void> {
  const { id, workspaceId, from, to, reason } = move;
  const row = { workspace_id: workspaceId, box_id: id, from_status: from, to_status: to, reason };
  await trx.insertInto('box_transitions').values(row).execute();
  await announce(trx, id);
}

/** Something about the box has changed. */
export async function announce(trx: Transaction, id: string): Promise<void> {
  await notify(trx, 'sandboxes', id);
}

type Deleted = Pick<BoxRow, 'id' | 'workspace_id' | 'machine_id' | 'status'>;
type Deletion = {
  readonly reason: 'delete_requested' | 'not_awaited' | 'expired';
  readonly updatedBy?: string;
};

/**
 * Of a row that the caller has locked. Where nobody can remove anything of the box, because no machine has taken it or its machine is
 * lost, its row goes at once: a machine that comes back removes what no row knows.
 */
export async function beginDeletion(
  trx: Transaction,
  { id, workspace_id: workspaceId, machine_id: machineId, status }: Deleted,
  { reason, updatedBy }: Deletion,
): Promise<void> {
  const set = updatedBy === undefined ? {} : { updated_by: updatedBy };
  if (status !== 'deleting')
    await moveBox(trx, { id, workspaceId, from: status, to: 'deleting', reason, set });
  if (machineId === null) await removeRow(trx, id, 'removed');
  else if (await isLost(trx, machineId)) await removeRow(trx, id, 'machine_lost');
}

async function isLost(trx: Transaction, machineId: string): Promise<boolean> {
  const lost = trx.selectFrom('box_machines').select('id').where('id', '=', machineId);
  return (await lost.where('lost_at', '<', sql<Date>`now()`).executeTakeFirst()) !== undefined;
}

/** The row of a box that is being deleted and of which nothing is left, or that nobody waits for any more. */
export async function removeRow(
  trx: Transaction,
  id: string,
  reason: 'removed' | 'machine_lost',
): Promise<void> {
  const gone = await trx
    .deleteFrom('boxes')
    .where('id', '=', id)
    .where('status', '=', 'deleting')
    .returning('workspace_id')
    .executeTakeFirst();
  if (gone === undefined) return;
  await noteMove(trx, { id, workspaceId: gone.workspace_id, from: 'deleting', to: 'gone', reason });
}
