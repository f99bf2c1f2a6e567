// `/api/v1/workspaces/current/members`: the members of the workspace of the request and their roles.
import { z } from '../../base/schema.ts';
import { inWorkspace } from '../api/access.ts';
import { type Route, UNTRACKED_READ, defineRoute } from '../api/route.ts';
import { page, workspaceRole } from './fields.ts';
import { memberFields, memberOutcome } from './member-routes.ts';
import {
  addWorkspaceMember,
  changeWorkspaceMember,
  listWorkspaceMembers,
  removeWorkspaceMember,
} from './workspace-members.ts';

const member = memberFields.extend({ role: workspaceRole }).meta({ id: 'WorkspaceMember' });

const all = { path: '/api/v1/workspaces/current/members', tag: 'Members' } as const;
const one = {
  path: '/api/v1/workspaces/current/members/{member_id}',
  tag: 'Members',
  params: z.strictObject({ member_id: z.uuid() }),
} as const;

export const workspaceMemberRoutes: readonly Route[] = [
  defineRoute({
    ...all,
    method: 'GET',
    summary: 'List the members of the workspace, oldest first',
    access: inWorkspace('workspaces:read'),
    tracking: UNTRACKED_READ,
    query: page,
    responses: { 200: z.array(member) },
    handle: async (call) => ({ body: await listWorkspaceMembers(call, call.query) }),
  }),
  defineRoute({
    ...all,
    method: 'POST',
    summary: 'Add a member of the organization to the workspace',
    access: inWorkspace('WORKSPACES_MANAGE'),
    tracking: { operation: 'add_member_to_workspace' },
    body: z.strictObject({ user_id: z.uuid(), role: workspaceRole }),
    responses: { 201: member },
    failures: [404, 409],
    handle: async (call) => memberOutcome(await addWorkspaceMember(call, call.body)),
  }),
  defineRoute({
    ...one,
    method: 'PATCH',
    summary: 'Change the role of a member of the workspace',
    access: inWorkspace('WORKSPACES_MANAGE'),
    tracking: { operation: 'update_workspace_member' },
    body: z.strictObject({ role: workspaceRole }),
    responses: { 200: member },
    failures: [404],
    handle: async (call) =>
      memberOutcome(await changeWorkspaceMember(call, call.params.member_id, call.body.role)),
  }),
  defineRoute({
    ...one,
    method: 'DELETE',
    summary: 'Remove a member from the workspace (organization membership is kept)',
    access: inWorkspace('WORKSPACES_MANAGE'),
    tracking: { operation: 'delete_workspace_member' },
    responses: { 204: null },
    failures: [404],
    handle: (call) => removeWorkspaceMember(call, call.params.member_id),
  }),
];
