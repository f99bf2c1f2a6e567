// Ends an export before its runs have ended, by a caller or by its time: the runs end with it, and their workers learn that their leases
// are lost.
import type { Transaction } from '../../store/database.ts';
import { type ExportStatus, moveExport, moveRun, type RunStatus } from '../exports/export-states.ts';
import { releaseCredentials } from './held-credentials.ts';
import { wakeWorkers } from './workspace-turn.ts';

type Stop = 'cancel' | 'time_out';
type Stopping = {
  readonly workspaceId: string;
  readonly exportId: string;
  readonly now: Date;
  readonly move: Stop;
};

/** Under the lock of the workspace. False: the export is in a state that has no such move. */
export async function stopExport(
  trx: Transaction,
  stopping: Stopping & { readonly destinationId: string; readonly status: ExportStatus },
): Promise<boolean> {
  const { workspaceId, exportId, destinationId, now, move } = stopping;
  const status = moveExport(stopping.status, move);
  if (status === undefined) return false;
  await trx
    .updateTable('exports')
    .set({ status, next_due_at: null, updated_at: now, finished_at: now })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', exportId)
    .execute();
  await stopRuns(trx, stopping);
  await releaseCredentials(trx, destinationId);
  await wakeWorkers(trx, workspaceId);
  return true;
}

/** Those that have not ended. */
export async function stopRuns(
  trx: Transaction,
  { workspaceId, exportId, now, move }: Stopping,
): Promise<void> {
  const from: readonly RunStatus[] = ['CREATED', 'RUNNING'];
  for (const status of from) {
    const next = moveRun(status, move);
    if (next === undefined) throw new Error(`a run that is ${status} cannot ${move}`);
    await trx
      .updateTable('export_runs')
      .set({
        ...{ status: next, lease_id: null, lease_until: null, attempt_at: null },
        ...{ updated_at: now, finished_at: now },
      })
      .where('workspace_id', '=', workspaceId)
      .where('export_id', '=', exportId)
      .where('status', '=', status)
      .execute();
  }
}
