// What changes a deployment: it is created, changed, deployed again. Whatever asks for a revision makes one.
import { randomUUID } from 'node:crypto';
import { DomainError } from '../../../base/domain-error.ts';
import { Secret } from '../../../base/secret.ts';
import type { z } from '../../../base/schema.ts';
import { replaceSecrets } from '../../deployments/deployment-secrets.ts';
import type {
  DeploymentSource,
  SourceConfig,
  SourceRevisionConfig,
} from '../../deployments/deployment-rows.ts';
import { notifyOfDeployment } from '../../deployments/revision-moves.ts';
import { isDuplicate, type Transaction } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import { ensureTracingProject } from '../../traces/contract.ts';
import type { Vault } from '../../vault/vault.ts';
import { hasStoredSource, takeSource } from '../sources/uploads.ts';
import { findEarlierBuild, findKeptBuild } from './kept-builds.ts';
import {
  type DeploymentQuotas,
  lockQuotas,
  requireDeploymentQuota,
  requirePendingQuota,
} from './deployment-quotas.ts';
import type { DeploymentChange, NewDeployment } from './deployment-schema.ts';
import { type DeploymentRow, lockDeployment } from './deployments.ts';
import { requireListener } from './listener-choice.ts';
import { createRevision, findRevision } from './revisions.ts';
import type { newSecrets } from './secret-names.ts';
import { mergeConfig, requireBelonging, requireImage, requireUnchanged } from './source-rules.ts';

export type Writing = {
  readonly vault: Vault;
  readonly quotas: DeploymentQuotas;
  /** A registry is configured, for images that are pushed to it. */
  readonly hasRegistry: boolean;
};

export type Write = {
  readonly db: Transaction;
  readonly workspaceId: string;
  /** The id of the caller. */
  readonly actor: string;
};

/** Returns its id. Throws `unusable` for a source that is not available, or a name that is taken. */
export async function createDeployment(
  writing: Writing,
  write: Write,
  given: NewDeployment,
): Promise<string> {
  const { db, workspaceId } = write;
  const source = requireSource(given.source, writing);
  const [config, revision] = [given.source_config, given.source_revision_config];
  const hasReferences = (given.secret_references ?? []).length > 0;
  requireBelonging(source, { config, revision, hasReferences });
  requireImage(source, { config, revision });
  await lockQuotas(db, workspaceId);
  await requireListener(db, workspaceId, config);
  const deployment = await insert(write, given, source);
  await requireDeploymentQuota(db, workspaceId, writing.quotas);
  await ensureTracingProject(db, workspaceId, deployment.name);
  const secretsVersion = await setSecrets(writing, write, deployment, given.secrets);
  const change = { config: mergeConfig({}, config), source: mergeConfig({}, revision) };
  await deploy(writing, write, deployment, { ...change, isNewSource: true, secretsVersion });
  return deployment.id;
}

function requireSource(source: NewDeployment['source'], { hasRegistry }: Writing): DeploymentSource {
  if (source === 'internal_source' || source === 'external_docker') return source;
  if (source === 'internal_docker' && hasRegistry) return source;
  throw new DomainError(
    'unusable',
    `The source ${source} is not available here: deploy from internal_source`,
  );
}

const NAME_TAKEN = 'A deployment with this name already exists in the workspace';

async function insert(write: Write, given: NewDeployment, source: DeploymentSource): Promise<DeploymentRow> {
  const { db, workspaceId } = write;
  const references = JSON.stringify(given.secret_references ?? []);
  try {
    return await db
      .insertInto('deployments')
      .values({
        ...{ id: randomUUID(), workspace_id: workspaceId, name: given.name, source },
        ...{ display_name: given.display_name ?? null, proxy_profile_id: given.proxy_profile_id ?? null },
        ...{ listener_id: given.source_config.listener_id ?? null, secret_references: references },
        ...{ source_config: '{}', source_revision_config: '{}', status_reason: null, image_version: null },
        ...{ latest_revision_id: null, active_revision_id: null, runner_id: null },
        // Only those that run here have a database here.
        status: source === 'internal_source' ? 'AWAITING_DATABASE' : 'READY',
      })
      .returningAll()
      .executeTakeFirstOrThrow();
  } catch (error) {
    if (!isDuplicate(error, 'deployments_name')) throw error;
    throw new DomainError('unusable', NAME_TAKEN);
  }
}

/** Returns the id of the revision that it made; undefined: the change needs none. */
export async function changeDeployment(
  writing: Writing,
  write: Write,
  id: string,
  given: DeploymentChange,
): Promise<string | undefined> {
  const { secrets, source_revision_config: revision, source_config: config } = given;
  const hasSecrets = (secrets ?? []).length > 0;
  const needsRevision = hasSecrets || isGiven(revision) || isGiven(config?.resource_spec);
  const { deployment, merged, secretsVersion } = await applyChange(writing, write, id, given);
  if (!needsRevision) return undefined;
  const isNewSource = isGiven(revision?.source_tarball_path);
  return deploy(writing, write, deployment, { ...merged, isNewSource, secretsVersion });
}

/** Makes a revision, whatever is given. Returns its id. */
export async function addRevision(
  writing: Writing,
  write: Write,
  id: string,
  given: Pick<DeploymentChange, 'source_config' | 'source_revision_config' | 'secrets' | 'secret_references'>,
): Promise<string> {
  const { deployment, merged, secretsVersion } = await applyChange(writing, write, id, given);
  const isNewSource = isGiven(given.source_revision_config?.source_tarball_path);
  return deploy(writing, write, deployment, { ...merged, isNewSource, secretsVersion });
}

