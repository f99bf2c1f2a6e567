// API keys in the database. The text of a key exists once, when the key is created.
import { DomainError } from '../../base/domain-error.ts';
import { z } from '../../base/schema.ts';
import type { Page } from '../api/paging.ts';
import { type KeyKind, type MintedKey, mintKey } from '../identity/api-key.ts';
import type { Database } from '../store/database.ts';
import { time } from './fields.ts';

export const key = z
  .strictObject({
    id: z.uuid(),
    short_key: z.string(),
    description: z.string(),
    role: z.string().nullable(),
    workspace_id: z.uuid().nullable(),
    user_id: z.uuid().nullable(),
    created_at: time,
    expires_at: time.nullable(),
    created_by_key_id: z.uuid().nullable().describe('The key that created it; null for the operator'),
    created_by_user_id: z.uuid().nullable().describe('The user of that key'),
    last_used_at: time.nullable(),
  })
  .meta({ id: 'ApiKey' });
const COLUMNS = key.keyof().options;

/** The keys that a request is about: no other key is listed or deleted. */
export type KeyScope = {
  readonly organizationId: string;
  readonly kind: KeyKind;
  /** Null: the keys of the organization itself. */
  readonly workspaceId: string | null;
  /** The owner of personal tokens; undefined: those of all members. */
  readonly userId?: string | undefined;
};

export type NewKey = {
  readonly user_id: string | null;
  readonly role: string | null;
  readonly description: string;
  readonly expires_at: Date | null;
  readonly home_workspace_id?: string | null;
  /** Both absent for a key that the operator creates. */
  readonly created_by_key_id?: string;
  readonly created_by_user_id?: string | null;
};

/** Oldest first. Expired keys stay in the list until they are deleted. */
export async function listKeys(db: Database, scope: KeyScope, { limit, offset }: Page) {
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

export async function createKey(trx: Database, scope: KeyScope, wanted: NewKey) {
  const { text, ...stored } = mintKey(scope.kind);
  return { ...(await insertKey(trx, scope, wanted, stored)), text };
}

/** Stores a key that exists already. */
export async function insertKey(
  trx: Database,
  scope: KeyScope,
  wanted: NewKey,
  { hash, shortKey }: Pick<MintedKey, 'hash' | 'shortKey'>,
) {
  return trx
    .insertInto('api_keys')
    .values({ ...toColumns(scope), ...wanted, hash, short_key: shortKey, last_used_at: null })
    .returning(COLUMNS)
    .executeTakeFirstOrThrow();
}

export async function deleteKey(trx: Database, scope: KeyScope, id: string): Promise<void> {
  await trx
    .deleteFrom('api_keys')
    .where('id', '=', id)
    .where((eb) => eb.and(toColumns(scope)))
    .returning('id')
    .executeTakeFirstOrThrow(() => new DomainError('not_found', 'API key not found'));
}

function toColumns({ organizationId, kind, workspaceId, userId }: KeyScope) {
  return {
    organization_id: organizationId,
    kind,
    workspace_id: workspaceId,
    ...(userId === undefined ? {} : { user_id: userId }),
  };
}
