// The database and the role of each deployment: their names, and sealed the password of the role and the master key with which its
// agent servers seal what they store. One of the files that open values of the vault.
import { randomBytes } from 'node:crypto';
import { Secret } from '../../base/secret.ts';
import type { Database, Reader, Store, Transaction } from '../store/database.ts';
import { sql } from '../store/sql.ts';
import type { SealedPlace, Vault } from '../vault/vault.ts';
import './deployment-rows.ts';
import type { SecretOwner } from './deployment-secrets.ts';
import { notifyOfDeployment } from './revision-moves.ts';

export type DeploymentDatabase = {
  readonly databaseName: string;
  readonly roleName: string;
  readonly password: Secret;
  readonly masterKey: Secret;
};

/**
 * Stored before anything is created on the server, so that a runner that was killed in between finds what it had begun: the same names
 * and the same password, however often it is called.
 */
export async function planDatabase(
  { vault, store }: { readonly vault: Vault; readonly store: Pick<Store, 'db' | 'write'> },
  owner: SecretOwner,
): Promise<DeploymentDatabase | undefined> {
  await vault.prepare();
  await store.write(async (trx) => {
    const locked = trx.selectFrom('deployments').select('id').where('id', '=', owner.deploymentId);
    if ((await locked.forNoKeyUpdate().executeTakeFirst()) === undefined) return;
    const known = trx.selectFrom('deployment_databases').select('deployment_id');
    const found = await known.where('deployment_id', '=', owner.deploymentId).executeTakeFirst();
    if (found === undefined) await insert({ vault, trx }, owner);
  });
  return openDatabaseOf({ vault, db: store.db }, owner);
}

async function insert(
  { vault, trx }: { readonly vault: Vault; readonly trx: Transaction },
  owner: SecretOwner,
): Promise<void> {
  const { workspaceId, deploymentId } = owner;
  const name = `sallyport_d_${deploymentId.replaceAll('-', '')}`;
  const newKey = (): Secret => new Secret(randomBytes(32).toString('base64'));
  await trx
    .insertInto('deployment_databases')
    .values({
      ...{ workspace_id: workspaceId, deployment_id: deploymentId, database_name: name, role_name: name },
      sealed_password: await vault.seal(trx, placeOf(owner, 'password'), newKey()),
      sealed_master_key: await vault.seal(trx, placeOf(owner, 'master_key'), newKey()),
    })
    .execute();
}

/** Undefined: none was planned. */
export async function openDatabaseOf(
  { vault, db }: { readonly vault: Vault; readonly db: Reader },
  owner: SecretOwner,
): Promise<DeploymentDatabase | undefined> {
  const row = await db
    .selectFrom('deployment_databases')
    .select(['database_name', 'role_name', 'sealed_password', 'sealed_master_key'])
    .where('workspace_id', '=', owner.workspaceId)
    .where('deployment_id', '=', owner.deploymentId)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const open = async (kind: Kind, sealed: Buffer): Promise<Secret> => {
    const value = await vault.unsealValue(db, placeOf(owner, kind), sealed);
    if (value !== undefined) return value;
    throw new Error(`the ${kind} of ${owner.deploymentId} was changed or moved: it does not open`);
  };
  return {
    ...{ databaseName: row.database_name, roleName: row.role_name },
    password: await open('password', row.sealed_password),
    masterKey: await open('master_key', row.sealed_master_key),
  };
}

/** Once database and role are there: AWAITING_DATABASE becomes READY. */
export async function noteDatabase(store: Pick<Store, 'write'>, deploymentId: string): Promise<void> {
  await store.write(async (trx) => {
    const ready = trx
      .updateTable('deployments')
      .set({ status: 'READY', status_reason: null, updated_at: sql<Date>`now()` });
    const changed = await ready
      .where('id', '=', deploymentId)
      .where('status', '=', 'AWAITING_DATABASE')
      .returning('id')
      .executeTakeFirst();
    if (changed !== undefined) await notifyOfDeployment(trx, deploymentId);
  });
}

/** Why the status is not yet what it should become, in words for the owner of the deployment; null: nothing is in the way. */
export async function noteReason(db: Database, deploymentId: string, reason: string | null): Promise<void> {
  await db
    .updateTable('deployments')
    .set({ status_reason: reason })
    .where('id', '=', deploymentId)
    .where('status_reason', 'is distinct from', reason)
    .execute();
}

/** Names of databases that deployments have: every other `sallyport_d_…` of the server is left over. */
export async function databaseNames(db: Reader): Promise<ReadonlySet<string>> {
  const rows = await db.selectFrom('deployment_databases').select('database_name').execute();
  return new Set(rows.map((row) => row.database_name));
}

type Kind = 'password' | 'master_key';

function placeOf({ workspaceId, deploymentId }: SecretOwner, kind: Kind): SealedPlace {
  return { workspaceId, purpose: `deployment_database_${kind}`, name: deploymentId, version: 1 };
}
