// What the deletion of a workspace needs of bulk exports: that they end, and that their workers learn of it.
import type { Transaction } from '../store/database.ts';
import { sql } from '../store/sql.ts';
import { notify } from '../store/postgres/notifications.ts';

/** Nobody goes on with them; a job removes them when the workspace is gone. Runs that wait begin only with their exports. */
export async function cancelExportsOf(
  trx: Transaction,
  { organizationId, workspaceId }: { readonly organizationId: string; readonly workspaceId: string },
): Promise<void> {
  const workspace = await trx
    .selectFrom('workspaces')
    .select('id')
    .where('organization_id', '=', organizationId)
    .where('id', '=', workspaceId)
    .forUpdate()
    .executeTakeFirst();
  if (workspace === undefined) return;
  const now = sql<Date>`now()`;
  const ended = { status: 'CANCELLED', updated_at: now, finished_at: now } as const;
  await trx
    .updateTable('exports')
    .set({ ...ended, next_due_at: null })
    .where('workspace_id', '=', workspaceId)
    .where('status', 'in', ['CREATED', 'RUNNING', 'INTERVALSCHEDULED'])
    .execute();
  await trx
    .updateTable('export_runs')
    .set({ ...ended, lease_id: null, lease_until: null, attempt_at: null })
    .where('workspace_id', '=', workspaceId)
    .where('status', '=', 'RUNNING')
    .execute();
  await notify(trx, 'exports', workspaceId);
}
