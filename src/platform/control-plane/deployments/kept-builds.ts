// Builds of earlier revisions that a new one can use: made of the same source, with the same commands.
import type { SourceConfig, SourceRevisionConfig } from '../../deployments/deployment-rows.ts';
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
    .where(same(`source_revision_config->>'source_tarball_path'`, path))
    .where(same(`source_revision_config->>'langgraph_config_path'`, configPath))
    .where(same(`source_config->>'install_command'`, install))
    .where(same(`source_config->>'build_command'`, build))
    .orderBy('r.number', 'desc')
    .limit(1)
    .executeTakeFirst();
  return found?.id;
}
