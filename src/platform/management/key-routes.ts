// API keys, in four collections with the same routes: the service keys of a workspace and of the organization, and the
// personal access tokens of the caller and of every member.
import { DomainError } from '../../base/domain-error.ts';
import { z } from '../../base/schema.ts';
import { type Access, inOrganization, inWorkspace, type OrganizationGrant } from '../api/access.ts';
import { type Handling, type Route, type Tracking, UNTRACKED_READ, defineRoute } from '../api/route.ts';
import type { Operation } from '../audit/operations.ts';
import type { Caller } from '../identity/authentication.ts';
import { findWorkspaceGrant, requireNoEscalation, requireWithinLife } from '../identity/authorization.ts';
import { permissionsOf, type WorkspaceRole } from '../identity/permission.ts';
import type { Database } from '../store/database.ts';
import {
  displayName,
  expiry,
  organizationRole,
  organizationRoleId,
  organizationRoleOf,
  page,
  toPage,
  workspaceRole,
  workspaceRoleId,
  workspaceRoleOf,
} from './fields.ts';
import { type KeyScope, type NewKey, createKey, deleteKey, key, listKeys } from './keys.ts';
import { requireManagerKey } from './last-administrator.ts';
import { lockMember, lockWorkspace } from './row-locks.ts';

const createdKey = key.extend({ key: z.string() }).meta({ id: 'CreatedApiKey' });

/** As public clients send it: what is not known here is ignored. */
const newToken = z.object({
  description: displayName.default('Default API key'),
  expires_at: expiry.nullish(),
  default_workspace_id: z.uuid().nullish().describe('Used by requests without X-Tenant-Id'),
});
type NewToken = z.output<typeof newToken>;

const newKey = newToken.extend({
  read_only: z.boolean().default(false).describe('The role is that of a viewer, whatever is asked for'),
  workspaces: z.array(z.uuid()).max(1).nullish().describe('The one workspace of the key'),
  role_id: workspaceRoleId.nullish(),
});

/** One of the four collections: `G` is what its access grants, `B` the body that creates a key in it. */
type Collection<G extends OrganizationGrant, B extends NewToken> = {
  readonly path: string;
  readonly tag: string;
  readonly idName: 'api_key_id' | 'pat_id';
  /** In summaries: one key of the collection, and all of them. */
  readonly nouns: readonly [one: string, all: string];
  readonly access: Access<G>;
  /** Where creating a key requires more than the rest. */
  readonly creationAccess?: Access<G>;
  readonly listing: Tracking;
  readonly creation: Operation;
  readonly deletion: Operation;
  readonly body: z.ZodType<B>;
  scopeOf(granted: G): KeyScope;
  /** Whose the new key is and what it may do; throws DomainError when the caller must not create it. */
  authorize(call: Creation<G, B>): Promise<NewOwner>;
};

type NewOwner = Pick<NewKey, 'user_id' | 'role'> & {
  /** Of a key that is created in one workspace through the collection of the organization. */
  readonly workspaceId?: string | undefined;
};

type Creation<G, B> = G & Handling & { readonly body: B };

