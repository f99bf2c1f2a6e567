// The uploads of sources: an address with a signature that one request may use, within a quarter of an hour, and the source that is
// there then, which one revision may name.
import { createHash, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto';
import { DomainError } from '../../../base/domain-error.ts';
import type { StoredSource } from '../../deployments/source-store.ts';
import type { Reader, Transaction } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';

const EXPIRES_MINUTES = 15;
export const MAX_SOURCE_BYTES = 200 * 1024 * 1024;

type Owner = { readonly workspaceId: string; readonly deploymentId: string };
export type OpenUpload = Owner & {
  readonly id: string;
  readonly organizationId: string;
  readonly deploymentName: string;
};

/** Nothing else ever returns the signature. */
export async function createUpload(
  trx: Transaction,
  { workspaceId, deploymentId }: Owner,
): Promise<{ readonly id: string; readonly signature: string; readonly objectPath: string }> {
  const id = randomUUID();
  const signature = randomBytes(32).toString('base64url');
  const objectPath = `${prefixOf({ workspaceId, deploymentId })}/${id}.tar.gz`;
  await trx
    .insertInto('deployment_uploads')
    .values({
      ...{ id, workspace_id: workspaceId, deployment_id: deploymentId, object_path: objectPath },
      ...{ stored_path: null, machine_id: null, size_bytes: null, sha256: null },
      token_hash: hashOf(signature),
      expires_at: sql<Date>`now() + make_interval(mins => ${EXPIRES_MINUTES})`,
    })
    .execute();
  return { id, signature, objectPath };
}

/** Of the files, too. */
export function prefixOf({ workspaceId, deploymentId }: Owner): string {
  return `${workspaceId}/${deploymentId}`;
}

function hashOf(signature: string): Buffer {
  return createHash('sha256').update(signature).digest();
}

/**
 * Throws `forbidden` for a signature that is false or expired, also of no upload; `conflict` for one that was used. `hasBegun`: the
 * request was let in before, and takes as long as its client is slow.
 */
export async function openUpload(
  db: Reader,
  id: string,
  { signature, hasBegun }: { readonly signature: string; readonly hasBegun: boolean },
): Promise<OpenUpload> {
  const row = await db
    .selectFrom('deployment_uploads as u')
    .innerJoin('workspaces as w', 'w.id', 'u.workspace_id')
    .innerJoin('deployments as d', 'd.id', 'u.deployment_id')
    .select('d.name')
    .select(['u.id', 'u.workspace_id', 'u.deployment_id', 'u.state', 'u.token_hash', 'w.organization_id'])
    .select(sql<boolean>`u.expires_at <= now()`.as('is_expired'))
    .where('u.id', '=', id)
    .executeTakeFirst();
  if (row === undefined || !timingSafeEqual(row.token_hash, hashOf(signature)))
    throw new DomainError('forbidden', 'The signature of this address is not valid');
  if (row.state !== 'open') throw wasUsed();
  if (row.is_expired && !hasBegun)
    throw new DomainError('forbidden', 'This address has expired: ask for another upload-url');
  const { workspace_id: workspaceId, deployment_id: deploymentId, organization_id: organizationId } = row;
  return { id: row.id, workspaceId, deploymentId, organizationId, deploymentName: row.name };
}

export function wasUsed(): DomainError {
  return new DomainError('conflict', 'This address was used: ask for another upload-url');
}

/** Throws `conflict` where another request was faster. */
export async function noteStored(
  trx: Transaction,
  { id }: OpenUpload,
  { path, size, sha256 }: StoredSource,
  machineId: string | undefined,
): Promise<void> {
  const file = { stored_path: path, size_bytes: String(size), sha256, machine_id: machineId ?? null };
  await trx
    .updateTable('deployment_uploads')
    .set({ state: 'stored', ...file })
    .where('id', '=', id)
    .where('state', '=', 'open')
    .returning('id')
    .executeTakeFirstOrThrow(wasUsed);
}

/**
 * A source becomes that of a revision, once. Whether it is there: false for one that was never sent. Throws `unusable` for one of
 * another deployment, or that a revision has.
 */
export async function takeSource(trx: Transaction, owner: Owner, objectPath: string): Promise<boolean> {
  const row = await trx
    .selectFrom('deployment_uploads')
    .select(['id', 'state'])
    .where('workspace_id', '=', owner.workspaceId)
    .where('deployment_id', '=', owner.deploymentId)
    .where('object_path', '=', objectPath)
    .forUpdate()
    .executeTakeFirst();
  if (row === undefined) throw new DomainError('unusable', FOREIGN);
  if (row.state === 'used') throw new DomainError('unusable', USED);
  await trx.updateTable('deployment_uploads').set({ state: 'used' }).where('id', '=', row.id).execute();
  return row.state === 'stored';
}

const FOREIGN = 'source_tarball_path must be an object_path of an upload-url of this deployment';
const USED =
  'source_tarball_path was used by another revision: upload the source again, or redeploy that revision';

/** Whether the source of an earlier revision is still there. */
export async function hasStoredSource(db: Reader, owner: Owner, objectPath: string): Promise<boolean> {
  const row = await db
    .selectFrom('deployment_uploads')
    .select('id')
    .where('workspace_id', '=', owner.workspaceId)
    .where('deployment_id', '=', owner.deploymentId)
    .where('object_path', '=', objectPath)
    .where('stored_path', 'is not', null)
    .executeTakeFirst();
  return row !== undefined;
}
