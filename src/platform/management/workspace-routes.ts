// `/api/v1/workspaces`: the workspaces of the organization. Those that the caller cannot see are reported as not found.
import { z } from '../../base/schema.ts';
import { inOrganization } from '../api/access.ts';
import { type Route, UNTRACKED_READ, defineRoute, resourceOutcome } from '../api/route.ts';
import { findWorkspaceGrant, lockWorkspaceRole, requirePermission } from '../identity/authorization.ts';
import { permissionsOf, type WorkspaceRole, workspaceRoleIds } from '../identity/permission.ts';
import { displayName, nothing, page, toPage } from './fields.ts';
import {
  createWorkspace,
  deleteWorkspace,
  listWorkspaces,
  notFound,
  renameWorkspace,
  toWorkspace,
  workspace,
} from './workspaces.ts';

const named = z.object({ display_name: displayName });
const HANDLE = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const newWorkspace = named.extend({
  tenant_handle: z
    .string()
    .max(63, { abort: true })
    .regex(HANDLE, 'Input must have lower case letters, digits and inner hyphens')
    .nullish(),
});
const listed = workspace
  .extend({
    read_only: z.boolean(),
    role_id: z.uuid().describe('Of the caller in the workspace'),
    role_name: z.string(),
    permissions: z.array(z.string()),
  })
  .meta({ id: 'WorkspaceOfCaller' });

const all = { path: '/api/v1/workspaces', tag: 'Workspaces' } as const;
const one = {
  path: '/api/v1/workspaces/{workspace_id}',
  tag: 'Workspaces',
  params: z.strictObject({ workspace_id: z.guid() }),
} as const;

export const workspaceRoutes: readonly Route[] = [
  defineRoute({
    ...all,
    method: 'GET',
    summary: 'List the workspaces that the API key has access to, oldest first',
    access: inOrganization('organization:read'),
    tracking: UNTRACKED_READ,
    query: page,
    responses: { 200: z.array(listed) },
    async handle({ db, organizationId, caller, permissions, query }) {
      const isEvery = permissions.has('workspaces:read');
      const { userId, organization } = caller;
      const rows = await listWorkspaces(db, organizationId, { userId, isEvery }, toPage(query));
      return {
        body: rows.map(({ role, ...row }) => {
          const name = isEvery ? 'WORKSPACE_ADMIN' : (role as WorkspaceRole);
          return {
            ...toWorkspace(row, organization),
            read_only: name === 'WORKSPACE_VIEWER',
            role_id: workspaceRoleIds[name],
            role_name: name,
            permissions: [...permissionsOf('workspace', name)],
          };
        }),
      };
    },
  }),
  defineRoute({
    ...all,
    method: 'POST',
    summary: 'Create a workspace',
    access: inOrganization('organization:manage'),
    tracking: { operation: 'create_workspace' },
    body: newWorkspace,
    responses: { 200: workspace },
    failures: [409],
    async handle({ db, organizationId, caller, body: { display_name, tenant_handle = null } }) {
      const created = await createWorkspace(db, organizationId, display_name, tenant_handle);
      return { ...resourceOutcome(toWorkspace(created, caller.organization)), workspaceId: created.id };
    },
  }),
  defineRoute({
    ...one,
    method: 'PATCH',
    summary: 'Rename a workspace',
    access: inOrganization('organization:read'),
    tracking: { operation: 'update_workspace' },
    body: named,
    responses: { 200: workspace },
    failures: [404, 409],
    async handle({ db, organizationId, caller, params: { workspace_id }, body }) {
      // The path names the workspace here, not a header.
      await lockWorkspaceRole(db, caller, workspace_id);
      const grant = await findWorkspaceGrant(db, caller, workspace_id);
      if (grant === undefined) throw notFound();
      requirePermission(grant.permissions, 'WORKSPACES_MANAGE');
      const renamed = await renameWorkspace(db, organizationId, workspace_id, body.display_name);
      return resourceOutcome(toWorkspace(renamed, caller.organization));
    },
  }),
  defineRoute({
    ...one,
    method: 'DELETE',
    summary: 'Delete a workspace with its keys and everything in it; the last one cannot be deleted',
    access: inOrganization('organization:manage'),
    tracking: { operation: 'delete_workspace' },
    revokes: true,
    responses: { 200: nothing },
    failures: [404, 409],
    async handle({ db, organizationId, params }) {
      await deleteWorkspace(db, organizationId, params.workspace_id);
      return { body: {} };
    },
  }),
];
