// Deployments in the database, and as callers see them. Every statement names the workspace.
import { DomainError } from '../../../base/domain-error.ts';
import type { z } from '../../../base/schema.ts';
import type { Page } from '../../api/paging.ts';
import { listSecretNames } from '../../deployments/deployment-secrets.ts';
import type { SourceConfig, SourceRevisionConfig } from '../../deployments/deployment-rows.ts';
import { deploymentUrl } from '../../deployments/gateway-address.ts';
import type { Database, Reader, Transaction } from '../../store/database.ts';
import { type Selectable, sql } from '../../store/sql.ts';
import type { Tables } from '../../store/tables.ts';
import type { shownDeployment, shownRevisionConfig, shownStatuses } from './deployment-schema.ts';

export type DeploymentRow = Selectable<Tables['deployments']>;
type SeenRow = DeploymentRow & { readonly gateway_url: string | null };
export type ShownDeployment = z.output<typeof shownDeployment>;

export function noDeployment(id: string): DomainError {
  return new DomainError('not_found', `Deployment ID ${id} not found.`);
}

export type DeploymentFilter = {
  readonly name_contains?: string | undefined;
  readonly status?: (typeof shownStatuses)[number] | undefined;
  readonly image_version?: string | undefined;
  readonly deployment_type?: string | undefined;
  readonly deployment_ids?: readonly string[] | undefined;
};

/**
 * One of exactly the name that is looked for first, because clients look for it on the first page; then the newest. Those that are being
 * deleted have no name any more: clients make a deployment of a name that they do not find.
 */
export async function listDeployments(
  db: Database,
  workspaceId: string,
  { limit, offset, ...filter }: DeploymentFilter & Page,
) {
  const { name_contains: text = '', status, image_version: image, deployment_type: type } = filter;
  // Known to clients, and had by none.
  if (status === 'UNUSED' || status === 'UNKNOWN') return [];
  let query = selectSeen(db).where('d.workspace_id', '=', workspaceId);
  if (text !== '') query = query.where(sql<boolean>`strpos(lower(d.name), lower(${text})) > 0`);
  if (text !== '' && status === undefined) query = query.where('d.status', '<>', 'AWAITING_DELETE');
  if (status !== undefined) query = query.where('d.status', '=', status);
  if (image !== undefined) query = query.where('d.image_version', '=', image);
  if (type !== undefined) query = query.where(sql<boolean>`d.source_config->>'deployment_type' = ${type}`);
  const { deployment_ids: ids } = filter;
  if (ids !== undefined && ids.length > 0) query = query.where('d.id', 'in', ids);
  const rows = await query
    .orderBy(sql`d.name = ${text}`, 'desc')
    .orderBy('d.created_at', 'desc')
    .orderBy('d.id')
    .limit(limit)
    .offset(offset)
    .execute();
  return showAll(db, rows);
}

/** Throws `not_found`, also for a deployment of another workspace. */
export async function readDeployment(db: Reader, workspaceId: string, id: string) {
  const query = selectSeen(db).where('d.workspace_id', '=', workspaceId).where('d.id', '=', id);
  const [shown] = await showAll(db, await query.execute());
  if (shown === undefined) throw noDeployment(id);
  return shown;
}

function selectSeen(db: Reader) {
  return db
    .selectFrom('deployments as d')
    .leftJoin('runners as n', 'n.id', 'd.runner_id')
    .selectAll('d')
    .select('n.gateway_url');
}

/** Throws `not_found`. */
export async function findDeployment(db: Reader, workspaceId: string, id: string): Promise<DeploymentRow> {
  return db
    .selectFrom('deployments')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .executeTakeFirstOrThrow(() => noDeployment(id));
}

/** Until the commit. Throws `not_found`, or `unusable` while it is being deleted. */
export async function lockDeployment(
  trx: Transaction,
  workspaceId: string,
  id: string,
): Promise<DeploymentRow> {
  const row = await trx
    .selectFrom('deployments')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .forNoKeyUpdate()
    .executeTakeFirstOrThrow(() => noDeployment(id));
  if (row.status !== 'AWAITING_DELETE') return row;
  throw new DomainError('unusable', `Deployment ID ${id} is being deleted.`);
}

async function showAll(db: Reader, rows: readonly SeenRow[]): Promise<readonly ReturnType<typeof show>[]> {
  const names = await listSecretNames(
    db,
    rows.map(({ id }) => id),
  );
  return rows.map((row) => show(row, names.get(row.id) ?? []));
}

function show(row: SeenRow, secretNames: readonly string[]) {
  const { workspace_id, source_config, source_revision_config, ...rest } = row;
  return {
    ...{ id: rest.id, tenant_id: workspace_id, name: rest.name, display_name: rest.display_name },
    source: rest.source,
    source_config: showConfig(source_config, urlOf(row)),
    source_revision_config: showRevisionConfig(source_revision_config),
    secrets: secretNames.map((name) => ({ name, value: '' as const })),
    secret_references: rest.secret_references.map(({ name, secret_name, secret_key }) => ({
      ...{ name, secret_name, secret_key },
    })),
    ...{ status: rest.status, status_reason: rest.status_reason, image_version: rest.image_version },
    proxy_profile_id: rest.proxy_profile_id,
    latest_revision_id: rest.latest_revision_id,
    active_revision_id: rest.active_revision_id,
    ...{ created_at: rest.created_at, updated_at: rest.updated_at },
  };
}

/** Images are reached where their owner says. */
function urlOf({ source, source_config, gateway_url, id, name }: SeenRow): string | null {
  if (source !== 'internal_source') return source_config.custom_url ?? null;
  return gateway_url === null ? null : deploymentUrl(gateway_url, { id, name });
}

function showConfig(config: SourceConfig, url: string | null) {
  const { listener_config: listener } = config;
  return {
    integration_id: config.integration_id ?? null,
    repo_url: config.repo_url ?? null,
    deployment_type: config.deployment_type ?? null,
    build_on_push: config.build_on_push ?? null,
    custom_url: url,
    resource_spec: config.resource_spec ?? null,
    listener_id: config.listener_id ?? null,
    listener_config: listener ? { k8s_namespace: listener.k8s_namespace ?? null } : null,
    install_command: config.install_command ?? null,
    build_command: config.build_command ?? null,
  };
}

export function showRevisionConfig(config: SourceRevisionConfig): z.output<typeof shownRevisionConfig> {
  return {
    repo_ref: config.repo_ref ?? null,
    repo_commit_sha: null,
    langgraph_config_path: config.langgraph_config_path ?? null,
    image_uri: config.image_uri ?? null,
    source_tarball_path: config.source_tarball_path ?? null,
  };
}
