// How a deployment ends: its revisions end at once, its row when its runner has removed what there is of it.
import type { Store, Transaction } from '../store/database.ts';
import { sql } from '../store/sql.ts';
import './deployment-rows.ts';
import { endUnwanted, notifyOfDeployment } from './revision-moves.ts';

/** Of a deployment that the caller has locked. Where no runner ever had anything of it, its row goes at once. */
export async function beginDeletion(trx: Transaction, deploymentId: string, actor: string): Promise<void> {
  await endUnwanted(trx, { deploymentId, actor, reason: 'the deployment was deleted' });
  const rows = await trx
    .updateTable('deployments as d')
    .set({ status: 'AWAITING_DELETE', updated_at: sql<Date>`now()` })
    .where('d.id', '=', deploymentId)
    .returning('d.runner_id')
    .returning(
      sql<boolean>`exists (select from builds b where b.deployment_id = d.id)
        or exists (select from deployment_databases o where o.deployment_id = d.id)`.as('has_left'),
    )
    .execute();
  const [row] = rows;
  if (row !== undefined && row.runner_id === null && !row.has_left)
    await trx.deleteFrom('deployments').where('id', '=', deploymentId).execute();
  await notifyOfDeployment(trx, deploymentId);
}

/** By its runner, when no process, database, role or directory of it is left. False: it is not being deleted, or is another's. */
export async function finishDeletion(
  store: Pick<Store, 'write'>,
  deploymentId: string,
  runnerId: string,
): Promise<boolean> {
  return store.write(async (trx) => {
    const gone = await trx
      .deleteFrom('deployments')
      .where('id', '=', deploymentId)
      .where('runner_id', '=', runnerId)
      .where('status', '=', 'AWAITING_DELETE')
      .returning('id')
      .executeTakeFirst();
    if (gone !== undefined) await notifyOfDeployment(trx, deploymentId);
    return gone !== undefined;
  });
}
