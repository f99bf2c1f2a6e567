// Moves of revisions in the database: each leaves a row with its time, wakes whoever waits for the deployment, and has an audit
// event where no request has one. The deployment is locked before its revisions, everywhere.
import { appendEvent } from '../audit/journal.ts';
import type { Reader, Transaction } from '../store/database.ts';
import { notify } from '../store/postgres/notifications.ts';
import { sql } from '../store/sql.ts';
import './deployment-rows.ts';
import { canMove, endOfUnwanted, pendingStatuses, type RevisionStatus } from './revision-states.ts';

/** Moves that no caller asked for. */
export const SYSTEM = 'system';

export type RevisionMove = {
  readonly revisionId: string;
  readonly to: RevisionStatus;
  /** `SYSTEM`, or the id of the caller, whose request has the audit event. */
  readonly actor: string;
  readonly reason?: string | undefined;
};

/** False: it is gone, or its state does not lead there. Nothing is written then. */
export async function moveRevision(
  trx: Transaction,
  { revisionId, to, actor, reason }: RevisionMove,
): Promise<boolean> {
  const deployment = await lockDeploymentOf(trx, revisionId);
  if (deployment === undefined) return false;
  const found = trx.selectFrom('revisions').select('status').where('id', '=', revisionId);
  const revision = await found.forNoKeyUpdate().executeTakeFirst();
  if (revision === undefined || !canMove(revision.status, to)) return false;
  const now = sql<Date>`now()`;
  await trx
    .updateTable('revisions')
    .set({ status: to, updated_at: now })
    .where('id', '=', revisionId)
    .execute();
  const { id, workspace_id: workspaceId } = deployment;
  const row = { workspace_id: workspaceId, revision_id: revisionId, from_status: revision.status };
  await trx
    .insertInto('revision_moves')
    .values({ ...row, to_status: to, actor, reason: reason ?? null })
    .execute();
  if (to === 'DEPLOYED')
    await trx
      .updateTable('deployments')
      .set({ active_revision_id: revisionId, updated_at: now })
      .where('id', '=', id)
      .execute();
  await notifyOfDeployment(trx, id);
  if (actor === SYSTEM) await recordSystemMove(trx, deployment, revisionId);
  return true;
}

/** Whoever builds, runs or waits for the deployment reads its rows again. */
export async function notifyOfDeployment(trx: Transaction, deploymentId: string): Promise<void> {
  await notify(trx, 'deployments', deploymentId);
}

/** Ends all revisions that have not ended, except one: the newest. */
export async function endUnwanted(
  trx: Transaction,
  given: {
    readonly deploymentId: string;
    readonly except?: string | undefined;
    readonly actor: string;
    readonly reason: string;
  },
): Promise<void> {
  const { deploymentId, except, actor, reason } = given;
  const rows = await trx
    .selectFrom('revisions as r')
    .leftJoin('builds as b', 'b.id', 'r.build_id')
    .select(['r.id', 'r.status'])
    .select(sql<boolean>`coalesce(b.created_at >= r.created_at, false)`.as('was_built'))
    .where('r.deployment_id', '=', deploymentId)
    .where('r.status', 'in', pendingStatuses)
    .orderBy('r.number')
    .execute();
  for (const { id, status, was_built: wasBuilt } of rows) {
    const to = id === except ? undefined : endOfUnwanted(status, { wasBuilt });
    if (to !== undefined) await moveRevision(trx, { revisionId: id, to, actor, reason });
  }
}

type Locked = {
  readonly id: string;
  readonly workspace_id: string;
  readonly name: string;
  readonly organization_id: string;
};

/** By the order in which everybody locks: deployment, then revision. */
async function lockDeploymentOf(trx: Transaction, revisionId: string): Promise<Locked | undefined> {
  return trx
    .selectFrom('deployments as d')
    .innerJoin('revisions as r', 'r.deployment_id', 'd.id')
    .innerJoin('workspaces as w', 'w.id', 'd.workspace_id')
    .select(['d.id', 'd.workspace_id', 'd.name', 'w.organization_id'])
    .where('r.id', '=', revisionId)
    .forNoKeyUpdate('d')
    .executeTakeFirst();
}

/** Without a caller: what the system does by itself. */
async function recordSystemMove(trx: Transaction, deployment: Locked, revisionId: string): Promise<void> {
  const { id, name, organization_id: organizationId, workspace_id: workspaceId } = deployment;
  await appendEvent(trx, {
    ...{ organizationId, workspaceId, operation: 'update_deployment', isSuccess: true },
    resources: [id, revisionId],
    resourceNames: [name, ''],
  });
}

export type MoveRow = {
  readonly from: RevisionStatus | null;
  readonly to: RevisionStatus;
  readonly actor: string;
  readonly reason: string | null;
  readonly at: Date;
};

/** In the order in which they were made. */
export async function listMoves(db: Reader, revisionId: string): Promise<readonly MoveRow[]> {
  return db
    .selectFrom('revision_moves')
    .select(['from_status as from', 'to_status as to', 'actor', 'reason', 'at'])
    .where('revision_id', '=', revisionId)
    .orderBy('id')
    .execute();
}
