// Builds of earlier revisions that a new one can use: made of the same source, with the same commands, on a machine that is there.
import type { SourceConfig, SourceRevisionConfig } from '../../deployments/deployment-rows.ts';
import { isLostRunner } from '../../deployments/runners.ts';
import type { Reader } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';

export async function findKeptBuild(
  db: Reader,
  { workspaceId, deploymentId }: { readonly workspaceId: string; readonly deploymentId: string },
  { config, source }: { readonly config: SourceConfig; readonly source: SourceRevisionConfig },
): Promise<string | undefined> {
  const { source_tarball_path: path = null, langgraph_config_path: configPath = null } = source;
  const { install_command: install = null, build_command: build = null } = config;
  const same = (text: string, value: string | null) =>
    sql<boolean>`r.${sql.raw(text)} is not distinct from ${value}`;
  const found = await db
    .selectFrom('revisions as r')
    .innerJoin('builds as b', 'b.id', 'r.build_id')
    .select('b.id')
    .where('r.workspace_id', '=', workspaceId)
    .where('r.deployment_id', '=', deploymentId)
    .where('b.ready_at', 'is not', null)
    .where('b.removed_at', 'is', null)
    .where(isWithinReach)
    .where(same(`source_revision_config->>'source_tarball_path'`, path))
    .where(same(`source_revision_config->>'langgraph_config_path'`, configPath))
    .where(same(`source_config->>'install_command'`, install))
    .where(same(`source_config->>'build_command'`, build))
    .orderBy('r.number', 'desc')
    .limit(1)
    .executeTakeFirst();
  return found?.id;
}

/**
 * Of rows that join `builds as b`: its machine has a runner; or it may come back, and no other machine that has one can read the source,
 * and build it again.
 */
const isWithinReach = sql<boolean>`(
  exists (select from runners n where n.machine_id = b.machine_id and not ${isLostRunner})
  or not exists (select from runners n where n.machine_id <> b.machine_id and not ${isLostRunner})
  or not exists (select from deployment_uploads u where u.stored_path = b.source_path and u.machine_id is null))`;

export type EarlierBuild = { readonly wasReady: boolean; readonly isKept: boolean };

export async function findEarlierBuild(
  db: Reader,
  { workspaceId, deploymentId }: { readonly workspaceId: string; readonly deploymentId: string },
  buildId: string,
): Promise<EarlierBuild | undefined> {
  return db
    .selectFrom('builds as b')
    .select(sql<boolean>`b.ready_at is not null`.as('wasReady'))
    .select(sql<boolean>`b.removed_at is null and ${isWithinReach}`.as('isKept'))
    .where('b.workspace_id', '=', workspaceId)
    .where('b.deployment_id', '=', deploymentId)
    .where('b.id', '=', buildId)
    .executeTakeFirst();
}
