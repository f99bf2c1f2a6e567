// Keys, by whom or what they speak for. In clear a key is there once, when it is made. It must not know HTTP.
import { DomainError } from '../../base/domain-error.ts';
import { type KeyKind, mintKey } from '../identity/api-key.ts';
import type { Database } from '../store/database.ts';
import type { Selectable } from '../store/sql.ts';
import type { ApiKeyRow } from '../store/tables.ts';
import type { Page } from './fields.ts';

export type Key = Omit<Selectable<ApiKeyRow>, 'hash' | 'kind' | 'organization_id'>;
export type CreatedKey = Key & { readonly text: string };

/** Which keys are meant: nobody sees or deletes one outside it. */
export type KeyScope = {
  readonly organizationId: string;
  readonly kind: KeyKind;
  /** Null: those of the organization itself. */
  readonly workspaceId: string | null;
  /** Of a personal token; undefined: whosoever. */
  readonly userId?: string | undefined;
};

export type NewKey = {
  readonly userId: string | null;
  readonly role: string | null;
  readonly description: string;
  readonly expiresAt: Date | null;
};

const COLUMNS = [
  'id',
  'workspace_id',
  'user_id',
  'role',
  'short_key',
  'description',
  'created_at',
  'expires_at',
  'last_used_at',
] as const;

/** Oldest first; those that have expired stay listed until they are deleted. */
export async function listKeys(
  db: Database,
  scope: KeyScope,
  { limit, offset }: Page,
): Promise<readonly Key[]> {
  return db
    .selectFrom('api_keys')
    .select(COLUMNS)
    .where((eb) => eb.and(rowsOf(scope)))
    .orderBy('created_at')
    .orderBy('id')
    .limit(limit)
    .offset(offset)
    .execute();
}

export async function createKey(
  trx: Database,
  { organizationId, kind, workspaceId }: KeyScope,
  { userId, role, description, expiresAt }: NewKey,
): Promise<CreatedKey> {
  const { text, hash, shortKey } = mintKey(kind);
  const made = await trx
    .insertInto('api_keys')
    .values({
      kind,
      organization_id: organizationId,
      workspace_id: workspaceId,
      user_id: userId,
      role,
      short_key: shortKey,
      hash,
      description,
      expires_at: expiresAt,
      last_used_at: null,
    })
    .returning(COLUMNS)
    .executeTakeFirstOrThrow();
  return { ...made, text };
}

export async function deleteKey(trx: Database, scope: KeyScope, id: string): Promise<void> {
  const { numDeletedRows } = await trx
    .deleteFrom('api_keys')
    .where('id', '=', id)
    .where((eb) => eb.and(rowsOf(scope)))
    .executeTakeFirst();
  if (numDeletedRows === 0n) throw new DomainError('not_found', 'API key not found');
}

function rowsOf({ organizationId, kind, workspaceId, userId }: KeyScope) {
  return {
    organization_id: organizationId,
    kind,
    workspace_id: workspaceId,
    ...(userId === undefined ? {} : { user_id: userId }),
  };
}
