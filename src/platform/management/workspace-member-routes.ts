// `/api/v1/workspaces/current/members`: the members of the workspace of the request and their roles.
import { z } from '../../base/schema.ts';
import { inWorkspace } from '../api/access.ts';
import { createPageQuery } from '../api/paging.ts';
import { type Route, UNTRACKED_READ, defineRoute } from '../api/route.ts';
import { nothing, page, toPage, workspaceRole, workspaceRoleId, workspaceRoleOf } from './fields.ts';
import { memberOutcome, toWorkspaceMember, workspaceMember } from './member-shapes.ts';
import {
  addWorkspaceMember,
  changeWorkspaceMember,
  listWorkspaceMembers,
  removeWorkspaceMember,
} from './workspace-members.ts';

const roles = {
  role: workspaceRole.optional().describe('Instead of role_id'),
  role_id: workspaceRoleId.nullish(),
  read_only: z.boolean().default(false).describe('The role is that of a viewer, whatever is asked for'),
};

function roleIn({ role, role_id, read_only }: z.output<z.ZodObject<typeof roles>>) {
  return read_only ? 'WORKSPACE_VIEWER' : (workspaceRoleOf(role_id ?? '') ?? role);
}

const all = { path: '/api/v1/workspaces/current/members', tag: 'Members' } as const;
const one = {
  path: '/api/v1/workspaces/current/members/{identity_id}',
  tag: 'Members',
  params: z.strictObject({ identity_id: z.guid() }),
} as const;

export const workspaceMemberRoutes: readonly Route[] = [
  defineRoute({
    ...all,
    method: 'GET',
    summary: 'List the members of the workspace, oldest first',
    access: inWorkspace('workspaces:read'),
    tracking: UNTRACKED_READ,
    query: page,
    responses: {
      200: z.strictObject({
        tenant_id: z.uuid(),
        members: z.array(workspaceMember),
        pending: z.array(z.never()),
      }),
    },
    async handle(call) {
      const { organizationId, workspaceId } = call;
      const rows = await listWorkspaceMembers(call, toPage(call.query));
      const members = rows.map((row) => toWorkspaceMember(row, organizationId, workspaceId));
      return { body: { tenant_id: workspaceId, members, pending: [] } };
    },
  }),
  defineRoute({
    ...all,
    method: 'GET',
    path: '/api/v1/workspaces/current/members/active',
    summary: 'List the members of the workspace in pages, oldest first',
    access: inWorkspace('workspaces:read'),
    tracking: UNTRACKED_READ,
    query: createPageQuery(50),
    responses: { 200: z.array(workspaceMember) },
    async handle(call) {
      const rows = await listWorkspaceMembers(call, call.query);
      return { body: rows.map((row) => toWorkspaceMember(row, call.organizationId, call.workspaceId)) };
    },
  }),
  defineRoute({
    ...all,
    method: 'POST',
    summary: 'Add a member of the organization to the workspace',
    access: inWorkspace('WORKSPACES_MANAGE'),
    tracking: { operation: 'add_member_to_workspace' },
    body: z.object({ user_id: z.uuid(), ...roles }),
    responses: { 200: workspaceMember },
    failures: [404, 409],
    async handle(call) {
      const { user_id, ...wanted } = call.body;
      const added = await addWorkspaceMember(call, { user_id, role: roleIn(wanted) ?? 'WORKSPACE_USER' });
      return memberOutcome(toWorkspaceMember(added, call.organizationId, call.workspaceId));
    },
  }),
  defineRoute({
    ...one,
    method: 'PATCH',
    summary: 'Change the role of a member of the workspace',
    access: inWorkspace('WORKSPACES_MANAGE'),
    tracking: { operation: 'update_workspace_member' },
    revokes: true,
    body: z.object(roles),
    responses: { 200: workspaceMember },
    failures: [404],
    async handle(call) {
      const changed = await changeWorkspaceMember(call, call.params.identity_id, roleIn(call.body));
      return memberOutcome(toWorkspaceMember(changed, call.organizationId, call.workspaceId));
    },
  }),
  defineRoute({
    ...one,
    method: 'DELETE',
    summary: 'Remove a member from the workspace (organization membership is kept)',
    access: inWorkspace('WORKSPACES_MANAGE'),
    tracking: { operation: 'delete_workspace_member' },
    revokes: true,
    responses: { 200: nothing },
    failures: [404],
    async handle(call) {
      await removeWorkspaceMember(call, call.params.identity_id);
      return { body: {} };
    },
  }),
];
