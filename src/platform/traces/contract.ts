// What deployments need of traces: that there is a tracing project of a name, that it goes, and a token with which a runner sends the runs
// of a deployment.
import { randomUUID } from 'node:crypto';
import { Secret } from '../../base/secret.ts';
import { mintKey } from '../identity/api-key.ts';
import type { Database, Transaction } from '../store/database.ts';
import type { Fixed } from '../store/sql.ts';

declare module '../store/tables.ts' {
  interface Tables {
    readonly trace_tokens: {
      readonly deployment_id: Fixed<string>;
      readonly workspace_id: Fixed<string>;
      hash: Buffer;
      readonly created_at: Fixed<Date>;
    };
  }
}

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

/**
 * It lets its holder send runs to the workspace of the deployment, and nothing else, until the deployment is deleted or gets another one.
 * Undefined: the deployment is gone, or is being deleted.
 */
export async function issueTraceToken(
  db: Database,
  { workspaceId, deploymentId }: { readonly workspaceId: string; readonly deploymentId: string },
): Promise<Secret | undefined> {
  const { text, hash } = mintKey('trace');
  const stored = await db
    .insertInto('trace_tokens')
    .columns(['deployment_id', 'workspace_id', 'hash'])
    .expression(({ selectFrom, val }) =>
      selectFrom('deployments')
        .select(['id', 'workspace_id', val(hash).as('hash')])
        .where('workspace_id', '=', workspaceId)
        .where('id', '=', deploymentId)
        .where('status', '<>', 'AWAITING_DELETE'),
    )
    .onConflict((conflict) => conflict.column('deployment_id').doUpdateSet({ hash }))
    .returning('deployment_id')
    .executeTakeFirst();
  return stored && new Secret(text);
}

/** Waits for requests that have begun with it: what they write is there when this returns. */
export async function revokeTraceToken(trx: Transaction, deploymentId: string): Promise<void> {
  await trx.deleteFrom('trace_tokens').where('deployment_id', '=', deploymentId).execute();
}
