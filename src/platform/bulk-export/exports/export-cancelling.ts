// The cancellation of an export by a caller. It is final.
import { DomainError } from '../../../base/domain-error.ts';
import type { Transaction } from '../../store/database.ts';
import type { Clock } from '../scheduling/clock.ts';
import { stopExport } from '../scheduling/export-stopping.ts';
import { lockExportsOf } from '../scheduling/workspace-turn.ts';
import { type ExportRow, findExport, noExport } from './export-reading.ts';

/** Throws `not_found`, and `unusable` for an export that has ended in another way. Exports that a schedule has made go on. */
export async function cancelExport(
  {
    trx,
    workspaceId,
    clock,
  }: { readonly trx: Transaction; readonly workspaceId: string; readonly clock: Clock },
  id: string,
): Promise<ExportRow> {
  if (!(await lockExportsOf(trx, workspaceId))) throw noExport();
  const found = await findExport(trx, workspaceId, id);
  if (found.status === 'CANCELLED') return found;
  const { status, destination_id: destinationId } = found;
  const of = { workspaceId, exportId: id, destinationId, status };
  if (await stopExport(trx, { ...of, now: await clock(trx), move: 'cancel' }))
    return findExport(trx, workspaceId, id);
  throw new DomainError('unusable', `The bulk export has ended (${status}) and cannot be cancelled`);
}
