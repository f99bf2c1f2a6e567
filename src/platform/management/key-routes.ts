// Service keys: those of a workspace at `/api/v1/api-key`, those of the organization at `/api/v1/orgs/current/service-keys`.
import { z } from '../../base/schema.ts';
import { type Route, defineRoute } from '../api/route.ts';
import { permissionsOf } from '../identity/permission.ts';
import { requireWithin, standingIn } from '../identity/standing.ts';
import { callerOf } from './caller-of.ts';
import { UNTRACKED_READ, organizationRole, page, workspaceRole } from './fields.ts';
import { holdOrganization, holdWorkspace } from './holding.ts';
import {
  createdKeyDocument,
  keyDocument,
  newServiceKey,
  toDate,
  toDocument,
  shownOnce,
} from './key-document.ts';
import { type KeyScope, createKey, deleteKey, listKeys } from './keys.ts';
import { requireManagerKey } from './manager-left.ts';

const params = z.strictObject({ api_key_id: z.uuid() });
const tag = 'API keys';
const list = z.array(keyDocument);

type InWorkspace = { readonly organizationId: string; readonly workspaceId: string };

function ofWorkspace({ organizationId, workspaceId }: InWorkspace): KeyScope {
  return { organizationId, kind: 'service', workspaceId };
}

function ofOrganization({ organizationId }: { readonly organizationId: string }): KeyScope {
  return { organizationId, kind: 'service', workspaceId: null };
}

export const serviceKeyRoutes: readonly Route[] = [
  defineRoute({
    method: 'GET',
    path: '/api/v1/api-key',
    tag,
    summary: 'List the service keys of the workspace',
    access: { to: 'workspace', permission: 'WORKSPACES_MANAGE' },
    tracking: UNTRACKED_READ,
    query: page,
    success: { status: 200, body: list },
    failures: [],
    async handle(call) {
      const found = await listKeys(call.db, ofWorkspace(call), call.query);
      return { body: found.map(toDocument) };
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/api/v1/api-key',
    tag,
    summary: 'Make a service key of the workspace; this answer alone holds it',
    access: { to: 'workspace', permission: 'WORKSPACES_MANAGE' },
    tracking: { operation: 'create_api_key' },
    body: newServiceKey(workspaceRole.default('WORKSPACE_USER')),
    success: { status: 201, body: createdKeyDocument },
    failures: [404],
    async handle(call) {
      const { role, description, expires_at } = call.body;
      const { db, organizationId, workspaceId } = call;
      const { permissions } = await standingIn(db, callerOf(call), workspaceId, 'WORKSPACES_MANAGE');
      requireWithin(permissions, permissionsOf('workspace', role));
      await holdWorkspace(db, organizationId, workspaceId);
      const wanted = { userId: null, role, description, expiresAt: toDate(expires_at) };
      return shownOnce(await createKey(db, ofWorkspace(call), wanted));
    },
  }),
  defineRoute({
    method: 'DELETE',
    path: '/api/v1/api-key/{api_key_id}',
    tag,
    summary: 'Delete a service key of the workspace: it is refused from then on',
    access: { to: 'workspace', permission: 'WORKSPACES_MANAGE' },
    tracking: { operation: 'delete_api_key' },
    params,
    success: { status: 204 },
    failures: [404],
    async handle(call) {
      await deleteKey(call.db, ofWorkspace(call), call.params.api_key_id);
      return {};
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/api/v1/orgs/current/service-keys',
    tag,
    summary: 'List the service keys of the organization',
    access: { to: 'organization', permission: 'organization:manage' },
    tracking: { operation: 'list_org_service_keys' },
    query: page,
    success: { status: 200, body: list },
    failures: [],
    async handle(call) {
      const found = await listKeys(call.db, ofOrganization(call), call.query);
      return { body: found.map(toDocument) };
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/api/v1/orgs/current/service-keys',
    tag,
    summary: 'Make a service key of the organization; this answer alone holds it',
    access: { to: 'organization', permission: 'organization:manage' },
    tracking: { operation: 'create_service_key' },
    body: newServiceKey(organizationRole),
    success: { status: 201, body: createdKeyDocument },
    failures: [],
    async handle(call) {
      const { role, description, expires_at } = call.body;
      requireWithin(callerOf(call).permissions, permissionsOf('organization', role));
      const wanted = { userId: null, role, description, expiresAt: toDate(expires_at) };
      return shownOnce(await createKey(call.db, ofOrganization(call), wanted));
    },
  }),
  defineRoute({
    method: 'DELETE',
    path: '/api/v1/orgs/current/service-keys/{api_key_id}',
    tag,
    summary: 'Delete a service key of the organization: it is refused from then on',
    access: { to: 'organization', permission: 'organization:manage' },
    tracking: { operation: 'delete_service_key' },
    params,
    success: { status: 204 },
    failures: [404, 409],
    async handle(call) {
      const { db, organizationId } = call;
      await holdOrganization(db, organizationId);
      await deleteKey(db, ofOrganization(call), call.params.api_key_id);
      await requireManagerKey(db, organizationId);
      return {};
    },
  }),
];
