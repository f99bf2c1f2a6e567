// Destinations in the database. Their configuration never changes; their credentials are replaced by a new version.
import { randomUUID } from 'node:crypto';
import { DomainError } from '../../../base/domain-error.ts';
import { noWorkspace } from '../../identity/authorization.ts';
import type { Reader, Transaction } from '../../store/database.ts';
import { type Fixed, type Generated, sql } from '../../store/sql.ts';
import type { Vault } from '../../vault/vault.ts';
import { releaseCredentials } from '../scheduling/held-credentials.ts';
import { credentialKeys, storeCredentials } from './credentials.ts';
import type { Credentials, DestinationConfig } from './destination-schema.ts';

declare module '../../store/tables.ts' {
  interface Tables {
    readonly export_destinations: {
      readonly id: Fixed<string>;
      readonly workspace_id: Fixed<string>;
      readonly display_name: Fixed<string>;
      readonly config: Fixed<string>;
      credentials_keys: readonly string[];
      /** Null: the credentials of this installation. */
      credentials_version: number | null;
      readonly created_at: Generated<Date>;
      updated_at: Generated<Date>;
    };
  }
}

/** There is no way to delete one. */
const MAX_DESTINATIONS = 1_000;
const COLUMNS = [
  'id',
  'workspace_id',
  'display_name',
  'config',
  'credentials_keys',
  'created_at',
  'updated_at',
] as const;

type Write = { readonly vault: Vault; readonly trx: Transaction; readonly workspaceId: string };

export type NewDestination = {
  readonly display_name: string;
  readonly config: DestinationConfig;
  readonly credentials?: Credentials | null | undefined;
};

/** Throws `conflict` when the workspace has as many as it may. */
export async function createDestination(write: Write, { display_name, config, credentials }: NewDestination) {
  const { trx, workspaceId } = write;
  await requireCapacity(trx, workspaceId);
  const id = randomUUID();
  const row = await trx
    .insertInto('export_destinations')
    .values({
      ...{ id, workspace_id: workspaceId, display_name, config: JSON.stringify(config) },
      credentials_keys: credentialKeys(credentials),
      credentials_version: credentials ? 1 : null,
    })
    .returning(COLUMNS)
    .executeTakeFirstOrThrow();
  if (credentials) await storeCredentials(write, { workspaceId, destinationId: id, version: 1 }, credentials);
  return toDestination(row);
}

/** Throws `not_found`, also for a destination of another workspace. */
export async function replaceCredentials(write: Write, id: string, credentials: Credentials) {
  const { trx, workspaceId } = write;
  const row = await trx
    .updateTable('export_destinations')
    .set({
      credentials_keys: credentialKeys(credentials),
      credentials_version: sql<number>`coalesce(credentials_version, 0) + 1`,
      updated_at: sql<Date>`now()`,
    })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .returning([...COLUMNS, 'credentials_version'])
    .executeTakeFirstOrThrow(noDestination);
  const version = Number(row.credentials_version);
  await storeCredentials(write, { workspaceId, destinationId: id, version }, credentials);
  await releaseCredentials(trx, id);
  return toDestination(row);
}

/** Newest first. */
export async function listDestinations(db: Reader, workspaceId: string) {
  const rows = await db
    .selectFrom('export_destinations')
    .select(COLUMNS)
    .where('workspace_id', '=', workspaceId)
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .execute();
  return rows.map(toDestination);
}

/** Throws `not_found`, also for a destination of another workspace. */
export async function findDestination(db: Reader, workspaceId: string, id: string) {
  const row = await db
    .selectFrom('export_destinations')
    .select(COLUMNS)
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .executeTakeFirstOrThrow(noDestination);
  return toDestination(row);
}

export function noDestination(): DomainError {
  return new DomainError('not_found', 'Bulk export destination not found');
}

type Row = {
  readonly id: string;
  readonly workspace_id: string;
  readonly display_name: string;
  readonly config: string;
  readonly credentials_keys: readonly string[];
  readonly created_at: Date;
  readonly updated_at: Date;
};

function toDestination({ workspace_id: tenantId, config, created_at, updated_at, ...row }: Row) {
  return {
    id: row.id,
    tenant_id: tenantId,
    created_at: created_at.toISOString(),
    updated_at: updated_at.toISOString(),
    destination_type: 's3' as const,
    display_name: row.display_name,
    config: JSON.parse(config) as DestinationConfig,
    credentials_keys: [...row.credentials_keys],
  };
}

async function requireCapacity(trx: Transaction, workspaceId: string): Promise<void> {
  await trx
    .selectFrom('workspaces')
    .select('id')
    .where('id', '=', workspaceId)
    .forNoKeyUpdate()
    .executeTakeFirstOrThrow(noWorkspace);
  const { count } = await trx
    .selectFrom('export_destinations')
    .where('workspace_id', '=', workspaceId)
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .executeTakeFirstOrThrow();
  if (Number(count) >= MAX_DESTINATIONS)
    throw new DomainError(
      'conflict',
      `A workspace can have at most ${MAX_DESTINATIONS} bulk export destinations`,
    );
}
