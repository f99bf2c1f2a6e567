// Revisions in the database: a new one ends those before it, and moves as far as it can without a builder or a runner.
import { DomainError } from '../../../base/domain-error.ts';
import type { Page } from '../../api/paging.ts';
import { appendLogs } from '../../deployments/deployment-logs.ts';
import { removeUnusedSecrets } from '../../deployments/deployment-secrets.ts';
import type { SourceConfig, SourceRevisionConfig } from '../../deployments/deployment-rows.ts';
import type { LogKind } from '../../deployments/log-lines.ts';
import { endUnwanted, moveRevision } from '../../deployments/revision-moves.ts';
import { isTerminal, revisionStatuses, type RevisionStatus } from '../../deployments/revision-states.ts';
import type { Database, Reader, Transaction } from '../../store/database.ts';
import { type Selectable, sql } from '../../store/sql.ts';
import type { Tables } from '../../store/tables.ts';
import { type DeploymentRow, showRevisionConfig } from './deployments.ts';

export type RevisionRow = Selectable<Tables['revisions']>;

export function noRevision(id: string): DomainError {
  return new DomainError('not_found', `Revision ID ${id} not found.`);
}

export type NewRevision = {
  readonly config: SourceConfig;
  readonly source: SourceRevisionConfig;
  readonly secretsVersion: number;
  /** Kept of an earlier revision that was the same. */
  readonly buildId: string | undefined;
  /** Whether there is a source to build; undefined: none was named yet. */
  readonly hasSource: boolean | undefined;
  /** Of the caller. */
  readonly actor: string;
};

/** Of a deployment that the caller has locked. Returns its id. */
export async function createRevision(
  trx: Transaction,
  deployment: DeploymentRow,
  given: NewRevision,
): Promise<string> {
  const { id: deploymentId, workspace_id: workspaceId } = deployment;
  const { actor, secretsVersion } = given;
  const created = await trx
    .insertInto('revisions')
    .values({
      ...{ workspace_id: workspaceId, deployment_id: deploymentId, status: 'CREATING' },
      number: sql<number>`(select coalesce(max(number), 0) + 1 from revisions where deployment_id = ${deploymentId})`,
      ...{ source: deployment.source, secrets_version: secretsVersion, build_id: given.buildId ?? null },
      source_config: JSON.stringify(given.config),
      source_revision_config: JSON.stringify(given.source),
    })
    .returning(['id', 'number'])
    .executeTakeFirstOrThrow();
  const move = { workspace_id: workspaceId, revision_id: created.id, from_status: null, reason: null };
  await trx
    .insertInto('revision_moves')
    .values({ ...move, to_status: 'CREATING', actor })
    .execute();
  await trx
    .updateTable('deployments')
    .set({
      latest_revision_id: created.id,
      secrets_version: secretsVersion,
      updated_at: sql<Date>`now()`,
      source_config: JSON.stringify(given.config),
      source_revision_config: JSON.stringify(given.source),
    })
    .where('id', '=', deploymentId)
    .execute();
  const reason = `a newer revision came: ${created.id}`;
  await endUnwanted(trx, { deploymentId, except: created.id, actor, reason });
  await advance(trx, deployment, created.id, given);
  await removeUnusedSecrets(trx, deploymentId);
  await removeOldRevisions(trx, deploymentId, created.number);
  return created.id;
}

const NEVER_UPLOADED = 'the source was never uploaded: ask for another upload-url';

/** To where a builder, a runner, an agent or the caller goes on with it. */
async function advance(
  trx: Transaction,
  deployment: DeploymentRow,
  revisionId: string,
  { actor, buildId, hasSource, config }: NewRevision,
): Promise<void> {
  const log = (kind: LogKind, message: string, level: 'INFO' | 'ERROR' = 'INFO') => {
    const { id: deploymentId, workspace_id: workspaceId } = deployment;
    const line = { deploymentId, workspaceId, revisionId, kind, level, message, at: new Date() };
    return appendLogs(trx, [line]);
  };
  if (deployment.source !== 'internal_source') {
    await moveAll(trx, revisionId, actor, ['QUEUED', 'AWAITING_DEPLOY']);
    await log('deploy', `waiting for ${await agentOf(trx, deployment, config)}: no agent is connected`);
    return;
  }
  if (buildId !== undefined) await moveAll(trx, revisionId, actor, ['QUEUED', 'AWAITING_DEPLOY']);
  else if (hasSource === true) await moveAll(trx, revisionId, actor, ['QUEUED']);
  else if (hasSource === false) {
    await moveRevision(trx, { revisionId, to: 'CREATE_FAILED', actor, reason: NEVER_UPLOADED });
    await log('build', NEVER_UPLOADED, 'ERROR');
  }
}

