// Builds that are kept for redeploys and rollbacks: which a machine may remove, and which directories it must keep.
import type { Database, Reader, Transaction } from '../store/database.ts';
import { sql } from '../store/sql.ts';
import './deployment-rows.ts';

/** So many revisions of a deployment keep their build, besides the active and the pending ones. */
export const KEPT_BUILDS = 5;

export type KeptBuild = {
  readonly buildId: string;
  readonly deploymentId: string;
  readonly directory: string;
};

/**
 * Builds of this machine that no revision needs any more: its runner removes their directories, then says so. `keptBytes`: of those of one
 * workspace; the ones that were not deployed for longest are built again when they are needed.
 */
export async function expiredBuilds(
  db: Database,
  machineId: string,
  keptBytes: number,
): Promise<readonly KeptBuild[]> {
  const { rows } = await sql<KeptBuild>`
    with kept as (
      select b.id, row_number() over (partition by b.deployment_id order by max(r.number) desc) as place,
        sum(case when b.machine_id = ${machineId} then b.size_bytes else 0 end)
          over (partition by b.workspace_id order by max(r.created_at) desc, b.id) as bytes
      from builds b join revisions r on r.build_id = b.id
      where b.ready_at is not null and b.removed_at is null group by b.id
    )
    select b.id as "buildId", b.deployment_id as "deploymentId", b.directory from builds b
      left join kept k on k.id = b.id
    where b.machine_id = ${machineId} and b.ready_at is not null and b.removed_at is null
      and (coalesce(k.place, ${KEPT_BUILDS + 1}) > ${KEPT_BUILDS} or k.bytes > ${keptBytes})
      and not exists (select from revisions r join deployments d on d.id = r.deployment_id where r.build_id = b.id
        and (r.id = d.active_revision_id or r.status in ('CREATING', 'QUEUED', 'AWAITING_DEPLOY', 'DEPLOYING')))
    order by b.created_at limit 100`.execute(db);
  return rows;
}

/** Builds of this machine whose directory should be there. */
export async function keptDirectories(
  db: Reader,
  machineId: string,
): Promise<readonly { readonly buildId: string; readonly directory: string }[]> {
  const rows = await db
    .selectFrom('builds')
    .select(['id', 'directory'])
    .where('machine_id', '=', machineId)
    .where('ready_at', 'is not', null)
    .where('removed_at', 'is', null)
    .execute();
  return rows.flatMap(({ id, directory }) => (directory === null ? [] : [{ buildId: id, directory }]));
}

/**
 * Before its directory is removed: no revision is made of it from now on. `isLost`: its directory is gone already, so that the active
 * revision does not keep it. False: a revision still needs it.
 */
export async function retireBuild(trx: Transaction, buildId: string, isLost = false): Promise<boolean> {
  const build = await trx
    .selectFrom('builds')
    .select('deployment_id')
    .where('id', '=', buildId)
    .executeTakeFirst();
  if (build === undefined) return true;
  const lock = trx
    .selectFrom('deployments')
    .select('active_revision_id')
    .where('id', '=', build.deployment_id);
  const deployment = await lock.forNoKeyUpdate().executeTakeFirst();
  if (deployment === undefined) return true;
  const used = await trx
    .selectFrom('revisions')
    .select('id')
    .where('build_id', '=', buildId)
    .where(({ eb, or }) =>
      or([
        eb('status', 'in', ['CREATING', 'QUEUED', 'AWAITING_DEPLOY', 'DEPLOYING']),
        ...(isLost ? [] : [eb('id', '=', deployment.active_revision_id ?? buildId)]),
      ]),
    )
    .executeTakeFirst();
  if (used !== undefined) return false;
  await trx.updateTable('builds').set({ removed_at: sql<Date>`now()` }).where('id', '=', buildId).execute();
  return true;
}

/** Directories of this machine that rows know: every other one is removed by its runner. */
export async function buildDirectories(db: Reader, machineId: string): Promise<ReadonlySet<string>> {
  const rows = await db
    .selectFrom('builds')
    .select('directory')
    .where('machine_id', '=', machineId)
    .where('removed_at', 'is', null)
    .where('directory', 'is not', null)
    .execute();
  return new Set(rows.flatMap(({ directory }) => (directory === null ? [] : [directory])));
}
