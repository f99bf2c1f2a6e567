// `/api/v1/workspaces/current/members`: who works in the workspace of the request, and as what.
import { z } from '../../base/schema.ts';
import { type Call, type Outcome, type Route, defineRoute } from '../api/route.ts';
import { standingIn } from '../identity/standing.ts';
import { callerOf } from './caller-of.ts';
import { UNTRACKED_READ, page, time, workspaceRole } from './fields.ts';
import type { Held, Member } from './members.ts';
import {
  addWorkspaceMember,
  changeWorkspaceMember,
  listWorkspaceMembers,
  removeWorkspaceMember,
} from './workspace-members.ts';

const member = z
  .strictObject({
    id: z.uuid(),
    user_id: z.uuid(),
    email: z.string(),
    full_name: z.string().nullable(),
    role: workspaceRole,
    created_at: time,
  })
  .meta({ id: 'WorkspaceMember' });

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
    access: { to: 'workspace', permission: 'workspaces:read' },
    tracking: UNTRACKED_READ,
    query: page,
    success: { status: 200, body: z.array(member) },
    failures: [],
    async handle(call) {
      const found = await listWorkspaceMembers(call.db, call, call.query);
      return { body: found.map(toBody) };
    },
  }),
  defineRoute({
    ...all,
    method: 'POST',
    summary: 'Add a member of the organization to the workspace',
    access: { to: 'workspace', permission: 'WORKSPACES_MANAGE' },
    tracking: { operation: 'add_member_to_workspace' },
    body: z.strictObject({ user_id: z.uuid(), role: workspaceRole }),
    success: { status: 201, body: member },
    failures: [404, 409],
    async handle(call) {
      const wanted = { userId: call.body.user_id, role: call.body.role };
      return changed(await addWorkspaceMember(call.db, call, wanted, await heldBy(call)));
    },
  }),
  defineRoute({
    ...one,
    method: 'PATCH',
    summary: 'Change the role of a member of the workspace',
    access: { to: 'workspace', permission: 'WORKSPACES_MANAGE' },
    tracking: { operation: 'update_workspace_member' },
    body: z.strictObject({ role: workspaceRole }),
    success: { status: 200, body: member },
    failures: [404],
    async handle(call) {
      const { member_id } = call.params;
      return changed(
        await changeWorkspaceMember(call.db, call, member_id, call.body.role, await heldBy(call)),
      );
    },
  }),
  defineRoute({
    ...one,
    method: 'DELETE',
    summary: 'Remove a member from the workspace; he stays in the organization',
    access: { to: 'workspace', permission: 'WORKSPACES_MANAGE' },
    tracking: { operation: 'delete_workspace_member' },
    success: { status: 204 },
    failures: [404],
    async handle(call) {
      await removeWorkspaceMember(call.db, call, call.params.member_id, await heldBy(call));
      return {};
    },
  }),
];

/** What the caller may in the workspace, in this transaction. */
async function heldBy(call: Call): Promise<Held> {
  const standing = await standingIn(call.db, callerOf(call), call.workspaceId, 'WORKSPACES_MANAGE');
  return standing.permissions;
}

function changed(made: Member): Outcome {
  return { body: toBody(made), resources: [made.id, made.user_id] };
}

function toBody({ created_at, ...rest }: Member): unknown {
  return { ...rest, created_at: created_at.toISOString() };
}
