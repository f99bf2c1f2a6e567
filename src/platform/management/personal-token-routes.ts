// Personal access tokens: a member's own at `/api/v1/api-key/current`, those of every member of the organization at
// `/api/v1/orgs/current/personal-access-tokens`, where the first one of a new member is made.
import { DomainError } from '../../base/domain-error.ts';
import { z } from '../../base/schema.ts';
import { type Call, type Route, defineRoute } from '../api/route.ts';
import { permissionsOf } from '../identity/permission.ts';
import { requireWithin } from '../identity/standing.ts';
import { callerOf } from './caller-of.ts';
import { UNTRACKED_READ, page } from './fields.ts';
import { holdMember, holdOrganization } from './holding.ts';
import {
  createdKeyDocument,
  keyDocument,
  newPersonalToken,
  toDate,
  toDocument,
  shownOnce,
} from './key-document.ts';
import { type KeyScope, createKey, deleteKey, listKeys } from './keys.ts';
import { requireManagerKey } from './manager-left.ts';

const params = z.strictObject({ token_id: z.uuid() });
const tag = 'Personal access tokens';
const list = z.array(keyDocument);

function ofEveryone({ organizationId }: { readonly organizationId: string }): KeyScope {
  return { organizationId, kind: 'personal', workspaceId: null };
}

function ownTokens(call: Call): KeyScope & { readonly userId: string } {
  const { userId } = callerOf(call);
  if (userId === undefined)
    throw new DomainError(
      'forbidden',
      'A service key speaks for no user, who alone has personal access tokens',
    );
  return { ...ofEveryone(call), userId };
}

export const personalTokenRoutes: readonly Route[] = [
  defineRoute({
    method: 'GET',
    path: '/api/v1/api-key/current',
    tag,
    summary: 'List your own personal access tokens',
    access: { to: 'organization', permission: 'organization:read' },
    tracking: UNTRACKED_READ,
    query: page,
    success: { status: 200, body: list },
    failures: [],
    async handle(call) {
      const found = await listKeys(call.db, ownTokens(call), call.query);
      return { body: found.map(toDocument) };
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/api/v1/api-key/current',
    tag,
    summary: 'Make a personal access token for yourself; this answer alone holds it',
    access: { to: 'organization', permission: 'organization:read' },
    tracking: { operation: 'create_personal_access_token' },
    body: newPersonalToken,
    success: { status: 201, body: createdKeyDocument },
    failures: [404],
    async handle(call) {
      const { userId, ...scope } = ownTokens(call);
      await holdMember(call.db, call.organizationId, userId);
      const { description, expires_at } = call.body;
      const wanted = { userId, role: null, description, expiresAt: toDate(expires_at) };
      return shownOnce(await createKey(call.db, scope, wanted));
    },
  }),
  defineRoute({
    method: 'DELETE',
    path: '/api/v1/api-key/current/{token_id}',
    tag,
    summary: 'Delete a personal access token of your own: it is refused from then on',
    access: { to: 'organization', permission: 'organization:read' },
    tracking: { operation: 'delete_personal_access_token' },
    params,
    success: { status: 204 },
    failures: [404, 409],
    async handle(call) {
      await removeToken(call, ownTokens(call), call.params.token_id);
      return {};
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/api/v1/orgs/current/personal-access-tokens',
    tag,
    summary: 'List the personal access tokens of the members',
    access: { to: 'organization', permission: 'organization:manage' },
    tracking: { operation: 'list_org_personal_access_tokens' },
    query: page,
    success: { status: 200, body: list },
    failures: [],
    async handle(call) {
      const found = await listKeys(call.db, ofEveryone(call), call.query);
      return { body: found.map(toDocument) };
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/api/v1/orgs/current/personal-access-tokens',
    tag,
    summary: 'Make a personal access token for a member; this answer alone holds it',
    access: { to: 'organization', permission: 'organization:manage' },
    tracking: { operation: 'create_personal_access_token' },
    body: newPersonalToken.extend({ user_id: z.uuid() }),
    success: { status: 201, body: createdKeyDocument },
    failures: [404],
    async handle(call) {
      const { user_id: userId, description, expires_at } = call.body;
      const { role } = await holdMember(call.db, call.organizationId, userId);
      requireWithin(callerOf(call).permissions, permissionsOf('organization', role));
      const wanted = { userId, role: null, description, expiresAt: toDate(expires_at) };
      return shownOnce(await createKey(call.db, ofEveryone(call), wanted));
    },
  }),
  defineRoute({
    method: 'DELETE',
    path: '/api/v1/orgs/current/personal-access-tokens/{token_id}',
    tag,
    summary: 'Delete a personal access token of a member: it is refused from then on',
    access: { to: 'organization', permission: 'organization:manage' },
    tracking: { operation: 'delete_personal_access_token' },
    params,
    success: { status: 204 },
    failures: [404, 409],
    async handle(call) {
      await removeToken(call, ofEveryone(call), call.params.token_id);
      return {};
    },
  }),
];

async function removeToken(call: Call, scope: KeyScope, id: string): Promise<void> {
  const { db, organizationId } = call;
  const isManager = callerOf(call).permissions.has('organization:manage');
  if (isManager) await holdOrganization(db, organizationId);
  await deleteKey(db, scope, id);
  // Only who manages could have deleted the last key that does.
  if (isManager) await requireManagerKey(db, organizationId);
}