async function applyChange(writing: Writing, write: Write, id: string, given: Partial<DeploymentChange>) {
  const { db, workspaceId } = write;
  // Before the deployment, as every write locks.
  await lockQuotas(db, workspaceId);
  const deployment = await lockDeployment(db, workspaceId, id);
  requireUnchanged(deployment, given);
  const { secret_references: references } = given;
  const [config, revision] = [given.source_config ?? {}, given.source_revision_config ?? {}];
  requireBelonging(deployment.source, { config, revision, hasReferences: (references ?? []).length > 0 });
  const secretsVersion = await setSecrets(writing, write, deployment, given.secrets);
  const merged = {
    config: mergeConfig(deployment.source_config, config),
    // A source is replaced, and never taken away: null is what clients send for what is not set.
    source: mergeConfig(deployment.source_revision_config, {
      ...revision,
      source_tarball_path: revision.source_tarball_path ?? undefined,
    }),
  };
  requireImage(deployment.source, { config: merged.config, revision: merged.source });
  await setFields(write, id, given, merged.config);
  return { deployment, merged, secretsVersion };
}

function isGiven<T>(value: T): value is NonNullable<T> {
  return value !== null && value !== undefined;
}

/** `null` clears. */
async function setFields(
  { db }: Write,
  id: string,
  { display_name, proxy_profile_id, secret_references }: Partial<DeploymentChange>,
  config: SourceConfig,
): Promise<void> {
  await db
    .updateTable('deployments')
    .set({
      updated_at: sql<Date>`now()`,
      source_config: JSON.stringify(config),
      ...(display_name === undefined ? {} : { display_name }),
      ...(proxy_profile_id === undefined ? {} : { proxy_profile_id }),
      ...(isGiven(secret_references) ? { secret_references: JSON.stringify(secret_references) } : {}),
    })
    .where('id', '=', id)
    .execute();
  await notifyOfDeployment(db, id);
}

async function setSecrets(
  { vault }: Writing,
  { db, workspaceId }: Write,
  { id: deploymentId, secrets_version: version }: DeploymentRow,
  given: z.output<typeof newSecrets> | null | undefined,
): Promise<number> {
  if (given === null || given === undefined || given.length === 0) return version;
  const secrets = given.map(({ name, value }) => ({ name, value: new Secret(value ?? '') }));
  return replaceSecrets({ vault, trx: db }, { workspaceId, deploymentId }, version, secrets);
}

type Wanted = {
  readonly config: SourceConfig;
  readonly source: SourceRevisionConfig;
  /** It names a source that was uploaded for it. */
  readonly isNewSource: boolean;
  readonly secretsVersion: number;
};

/** A revision of what is wanted: with the build of an earlier one that was made of the same. */
async function deploy(
  { quotas }: Writing,
  { db, workspaceId, actor }: Write,
  deployment: DeploymentRow,
  { config, source, isNewSource, secretsVersion }: Wanted,
): Promise<string> {
  const owner = { workspaceId, deploymentId: deployment.id };
  const { source_tarball_path: path } = source;
  let hasSource: boolean | undefined;
  let buildId: string | undefined;
  if (isGiven(path)) {
    if (isNewSource) hasSource = await takeSource(db, owner, path);
    else {
      buildId = await findKeptBuild(db, owner, { config, source });
      hasSource = buildId !== undefined || (await hasStoredSource(db, owner, path));
    }
  }
  const revision = { config, source, secretsVersion, buildId, hasSource, actor };
  const id = await createRevision(db, deployment, revision);
  await requirePendingQuota(db, workspaceId, quotas);
  return id;
}

/** Throws `not_found`, or `unusable` for a revision that cannot be deployed again. Returns the id of the new revision. */
export async function redeploy(
  { quotas }: Writing,
  { db, workspaceId, actor }: Write,
  id: string,
  revisionId: string,
): Promise<string> {
  await lockQuotas(db, workspaceId);
  const deployment = await lockDeployment(db, workspaceId, id);
  const earlier = await findRevision(db, workspaceId, id, revisionId);
  const { source_config: config, source_revision_config: source } = earlier;
  const owner = { workspaceId, deploymentId: id };
  const buildId = earlier.build_id ?? undefined;
  const build = buildId === undefined ? undefined : await findEarlierBuild(db, owner, buildId);
  const isBuilt = deployment.source !== 'internal_source' || build?.wasReady;
  if (!isBuilt) throw new DomainError('unusable', NEVER_BUILT);
  const isKept = build?.isKept === true;
  const path = source.source_tarball_path ?? '';
  const hasSource =
    isKept || deployment.source !== 'internal_source' || (await hasStoredSource(db, owner, path));
  if (!hasSource) throw new DomainError('unusable', NOT_KEPT);
  // The address and the listener are those of the deployment, whatever the revision had.
  const { custom_url, listener_id, listener_config } = deployment.source_config;
  const own = mergeConfig(config, { custom_url, listener_id, listener_config });
  const secretsVersion = deployment.secrets_version;
  const kept = isKept ? buildId : undefined;
  const revision = { config: own, source, secretsVersion, buildId: kept, hasSource, actor };
  const created = await createRevision(db, deployment, revision);
  await requirePendingQuota(db, workspaceId, quotas);
  return created;
}

const NEVER_BUILT = 'This revision was never built: it cannot be deployed again';
const NOT_KEPT =
  'Neither the build nor the source of this revision is kept any more: upload the source again';
