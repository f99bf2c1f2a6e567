// What one workspace may have of deployments, so that no tenant fills the disk or the queue of builds.
import { DomainError } from '../../../base/domain-error.ts';
import { pendingStatuses } from '../../deployments/revision-states.ts';
import type { Database, Reader, Transaction } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';

export type DeploymentQuotas = {
  readonly deployments: number;
  readonly pendingRevisions: number;
  readonly openUploads: number;
  readonly sourceBytes: number;
};

/** Locks the workspace until the commit, so that two concurrent requests are counted one after the other. */
export async function lockQuotas(trx: Database, workspaceId: string): Promise<void> {
  await trx.selectFrom('workspaces').select('id').where('id', '=', workspaceId).forNoKeyUpdate().execute();
}

/** After the write, in its transaction. Throws `quota_exceeded`, which rolls it back. */
export async function requireDeploymentQuota(
  trx: Transaction,
  workspaceId: string,
  { deployments: limit }: Pick<DeploymentQuotas, 'deployments'>,
): Promise<void> {
  const rows = trx.selectFrom('deployments').where('workspace_id', '=', workspaceId);
  const { count } = await rows
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .executeTakeFirstOrThrow();
  if (Number(count) > limit) throw exceeded('deployments', limit, 'delete some');
}

/** Of those that are built or run here. A revision that waits for the caller, or for an agent elsewhere, takes no place. */
export async function requirePendingQuota(
  trx: Transaction,
  workspaceId: string,
  { pendingRevisions: limit }: Pick<DeploymentQuotas, 'pendingRevisions'>,
): Promise<void> {
  const { count } = await trx
    .selectFrom('revisions')
    .where('workspace_id', '=', workspaceId)
    .where('source', '=', 'internal_source')
    .where('status', 'in', pendingStatuses)
    .where('status', '<>', 'CREATING')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .executeTakeFirstOrThrow();
  if (Number(count) > limit) throw exceeded('revisions that are not deployed yet', limit, 'wait for them');
}

export async function requireUploadQuota(
  trx: Transaction,
  workspaceId: string,
  { openUploads: limit, ...others }: DeploymentQuotas,
): Promise<void> {
  const { count } = await trx
    .selectFrom('deployment_uploads')
    .where('workspace_id', '=', workspaceId)
    .where('state', '=', 'open')
    .where('expires_at', '>', sql<Date>`now()`)
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .executeTakeFirstOrThrow();
  if (Number(count) > limit) throw exceeded('open uploads', limit, 'use them, or wait until they expire');
  await requireSourceQuota(trx, workspaceId, others, 1);
}

/** Whether this many bytes more may be stored. */
export async function requireSourceQuota(
  db: Reader,
  workspaceId: string,
  { sourceBytes: limit }: Pick<DeploymentQuotas, 'sourceBytes'>,
  bytes: number,
): Promise<void> {
  const { stored } = await db
    .selectFrom('deployment_uploads')
    .where('workspace_id', '=', workspaceId)
    .select(sql<string>`coalesce(sum(size_bytes), 0)`.as('stored'))
    .executeTakeFirstOrThrow();
  if (Number(stored) + bytes > limit) throw exceeded('bytes of stored sources', limit, 'delete deployments');
}

function exceeded(what: string, limit: number, cure: string): DomainError {
  return new DomainError(
    'quota_exceeded',
    `The workspace would exceed its limit of ${limit} ${what}: ${cure}`,
  );
}
