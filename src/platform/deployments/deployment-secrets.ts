// The secrets of deployments, sealed: a change makes a new set, and a revision keeps the set that it was made with, so that an
// older one that serves, or is started again, never gets values that were meant for a newer one. One of the files that open values
// of the vault.
import { InvalidInput } from '../../base/domain-error.ts';
import type { Secret } from '../../base/secret.ts';
import type { Reader, Transaction } from '../store/database.ts';
import { sql } from '../store/sql.ts';
import type { SealedPlace, Vault } from '../vault/vault.ts';
import './deployment-rows.ts';
import { pendingStatuses } from './revision-states.ts';

export type SecretOwner = { readonly workspaceId: string; readonly deploymentId: string };

/** An empty value keeps the stored one. */
export type NewSecret = { readonly name: string; readonly value: Secret };

/** Sealed, of one set: a runner holds those of all of its deployments. */
const MAX_SET_BYTES = 1024 * 1024;

/**
 * Of a deployment that the caller has locked; by `version`, the set of which values are kept. Returns the version of the new set. A
 * name without a value, stored or given, is left out. Throws InvalidInput for a set that is too large.
 */
export async function replaceSecrets(
  { vault, trx }: { readonly vault: Vault; readonly trx: Transaction },
  owner: SecretOwner,
  version: number,
  secrets: readonly NewSecret[],
): Promise<number> {
  const next = version + 1;
  const stored = new Map((await readSet(trx, owner, version)).map((row) => [row.name, row]));
  const rows: SealedRow[] = [];
  for (const { name, value } of secrets) {
    const kept =
      value.length === 0 ? stored.get(name) : await seal({ vault, trx }, owner, { name, value }, next);
    if (kept !== undefined) rows.push(kept);
  }
  requireSize(rows);
  const place = { workspace_id: owner.workspaceId, deployment_id: owner.deploymentId, version: next };
  if (rows.length > 0)
    await trx
      .insertInto('deployment_secrets')
      .values(rows.map((row) => ({ ...place, ...row })))
      .execute();
  return next;
}

type SealedRow = { readonly name: string; readonly sealed_version: number; readonly sealed: Buffer };

/** Values that are kept count too: each call alone may be small. */
function requireSize(rows: readonly SealedRow[]): void {
  if (rows.reduce((sum, { sealed }) => sum + sealed.length, 0) <= MAX_SET_BYTES) return;
  const msg = `The secrets of a deployment must have at most ${MAX_SET_BYTES} bytes together`;
  throw new InvalidInput([{ loc: ['body', 'secrets'], msg, type: 'too_long' }]);
}

async function seal(
  { vault, trx }: { readonly vault: Vault; readonly trx: Transaction },
  owner: SecretOwner,
  { name, value }: NewSecret,
  version: number,
): Promise<SealedRow> {
  const sealed = await vault.seal(trx, placeOf(owner, name, version), value);
  return { name, sealed_version: version, sealed };
}

/** What the child of a revision gets. */
export async function openSecrets(
  { vault, db }: { readonly vault: Vault; readonly db: Reader },
  owner: SecretOwner,
  version: number,
): Promise<ReadonlyMap<string, Secret>> {
  const opened = new Map<string, Secret>();
  for (const { name, sealed_version: sealedVersion, sealed } of await readSet(db, owner, version)) {
    const value = await vault.unsealValue(db, placeOf(owner, name, sealedVersion), sealed);
    if (value === undefined)
      throw new Error(`the secret ${name} of ${owner.deploymentId} was changed or moved: it does not open`);
    opened.set(name, value);
  }
  return opened;
}

/** By deployment, in the order of their names. */
export async function listSecretNames(
  db: Reader,
  deploymentIds: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  if (deploymentIds.length === 0) return new Map();
  const rows = await db
    .selectFrom('deployment_secrets as s')
    .innerJoin('deployments as d', 'd.id', 's.deployment_id')
    .whereRef('s.version', '=', 'd.secrets_version')
    .where('d.id', 'in', deploymentIds)
    .select(['d.id', 's.name'])
    .orderBy(sql`s.name collate "C"`)
    .execute();
  return new Map(
    Object.entries(Object.groupBy(rows, ({ id }) => id)).map(([id, own = []]) => [
      id,
      own.map(({ name }) => name),
    ]),
  );
}

/** Sets that no revision needs: neither the active one, nor one that has not ended. */
export async function removeUnusedSecrets(trx: Transaction, deploymentId: string): Promise<void> {
  await trx
    .deleteFrom('deployment_secrets as s')
    .where('s.deployment_id', '=', deploymentId)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('deployments as d')
            .select('d.id')
            .where('d.id', '=', deploymentId)
            .whereRef('d.secrets_version', '=', 's.version'),
        ),
      ),
    )
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('revisions as r')
            .innerJoin('deployments as d', 'd.id', 'r.deployment_id')
            .select('r.id')
            .where('r.deployment_id', '=', deploymentId)
            .whereRef('r.secrets_version', '=', 's.version')
            .where(({ eb, or, ref }) =>
              or([eb('r.id', '=', ref('d.active_revision_id')), eb('r.status', 'in', pendingStatuses)]),
            ),
        ),
      ),
    )
    .execute();
}

async function readSet(
  db: Reader,
  { workspaceId, deploymentId }: SecretOwner,
  version: number,
): Promise<readonly SealedRow[]> {
  return db
    .selectFrom('deployment_secrets')
    .select(['name', 'sealed_version', 'sealed'])
    .where('workspace_id', '=', workspaceId)
    .where('deployment_id', '=', deploymentId)
    .where('version', '=', version)
    .orderBy(sql`name collate "C"`)
    .execute();
}

/** Moved to another deployment or name, or put back after a change, the bytes do not open. */
function placeOf({ workspaceId, deploymentId }: SecretOwner, name: string, version: number): SealedPlace {
  return { workspaceId, purpose: 'deployment_secret', name: `${deploymentId} ${name}`, version };
}
