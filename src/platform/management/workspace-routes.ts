// `/api/v1/workspaces`: the workspaces of the organization. Those that the caller cannot see are reported as not found.
import { z } from '../../base/schema.ts';
import { inOrganization } from '../api/access.ts';
import { type Route, UNTRACKED_READ, defineRoute, resourceOutcome } from '../api/route.ts';
import { findWorkspaceGrant, requirePermission } from '../identity/authorization.ts';
import { displayName, page } from './fields.ts';
import {
  createWorkspace,
  deleteWorkspace,
  listWorkspaces,
  notFound,
  renameWorkspace,
  workspace,
} from './workspaces.ts';

const named = z.strictObject({ display_name: displayName });
const all = { path: '/api/v1/workspaces', tag: 'Workspaces' } as const;
const one = {
  path: '/api/v1/workspaces/{workspace_id}',
  tag: 'Workspaces',
  params: z.strictObject({ workspace_id: z.uuid() }),
} as const;

export const workspaceRoutes: readonly Route[] = [
  defineRoute({
    ...all,
    method: 'GET',
    summary: 'List the workspaces that the API key has access to, oldest first',
    access: inOrganization('organization:read'),
    tracking: UNTRACKED_READ,
    query: page,
    responses: { 200: z.array(workspace) },
    async handle({ db, organizationId, caller: { userId }, permissions, query }) {
      const seesAll = permissions.has('workspaces:read');
      if (!seesAll && userId === undefined) return { body: [] };
      return { body: await listWorkspaces(db, organizationId, seesAll ? undefined : userId, query) };
    },
  }),
  defineRoute({
    ...all,
    method: 'POST',
    summary: 'Create a workspace',
    access: inOrganization('organization:manage'),
    tracking: { operation: 'create_workspace' },
    body: named,
    responses: { 201: workspace },
    failures: [409],
    async handle({ db, organizationId, body }) {
      const created = await createWorkspace(db, organizationId, body.display_name);
      return { ...resourceOutcome(created), workspaceId: created.id };
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
      const grant = await findWorkspaceGrant(db, caller, workspace_id);
      if (grant === undefined) throw notFound();
      requirePermission(grant.permissions, 'WORKSPACES_MANAGE');
      return resourceOutcome(await renameWorkspace(db, organizationId, workspace_id, body.display_name));
    },
  }),
  defineRoute({
    ...one,
    method: 'DELETE',
    summary: 'Delete a workspace with its keys and everything in it; the last one cannot be deleted',
    access: inOrganization('organization:manage'),
    tracking: { operation: 'delete_workspace' },
    responses: { 204: null },
    failures: [404, 409],
    handle: ({ db, organizationId, params }) => deleteWorkspace(db, organizationId, params.workspace_id),
  }),
];