function createKeyRoutes<G extends OrganizationGrant, B extends NewToken>(
  collection: Collection<G, B>,
): readonly Route[] {
  const { path, tag, idName, access, body, scopeOf } = collection;
  const [one, all] = collection.nouns;
  return [
    defineRoute({
      method: 'GET',
      path,
      tag,
      summary: `List ${all}`,
      access,
      tracking: collection.listing,
      query: page,
      responses: { 200: z.array(key) },
      handle: async (call) => ({ body: await listKeys(call.db, scopeOf(call), toPage(call.query)) }),
    }),
    defineRoute({
      method: 'POST',
      path,
      tag,
      summary: `Create ${one}; only this response contains the key`,
      access: collection.creationAccess ?? access,
      tracking: { operation: collection.creation },
      body,
      responses: { 200: createdKey },
      failures: [404],
      handle: (call) => createIn(collection, call),
    }),
    defineRoute({
      method: 'DELETE',
      path: `${path}/{${idName}}`,
      tag,
      summary: `Delete ${one}; it is rejected from then on`,
      access,
      tracking: { operation: collection.deletion },
      revokes: true,
      params: z.strictObject({ [idName]: z.guid() }),
      responses: { 200: key },
      failures: access.to === 'workspace' ? [404] : [404, 409],
      async handle(call) {
        const { db, organizationId, permissions, params } = call;
        const deleted = await deleteKey(db, scopeOf(call), params[idName] ?? '');
        // The last key that manages the organization can only be deleted by a caller who manages it; revocations take turns.
        const isManager = access.to === 'organization' && permissions.has('organization:manage');
        if (isManager) await requireManagerKey(db, organizationId);
        return { body: deleted };
      },
    }),
  ];
}

async function createIn<G extends OrganizationGrant, B extends NewToken>(
  { scopeOf, authorize }: Collection<G, B>,
  call: Creation<G, B>,
) {
  const { description, expires_at = null } = call.body;
  const { workspaceId, ...owner } = await authorize(call);
  const scope = { ...scopeOf(call), ...(workspaceId === undefined ? {} : { workspaceId }) };
  const expiresAt = expires_at === null ? null : new Date(expires_at);
  requireWithinLife(call.caller, expiresAt);
  const maker = { created_by_key_id: call.caller.keyId, created_by_user_id: call.caller.userId ?? null };
  const asked = await findHome(call);
  // A key of one workspace has it as its home.
  const home = typeof scope.workspaceId === 'string' ? null : asked;
  const wanted = { ...owner, ...maker, description, expires_at: expiresAt, home_workspace_id: home };
  const { text, ...created } = await createKey(call.db, scope, wanted);
  return {
    body: { ...created, key: text },
    resources: owner.user_id === null ? [created.id] : [created.id, owner.user_id],
    fields: { 'Cache-Control': 'no-store' },
  };
}

/** The home workspace that is asked for. A workspace that the caller does not see is none. */
async function findHome({ db, caller, organizationId, body }: Creation<OrganizationGrant, NewToken>) {
  const id = body.default_workspace_id ?? null;
  if (id !== null) await findVisible(db, caller, organizationId, id);
  return id;
}

/** The permissions of the caller there. Locks the workspace; throws `not_found` for one that the caller does not see. */
async function findVisible(db: Database, caller: Caller, organizationId: string, workspaceId: string) {
  await lockWorkspace(db, organizationId, workspaceId);
  const grant = await findWorkspaceGrant(db, caller, workspaceId);
  if (grant === undefined) throw new DomainError('not_found', 'Workspace not found');
  return grant.permissions;
}

const serviceKeys = { tag: 'API keys', idName: 'api_key_id' } as const;
const personalTokens = {
  tag: 'Personal access tokens',
  idName: 'pat_id',
  creation: 'create_personal_access_token',
  deletion: 'delete_personal_access_token',
} as const;

const ofWorkspace = createKeyRoutes({
  path: '/api/v1/api-key',
  ...serviceKeys,
  nouns: ['a service key of the workspace', 'the service keys of the workspace'],
  access: inWorkspace('WORKSPACES_MANAGE'),
  listing: UNTRACKED_READ,
  creation: 'create_api_key',
  deletion: 'delete_api_key',
  body: newKey.extend({ role: workspaceRole.default('WORKSPACE_USER').describe('Instead of role_id') }),
  scopeOf: ({ organizationId, workspaceId }) => ({ organizationId, kind: 'service', workspaceId }),
  async authorize({ db, organizationId, workspaceId, permissions, body }) {
    const other = body.workspaces?.find((id) => id.toLowerCase() !== workspaceId);
    if (other !== undefined) throw new DomainError('not_found', OTHER_WORKSPACE);
    const role = workspaceRoleIn(body);
    requireNoEscalation(permissions, permissionsOf('workspace', role));
    await lockWorkspace(db, organizationId, workspaceId);
    return { user_id: null, role };
  },
});

