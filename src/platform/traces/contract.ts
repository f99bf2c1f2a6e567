// What other modules need of tracing projects: that there is one of a name, and that it goes.
import { randomUUID } from 'node:crypto';
import type { Transaction } from '../store/database.ts';

/** One that is there already, with whatever runs, stays as it is. */
export async function ensureTracingProject(
  trx: Transaction,
  workspaceId: string,
  name: string,
): Promise<void> {
  await trx
    .insertInto('trace_projects')
    .values({
      ...{ workspace_id: workspaceId, id: randomUUID(), name },
      ...{ description: null, extra: null, end_time: null },
      ...{ default_dataset_id: null, reference_dataset_id: null },
    })
    .onConflict((conflict) => conflict.constraint('trace_projects_name').doNothing())
    .execute();
}

/** With its runs, which are not found any more and removed by a job. Returns its id; undefined: there is none of the name. */
export async function removeTracingProject(
  trx: Transaction,
  workspaceId: string,
  name: string,
): Promise<string | undefined> {
  const gone = await trx
    .deleteFrom('trace_projects')
    .where('workspace_id', '=', workspaceId)
    .where('name', '=', name)
    .returning('id')
    .executeTakeFirst();
  return gone?.id;
}