async function moveAll(
  trx: Transaction,
  revisionId: string,
  actor: string,
  path: readonly RevisionStatus[],
): Promise<void> {
  for (const to of path) await moveRevision(trx, { revisionId, to, actor });
}

async function agentOf(
  trx: Transaction,
  { workspace_id: workspaceId }: DeploymentRow,
  { listener_id: listenerId }: SourceConfig,
): Promise<string> {
  if (!listenerId) return 'an agent';
  const listeners = trx.selectFrom('listeners').select('compute_id').where('workspace_id', '=', workspaceId);
  const found = await listeners.where('id', '=', listenerId).executeTakeFirst();
  return `listener ${found?.compute_id ?? listenerId}`;
}

/** Of one deployment; a client that deploys for ever must not fill the disk. */
const KEPT_REVISIONS = 500;

async function removeOldRevisions(trx: Transaction, deploymentId: string, newest: number): Promise<void> {
  if (newest <= KEPT_REVISIONS) return;
  await trx
    .deleteFrom('revisions')
    .where('deployment_id', '=', deploymentId)
    .where('number', '<=', newest - KEPT_REVISIONS)
    .where('status', 'in', revisionStatuses.filter(isTerminal))
    .where(
      sql<boolean>`id is distinct from (select active_revision_id from deployments where id = ${deploymentId})`,
    )
    .execute();
}

/** Newest first. */
export async function listRevisions(
  db: Database,
  workspaceId: string,
  deploymentId: string,
  { limit, offset, statuses }: Page & { readonly statuses?: readonly RevisionStatus[] | undefined },
) {
  const rows = await selectShown(db)
    .where('r.workspace_id', '=', workspaceId)
    .where('r.deployment_id', '=', deploymentId)
    .$if(statuses !== undefined, (query) => query.where('r.status', 'in', statuses ?? []))
    .orderBy('r.number', 'desc')
    .limit(limit)
    .offset(offset)
    .execute();
  return rows.map(show);
}

/** Throws `not_found`. */
export async function readRevision(db: Reader, workspaceId: string, deploymentId: string, id: string) {
  const found = await selectShown(db)
    .where('r.workspace_id', '=', workspaceId)
    .where('r.deployment_id', '=', deploymentId)
    .where('r.id', '=', id)
    .executeTakeFirstOrThrow(() => noRevision(id));
  return show(found);
}

/** With the reason of its last move. */
function selectShown(db: Reader) {
  return db
    .selectFrom('revisions as r')
    .selectAll('r')
    .select(({ selectFrom }) =>
      selectFrom('revision_moves as m')
        .select('m.reason')
        .whereRef('m.revision_id', '=', 'r.id')
        .orderBy('m.id', 'desc')
        .limit(1)
        .as('reason'),
    );
}

function show(row: RevisionRow & { readonly reason: string | null }) {
  const { id, deployment_id, status, source, source_revision_config: config, created_at, updated_at } = row;
  return {
    ...{ id, deployment_id, status, status_reason: row.reason, source, created_at, updated_at },
    source_revision_config: showRevisionConfig(config),
  };
}

/** Throws `not_found`. */
export async function findRevision(
  db: Reader,
  workspaceId: string,
  deploymentId: string,
  id: string,
): Promise<RevisionRow> {
  return db
    .selectFrom('revisions')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where('deployment_id', '=', deploymentId)
    .where('id', '=', id)
    .executeTakeFirstOrThrow(() => noRevision(id));
}
