// API keys in the database. The text of a key exists once, when the key is created.
import { DomainError } from '../../base/domain-error.ts';
import type { Page } from '../api/paging.ts';
import { type KeyKind, type MintedKey, mintKey } from '../identity/api-key.ts';
import type { Database } from '../store/database.ts';
import type { Selectable } from '../store/sql.ts';
import type { ApiKeyRow } from '../store/tables.ts';

export type Key = Omit<Selectable<ApiKeyRow>, 'hash' | 'kind' | 'organization_id'>;
export type CreatedKey = Key & { readonly text: string };

/** The keys that a request is about: no other key is listed or deleted. */
export type KeyScope = {
  readonly organizationId: string;
  readonly kind: KeyKind;
  /** Null: the keys of the organization itself. */
  readonly workspaceId: string | null;
  /** The owner of personal tokens; undefined: those of all members. */
  readonly userId?: string | undefined;
};

export type NewKey = Pick<Key, 'user_id' | 'role' | 'description' | 'expires_at'>;

const COLUMNS = [
  'id',
  'short_key',
  'description',
  'role',
  'workspace_id',
  'user_id',
  'created_at',
  'expires_at',
  'last_used_at',
] as const;

/** Oldest first. Expired keys stay in the list until they are deleted. */
export async function listKeys(
  db: Database,
  scope: KeyScope,
  { limit, offset }: Page,
): Promise<readonly Key[]> {
  return db
    .selectFrom('api_keys')
    .select(COLUMNS)
    .where((eb) => eb.and(toColumns(scope)))
    .orderBy('created_at')
    .orderBy('id')
    .limit(limit)
    .offset(offset)
    .execute();
}

export async function createKey(trx: Database, scope: KeyScope, wanted: NewKey): Promise<CreatedKey> {
  const { text, ...stored } = mintKey(scope.kind);
  return { ...(await insertKey(trx, scope, wanted, stored)), text };
}

/** Stores a key that exists already. */
export async function insertKey(
  trx: Database,
  scope: KeyScope,
  wanted: NewKey,
  { hash, shortKey }: Pick<MintedKey, 'hash' | 'shortKey'>,
): Promise<Key> {
  return trx
    .insertInto('api_keys')
    .values({ ...toColumns(scope), ...wanted, hash, short_key: shortKey, last_used_at: null })
    .returning(COLUMNS)
    .executeTakeFirstOrThrow();
}

export async function deleteKey(trx: Database, scope: KeyScope, id: string): Promise<void> {
  const { numDeletedRows } = await trx
    .deleteFrom('api_keys')
    .where('id', '=', id)
    .where((eb) => eb.and(toColumns(scope)))
    .executeTakeFirst();
  if (numDeletedRows === 0n) throw new DomainError('not_found', 'API key not found');
}

function toColumns({ organizationId, kind, workspaceId, userId }: KeyScope) {
  return {
    organization_id: organizationId,
    kind,
    workspace_id: workspaceId,
    ...(userId === undefined ? {} : { user_id: userId }),
  };
}