const ofOrganization = createKeyRoutes({
  path: '/api/v1/orgs/current/service-keys',
  ...serviceKeys,
  nouns: ['a service key of the organization', 'the service keys of the organization'],
  access: inOrganization('organization:manage'),
  listing: { operation: 'list_org_service_keys' },
  creation: 'create_service_key',
  deletion: 'delete_service_key',
  body: newKey.extend({
    role: organizationRole.default('ORGANIZATION_USER').describe('Instead of org_role_id'),
    org_role_id: organizationRoleId.nullish(),
  }),
  scopeOf: ({ organizationId }) => ({ organizationId, kind: 'service' }),
  async authorize({ db, caller, organizationId, permissions, body }) {
    const [workspaceId] = body.workspaces ?? [];
    if (workspaceId !== undefined) {
      const own = await findVisible(db, caller, organizationId, workspaceId);
      const role = workspaceRoleIn({ ...body, role: 'WORKSPACE_USER' });
      requireNoEscalation(own, permissionsOf('workspace', role));
      return { user_id: null, role, workspaceId: workspaceId.toLowerCase() };
    }
    const named = organizationRoleOf(body.org_role_id ?? '') ?? body.role;
    const role = body.read_only ? 'ORGANIZATION_VIEWER' : named;
    requireNoEscalation(permissions, permissionsOf('organization', role));
    return { user_id: null, role };
  },
});

const OTHER_WORKSPACE = 'A key of the workspace of the request has no other workspace: leave out workspaces';

function workspaceRoleIn({
  read_only,
  role_id,
  role,
}: z.output<typeof newKey> & { readonly role: WorkspaceRole }): WorkspaceRole {
  return read_only ? 'WORKSPACE_VIEWER' : (workspaceRoleOf(role_id ?? '') ?? role);
}

const ofCaller = createKeyRoutes({
  path: '/api/v1/api-key/current',
  ...personalTokens,
  nouns: ['a personal access token of your own', 'your personal access tokens'],
  access: inOrganization('organization:read'),
  listing: UNTRACKED_READ,
  body: newToken,
  scopeOf: (call) => ({ ...tokensOf(call), userId: userOf(call) }),
  async authorize(call) {
    await lockMember(call.db, call.organizationId, userOf(call));
    return { user_id: userOf(call), role: null };
  },
});

const ofMembers = createKeyRoutes({
  path: '/api/v1/orgs/current/personal-access-tokens',
  ...personalTokens,
  nouns: ['a personal access token of a member', 'the personal access tokens of all members'],
  access: inOrganization('organization:manage'),
  // A token of somebody else is a way to act for them.
  creationAccess: inOrganization('organization:grant_admin'),
  listing: { operation: 'list_org_personal_access_tokens' },
  body: newToken.extend({ user_id: z.uuid().optional().describe('The caller when absent') }),
  scopeOf: tokensOf,
  async authorize(call) {
    const { db, organizationId, permissions, body } = call;
    const user_id = body.user_id ?? userOf(call);
    const { role } = await lockMember(db, organizationId, user_id);
    requireNoEscalation(permissions, permissionsOf('organization', role));
    return { user_id, role: null };
  },
});

function tokensOf({ organizationId }: OrganizationGrant): KeyScope {
  return { organizationId, kind: 'personal', workspaceId: null };
}

function userOf({ caller }: OrganizationGrant): string {
  if (caller.userId !== undefined) return caller.userId;
  throw new DomainError('forbidden', 'Service keys belong to no user: send a personal access token instead');
}

export const keyRoutes: readonly Route[] = [...ofWorkspace, ...ofOrganization, ...ofCaller, ...ofMembers];
