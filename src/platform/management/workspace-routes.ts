// `/api/v1/workspaces`: the workspaces of the organization. A workspace that the caller does not see is not there.
import { z } from '../../base/schema.ts';
import { type Call, type Outcome, type Route, defineRoute } from '../api/route.ts';
import { findStanding, requirePermission } from '../identity/standing.ts';
import { callerOf } from './caller-of.ts';
import { UNTRACKED_READ, displayName, page, time } from './fields.ts';
import {
  type Workspace,
  createWorkspace,
  deleteWorkspace,
  listWorkspaces,
  notFound,
  renameWorkspace,
} from './workspaces.ts';

const workspace = z
  .strictObject({
    id: z.uuid(),
    organization_id: z.uuid(),
    display_name: z.string(),
    tenant_handle: z.string().nullable(),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'Workspace' });

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
    summary: 'List the workspaces that the key sees, oldest first',
    access: { to: 'organization', permission: 'organization:read' },
    tracking: UNTRACKED_READ,
    query: page,
    success: { status: 200, body: z.array(workspace) },
    failures: [],
    async handle(call) {
      const { permissions, userId } = callerOf(call);
      if (!permissions.has('workspaces:read') && userId === undefined) return { body: [] };
      const memberId = permissions.has('workspaces:read') ? undefined : userId;
      const found = await listWorkspaces(call.db, call.organizationId, memberId, call.query);
      return { body: found.map(toBody) };
    },
  }),
  defineRoute({
    ...all,
    method: 'POST',
    summary: 'Create a workspace',
    access: { to: 'organization', permission: 'organization:manage' },
    tracking: { operation: 'create_workspace' },
    body: named,
    success: { status: 201, body: workspace },
    failures: [409],
    handle: async ({ db, organizationId, body }) =>
      changed(await createWorkspace(db, organizationId, body.display_name)),
  }),
  defineRoute({
    ...one,
    method: 'PATCH',
    summary: 'Rename a workspace',
    access: { to: 'organization', permission: 'organization:read' },
    tracking: { operation: 'update_workspace' },
    body: named,
    success: { status: 200, body: workspace },
    failures: [404, 409],
    async handle(call) {
      const { workspace_id } = call.params;
      await requireManagement(call, workspace_id);
      return changed(
        await renameWorkspace(call.db, call.organizationId, workspace_id, call.body.display_name),
      );
    },
  }),
  defineRoute({
    ...one,
    method: 'DELETE',
    summary: 'Delete a workspace with its keys and all that is in it; the last one stays',
    access: { to: 'organization', permission: 'organization:manage' },
    tracking: { operation: 'delete_workspace' },
    success: { status: 204 },
    failures: [404, 409],
    async handle({ db, organizationId, params }) {
      await deleteWorkspace(db, organizationId, params.workspace_id);
      return {};
    },
  }),
];

/** The path names the workspace here, not a header. */
async function requireManagement(call: Call, workspaceId: string): Promise<void> {
  const standing = (await findStanding(call.db, callerOf(call), workspaceId)) ?? notFound();
  requirePermission(standing.permissions, 'WORKSPACES_MANAGE');
}

function changed(made: Workspace): Outcome {
  return { body: toBody(made), resources: [made.id] };
}

function toBody({ created_at, updated_at, ...rest }: Workspace): unknown {
  return { ...rest, created_at: created_at.toISOString(), updated_at: updated_at.toISOString() };
}
