// What a runner is to run: the deployments that it has taken, with the revision that serves and the one that is to follow.
import type { Database } from '../store/database.ts';
import { sql } from '../store/sql.ts';
import './deployment-rows.ts';
import { type DeploymentLimits, limitsOf } from './deployment-limits.ts';
import type { DeploymentStatus, SourceConfig, SourceRevisionConfig } from './deployment-rows.ts';
import type { RevisionStatus } from './revision-states.ts';
import { isLostRunner } from './runners.ts';

export type WantedRevision = DeploymentLimits & {
  readonly revisionId: string;
  readonly number: number;
  readonly status: RevisionStatus;
  readonly buildId: string;
  readonly buildDirectory: string;
  /** As the caller wrote it; undefined: `langgraph.json`. */
  readonly configPath?: string | undefined;
  /** Of its set of secrets. */
  readonly secretsVersion: number;
};

export type WantedDeployment = {
  readonly id: string;
  readonly workspaceId: string;
  readonly organizationId: string;
  readonly name: string;
  readonly status: DeploymentStatus;
  /** It is to serve until `next` does. */
  readonly active?: WantedRevision | undefined;
  /** In AWAITING_DEPLOY or DEPLOYING. */
  readonly next?: WantedRevision | undefined;
  readonly isDeleting: boolean;
  /** Undefined: the default profile of its workspace, if it has one. */
  readonly proxyProfileId?: string | undefined;
};

export type Claimant = { readonly id: string; readonly machineId: string };

/**
 * Takes what nobody has, or whose runner is lost, and what has its files on this machine or none at all. A revision that was built
 * here brings its deployment here, because nobody else can run it.
 */
export async function claimDeployments(
  db: Database,
  { id: runnerId, machineId }: Claimant,
): Promise<readonly string[]> {
  const { rows } = await sql<{ id: string }>`
    update deployments set runner_id = ${runnerId}
    where id in (
      select d.id from deployments d left join lateral (
          select b.machine_id from revisions r join builds b on b.id = r.build_id
          where r.deployment_id = d.id and (r.id = d.active_revision_id or r.status in ('AWAITING_DEPLOY', 'DEPLOYING'))
          order by r.number desc limit 1
        ) latest on true
      where d.source = 'internal_source' and d.runner_id is distinct from ${runnerId}
        and case
          when d.status = 'AWAITING_DELETE' or latest.machine_id is null then not ${isHeld(sql`true`)}
          else latest.machine_id = ${machineId} and not ${isHeld(sql`n.machine_id = ${machineId}`)}
        end
      for update of d skip locked)
    returning id`.execute(db);
  return rows.map(({ id }) => id);
}

/**
 * By a runner that is there. A subquery and no join: when another runner has claimed the row meanwhile, it is evaluated again with that
 * runner, while a joined row would stay what it was.
 */
function isHeld(condition: ReturnType<typeof sql<boolean>>) {
  return sql<boolean>`exists (select from runners n where n.id = d.runner_id and not ${isLostRunner} and ${condition})`;
}

/** All that this runner has. A revision whose files are on another machine is not among it: nobody can start it here. */
export async function readWanted(db: Database, runnerId: string): Promise<readonly WantedDeployment[]> {
  const rows = await selectWanted(db).where('d.runner_id', '=', runnerId).orderBy('d.id').execute();
  const revisions = await readRevisions(
    db,
    rows.map(({ id }) => id),
  );
  return rows.map((row) => {
    const own = revisions.get(row.id) ?? [];
    const pending = own.filter(({ status }) => status === 'AWAITING_DEPLOY' || status === 'DEPLOYING');
    return {
      ...{ id: row.id, name: row.name, status: row.status },
      ...{ workspaceId: row.workspace_id, organizationId: row.organization_id },
      active: own.find(({ revisionId }) => revisionId === row.active_revision_id),
      next: pending.at(-1),
      isDeleting: row.status === 'AWAITING_DELETE',
      proxyProfileId: row.proxy_profile_id ?? undefined,
    };
  });
}

function selectWanted(db: Database) {
  return db
    .selectFrom('deployments as d')
    .innerJoin('workspaces as w', 'w.id', 'd.workspace_id')
    .select(['d.id', 'd.workspace_id', 'w.organization_id', 'd.name', 'd.status'])
    .select(['d.active_revision_id', 'd.proxy_profile_id']);
}

/** By deployment, in the order of their numbers. */
async function readRevisions(
  db: Database,
  deploymentIds: readonly string[],
): Promise<ReadonlyMap<string, readonly WantedRevision[]>> {
  if (deploymentIds.length === 0) return new Map();
  const rows = await db
    .selectFrom('revisions as r')
    .innerJoin('deployments as d', 'd.id', 'r.deployment_id')
    .innerJoin('runners as n', 'n.id', 'd.runner_id')
    .innerJoin('builds as b', (join) =>
      join.onRef('b.id', '=', 'r.build_id').onRef('b.machine_id', '=', 'n.machine_id'),
    )
    .select(['r.id', 'r.deployment_id', 'r.number', 'r.status', 'r.source_config', 'r.secrets_version'])
    .select(['r.source_revision_config', 'b.id as build_id', 'b.directory'])
    .where('r.deployment_id', 'in', deploymentIds)
    // One whose build is lost says so, where it is to be started.
    .where(({ eb, or, ref }) =>
      or([eb('b.removed_at', 'is', null), eb('r.id', '=', ref('d.active_revision_id'))]),
    )
    .where(({ eb, or, ref }) =>
      or([
        eb('r.id', '=', ref('d.active_revision_id')),
        eb('r.status', 'in', ['AWAITING_DEPLOY', 'DEPLOYING']),
      ]),
    )
    .orderBy('r.number')
    .execute();
  const found = new Map<string, WantedRevision[]>();
  for (const row of rows) {
    const { directory } = row;
    if (directory === null) continue;
    const all = found.get(row.deployment_id) ?? [];
    found.set(row.deployment_id, [...all, toRevision({ ...row, directory })]);
  }
  return found;
}

type Row = {
  readonly id: string;
  readonly number: number;
  readonly status: RevisionStatus;
  readonly source_config: SourceConfig;
  readonly source_revision_config: SourceRevisionConfig;
  readonly secrets_version: number;
  readonly build_id: string;
  readonly directory: string;
};

function toRevision(row: Row): WantedRevision {
  return {
    ...{ revisionId: row.id, number: row.number, status: row.status },
    ...{ buildId: row.build_id, buildDirectory: row.directory, secretsVersion: row.secrets_version },
    configPath: row.source_revision_config.langgraph_config_path ?? undefined,
    ...limitsOf(row.source_config.resource_spec),
  };
}
