// Builds of revisions from their sources: which one a builder takes next, fair between workspaces, and how it ends. What a runner
// had begun when it was lost is taken again on the same machine.
import type { Database, Reader, Store, Transaction } from '../store/database.ts';
import { sql } from '../store/sql.ts';
import './deployment-rows.ts';
import { moveRevision, SYSTEM } from './revision-moves.ts';
import type { RevisionStatus } from './revision-states.ts';
import { isLostRunner } from './runners.ts';

/** A build that ends its runner, or fails on its machine, is not tried for ever. */
export const MAX_ATTEMPTS = 3;

export type BuildTask = {
  readonly buildId: string;
  readonly revisionId: string;
  readonly deploymentId: string;
  readonly deploymentName: string;
  readonly workspaceId: string;
  readonly organizationId: string;
  /** Of the revision. */
  readonly number: number;
  /** 1, or more after a lost runner: what an earlier attempt has left may still be there. */
  readonly attempt: number;
  /** In the source store. Undefined: it was never uploaded, or is removed. */
  readonly sourcePath: string | undefined;
  readonly sourceSha256: string | undefined;
  /** As the caller wrote it; undefined: `langgraph.json`. */
  readonly configPath?: string | undefined;
  readonly installCommand?: string | undefined;
  readonly buildCommand?: string | undefined;
  /** Of its set of secrets, which a build does not get, and which its log must not show. */
  readonly secretsVersion: number;
};

export type Builder = { readonly runnerId: string; readonly machineId: string };

/**
 * Undefined: nothing waits that this machine can build. Fewest running builds of a workspace first, then the oldest revision. One of a
 * deployment that serves on another machine is built there, if that can read its source: here, what serves would have to end first.
 */
export async function claimNextBuild(
  store: Pick<Store, 'db' | 'write'>,
  builder: Builder,
): Promise<BuildTask | undefined> {
  for (const { id } of await findBuildable(store.db, builder)) {
    const task = await store.write((trx) => claim(trx, builder, id));
    if (task !== undefined) return task;
  }
  return undefined;
}

/** Several, because other builders may be faster. */
const CANDIDATES = 20;

async function findBuildable(db: Database, { runnerId, machineId }: Builder) {
  const working = sql`('AWAITING_BUILD', 'BUILDING')`;
  const { rows } = await sql<{ id: string }>`
    select r.id from revisions r
      join deployments d on d.id = r.deployment_id
      left join deployment_uploads u on u.object_path = r.source_revision_config->>'source_tarball_path'
        and u.deployment_id = d.id
      left join builds b on b.id = r.build_id
      left join runners n on n.id = b.runner_id
    where r.source = 'internal_source' and d.status <> 'AWAITING_DELETE'
      and (u.machine_id is null or u.machine_id = ${machineId})
      and (r.status = 'QUEUED' and r.build_id is null
          and (u.machine_id is not null or d.active_revision_id is null or not exists (select from runners n
            where n.id = d.runner_id and n.machine_id <> ${machineId} and not ${isLostRunner}))
        or r.status in ${working} and b.machine_id = ${machineId} and b.runner_id is distinct from ${runnerId}
          and ${isLostRunner})
    order by
      (select count(*) from revisions o where o.workspace_id = r.workspace_id and o.status in ${working}),
      (select max(o.created_at) from builds o where o.workspace_id = r.workspace_id) nulls first,
      r.created_at, r.id
    limit ${CANDIDATES}`.execute(db);
  return rows;
}

async function claim(trx: Transaction, builder: Builder, revisionId: string): Promise<BuildTask | undefined> {
  const row = await lockForBuild(trx, revisionId);
  if (row === undefined) return undefined;
  const { runnerId, machineId } = builder;
  let build: { readonly id: string; readonly attempts: number };
  if (row.status === 'QUEUED' && row.build_id === null) {
    build = await insertBuild(trx, builder, row);
    for (const to of ['AWAITING_BUILD', 'BUILDING'] as const)
      await moveRevision(trx, { revisionId, to, actor: SYSTEM });
  } else {
    const taken = await trx
      .updateTable('builds as b')
      .set((eb) => ({ runner_id: runnerId, attempts: eb('attempts', '+', 1) }))
      .where('b.id', '=', row.build_id ?? '')
      .where('b.machine_id', '=', machineId)
      .where(
        sql<boolean>`not exists (select from runners n where n.id = b.runner_id and not ${isLostRunner})`,
      )
      .returning(['b.id', 'b.attempts'])
      .executeTakeFirst();
    if (taken === undefined || !isWorkedOn(row.status)) return undefined;
    if (taken.attempts > MAX_ATTEMPTS) {
      const reason = `the runner ended during the build, ${MAX_ATTEMPTS} times`;
      await moveRevision(trx, { revisionId, to: 'BUILD_FAILED', actor: SYSTEM, reason });
      return undefined;
    }
    build = taken;
  }
  return toTask(row, build);
}

function isWorkedOn(status: RevisionStatus): boolean {
  return status === 'AWAITING_BUILD' || status === 'BUILDING';
}

type Candidate = NonNullable<Awaited<ReturnType<typeof lockForBuild>>>;

