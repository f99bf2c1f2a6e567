// API keys in the database, in the shape of the public API. The text of a key exists once, when the key is created.
import { DomainError } from '../../base/domain-error.ts';
import { z } from '../../base/schema.ts';
import type { Page } from '../api/paging.ts';
import { type KeyKind, type MintedKey, mintKey } from '../identity/api-key.ts';
import {
  organizationRoleIds,
  type OrganizationRole,
  type WorkspaceRole,
  workspaceRoleIds,
} from '../identity/permission.ts';
import type { Database } from '../store/database.ts';
import { time } from './fields.ts';

export const key = z
  .strictObject({
    id: z.uuid(),
    short_key: z.string(),
    description: z.string(),
    read_only: z.boolean().describe('The role of the key changes nothing'),
    created_at: time,
    last_used_at: time.nullable(),
    expires_at: time.nullable(),
    access_scope: z.enum(['organization', 'workspace']),
    role: z.string().nullable().describe('Of a service key, by its name'),
    role_id: z.uuid().nullable().describe('In the workspace of the key'),
    org_role_id: z.uuid().nullable().describe('In the organization'),
    workspace_id: z.uuid().nullable(),
    workspace_names: z.array(z.string()).nullable(),
    default_workspace_id: z.uuid().nullable().describe('Used by requests without X-Tenant-Id'),
    default_workspace_name: z.string().nullable(),
    user_id: z.uuid().nullable(),
    created_by_key_id: z.uuid().nullable().describe('The key that created it; null for the operator'),
    created_by_user_id: z.uuid().nullable().describe('The user of that key'),
  })
  .meta({ id: 'ApiKey' });

/** The keys that a request is about: no other key is listed or deleted. */
export type KeyScope = {
  readonly organizationId: string;
  readonly kind: KeyKind;
  /** Null: the keys of the organization itself; undefined: those of its workspaces too. */
  readonly workspaceId?: string | null;
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
  const rows = await selectKeys(db, scope)
    .orderBy('k.created_at')
    .orderBy('k.id')
    .limit(limit)
    .offset(offset)
    .execute();
  return rows.map(toKey);
}

export async function createKey(trx: Database, scope: KeyScope, wanted: NewKey) {
  const { text, ...stored } = mintKey(scope.kind);
  const id = await insertKey(trx, scope, wanted, stored);
  const row = await selectKeys(trx, scope).where('k.id', '=', id).executeTakeFirstOrThrow();
  return { ...toKey(row), text };
}

/** Stores a key that exists already. Returns its id. */
export async function insertKey(
  trx: Database,
  { organizationId, kind, workspaceId = null }: KeyScope,
  wanted: NewKey,
  { hash, shortKey }: Pick<MintedKey, 'hash' | 'shortKey'>,
): Promise<string> {
  const scope = { organization_id: organizationId, kind, workspace_id: workspaceId };
  const { id } = await trx
    .insertInto('api_keys')
    .values({ ...scope, ...wanted, hash, short_key: shortKey, last_used_at: null })
    .returning('id')
    .executeTakeFirstOrThrow();
  return id;
}

/** Returns the key as it was. */
export async function deleteKey(trx: Database, scope: KeyScope, id: string) {
  const missing = (): DomainError => new DomainError('not_found', 'API key not found');
  const row = await selectKeys(trx, scope).where('k.id', '=', id).executeTakeFirstOrThrow(missing);
  await trx.deleteFrom('api_keys').where('id', '=', id).returning('id').executeTakeFirstOrThrow(missing);
  return toKey(row);
}

function selectKeys(db: Database, { organizationId, kind, workspaceId, userId }: KeyScope) {
  const scope = {
    'k.organization_id': organizationId,
    'k.kind': kind,
    ...(userId === undefined ? {} : { 'k.user_id': userId }),
  };
  return db
    .selectFrom('api_keys as k')
    .leftJoin('workspaces as w', 'w.id', 'k.workspace_id')
    .leftJoin('workspaces as h', 'h.id', 'k.home_workspace_id')
    .select(['k.id', 'k.short_key', 'k.description', 'k.role', 'k.workspace_id', 'k.user_id', 'k.created_at'])
    .select(['k.expires_at', 'k.last_used_at', 'k.created_by_key_id', 'k.created_by_user_id'])
    .select(['k.home_workspace_id', 'w.display_name as workspace_name', 'h.display_name as home_name'])
    .where((eb) => eb.and(scope))
    .$if(workspaceId === null, (query) => query.where('k.workspace_id', 'is', null))
    .$if(typeof workspaceId === 'string', (query) => query.where('k.workspace_id', '=', workspaceId!));
}

type Row = Awaited<ReturnType<ReturnType<typeof selectKeys>['executeTakeFirstOrThrow']>>;

function toKey({ home_workspace_id, home_name, workspace_name, ...row }: Row) {
  const { workspace_id, role } = row;
  const isOfWorkspace = workspace_id !== null;
  const ids: Readonly<Record<string, string>> = isOfWorkspace ? workspaceRoleIds : organizationRoleIds;
  const roleId = role === null ? null : (ids[role] ?? null);
  return {
    ...row,
    read_only: role !== null && READERS.includes(role),
    access_scope: isOfWorkspace ? ('workspace' as const) : ('organization' as const),
    role_id: isOfWorkspace ? roleId : null,
    org_role_id: isOfWorkspace ? null : roleId,
    workspace_names: workspace_name === null ? null : [workspace_name],
    default_workspace_id: workspace_id ?? home_workspace_id,
    default_workspace_name: workspace_name ?? home_name,
  };
}

const READERS: readonly string[] = ['ORGANIZATION_VIEWER', 'WORKSPACE_VIEWER'] satisfies (
  | OrganizationRole
  | WorkspaceRole
)[];