/** Undefined: another has it, or it is gone. */
async function lockForBuild(trx: Transaction, revisionId: string) {
  return trx
    .selectFrom('revisions as r')
    .innerJoin('deployments as d', 'd.id', 'r.deployment_id')
    .innerJoin('workspaces as w', 'w.id', 'd.workspace_id')
    .leftJoin('deployment_uploads as u', (join) =>
      join
        .onRef('u.deployment_id', '=', 'd.id')
        .on(sql<boolean>`u.object_path = r.source_revision_config->>'source_tarball_path'`),
    )
    .select(['r.id', 'r.number', 'r.status', 'r.build_id', 'r.source_config', 'r.source_revision_config'])
    .select('r.secrets_version')
    .select([
      'd.id as deployment_id',
      'd.name',
      'd.workspace_id',
      'w.organization_id',
      'u.sha256',
      'u.stored_path',
    ])
    .where('r.id', '=', revisionId)
    .where('d.status', '<>', 'AWAITING_DELETE')
    .forNoKeyUpdate('d')
    .skipLocked()
    .executeTakeFirst();
}

async function insertBuild(trx: Transaction, { runnerId, machineId }: Builder, row: Candidate) {
  const { langgraph_config_path: configPath } = row.source_revision_config;
  const build = await trx
    .insertInto('builds')
    .values({
      ...{ workspace_id: row.workspace_id, deployment_id: row.deployment_id },
      ...{ runner_id: runnerId, machine_id: machineId },
      ...{ source_path: row.stored_path ?? '', source_sha256: row.sha256, config_path: configPath ?? null },
    })
    .returning(['id', 'attempts'])
    .executeTakeFirstOrThrow();
  await trx.updateTable('revisions').set({ build_id: build.id }).where('id', '=', row.id).execute();
  return build;
}

function toTask(row: Candidate, build: { readonly id: string; readonly attempts: number }): BuildTask {
  const { source_config: config, source_revision_config: source } = row;
  return {
    ...{ buildId: build.id, attempt: build.attempts, revisionId: row.id, number: row.number },
    ...{ deploymentId: row.deployment_id, deploymentName: row.name, secretsVersion: row.secrets_version },
    ...{ workspaceId: row.workspace_id, organizationId: row.organization_id },
    ...{ sourcePath: row.stored_path ?? undefined, sourceSha256: row.sha256 ?? undefined },
    configPath: source.langgraph_config_path ?? undefined,
    installCommand: config.install_command ?? undefined,
    buildCommand: config.build_command ?? undefined,
  };
}

export type BuildResult =
  | { readonly kind: 'ready'; readonly directory: string; readonly sizeBytes: number }
  /** `reason` is shown to callers. */
  | { readonly kind: 'failed'; readonly status: 'CREATE_FAILED' | 'BUILD_FAILED'; readonly reason: string };

/** False: the revision was interrupted, or another builder has it: what was built is to be removed. */
export async function finishBuild(
  store: Pick<Store, 'write'>,
  task: Pick<BuildTask, 'buildId' | 'revisionId'>,
  builder: Pick<Builder, 'runnerId'>,
  result: BuildResult,
): Promise<boolean> {
  return store.write(async (trx) => {
    const to = result.kind === 'ready' ? 'AWAITING_DEPLOY' : result.status;
    const reason = result.kind === 'ready' ? undefined : result.reason;
    if (!(await holdsBuild(trx, task.buildId, builder.runnerId))) return false;
    if (!(await moveRevision(trx, { revisionId: task.revisionId, to, actor: SYSTEM, reason }))) return false;
    if (result.kind === 'ready')
      await trx
        .updateTable('builds')
        .set({
          directory: result.directory,
          size_bytes: String(result.sizeBytes),
          ready_at: sql<Date>`now()`,
        })
        .where('id', '=', task.buildId)
        .execute();
    return true;
  });
}

async function holdsBuild(trx: Transaction, buildId: string, runnerId: string): Promise<boolean> {
  const own = trx.selectFrom('builds').select('id').where('id', '=', buildId);
  return (await own.where('runner_id', '=', runnerId).executeTakeFirst()) !== undefined;
}

/** Of a runner that ends by itself: only builds that end their runner use up their attempts. */
export async function giveBuildBack(
  db: Database,
  { buildId, attempt }: Pick<BuildTask, 'buildId' | 'attempt'>,
  { runnerId }: Pick<Builder, 'runnerId'>,
): Promise<void> {
  await db
    .updateTable('builds')
    .set({ attempts: attempt - 1 })
    .where('id', '=', buildId)
    .where('runner_id', '=', runnerId)
    .execute();
}

/**
 * In place of a build that did not come to an end: its revision has another one, with another directory, which any builder of the machine may
 * begin. `attempts`: of the revision so far. Without effect where another builder has it.
 */
export async function replaceBuild(
  store: Pick<Store, 'write'>,
  { buildId, attempts }: Pick<BuildTask, 'buildId'> & { readonly attempts: number },
  { runnerId }: Pick<Builder, 'runnerId'>,
): Promise<void> {
  await store.write(async (trx) => {
    const { rows } = await sql<{ id: string }>`
      insert into builds (workspace_id, deployment_id, machine_id, attempts, source_path, source_sha256, config_path)
        select workspace_id, deployment_id, machine_id, ${attempts}::integer, source_path, source_sha256, config_path
        from builds where id = ${buildId} and runner_id = ${runnerId} for update
      returning id`.execute(trx);
    const next = rows[0]?.id;
    if (next === undefined) return;
    await trx.updateTable('revisions').set({ build_id: next }).where('build_id', '=', buildId).execute();
    await trx.deleteFrom('builds').where('id', '=', buildId).execute();
  });
}

/** Whether a build is still wanted: false once its revision has ended, by a newer one or with its deployment. */
export async function isBuilding(db: Reader, revisionId: string): Promise<boolean> {
  const found = db.selectFrom('revisions').select('id').where('id', '=', revisionId);
  return (await found.where('status', '=', 'BUILDING').executeTakeFirst()) !== undefined;
}
