// `/api/v1/orgs/current/members`: who belongs to the organization, and as what.
import { z } from '../../base/schema.ts';
import { type Outcome, type Route, defineRoute } from '../api/route.ts';
import { callerOf } from './caller-of.ts';
import { UNTRACKED_READ, displayName, email, organizationRole, page, time } from './fields.ts';
import { type Member, addMember, changeMember, listMembers, removeMember } from './members.ts';

const member = z
  .strictObject({
    id: z.uuid(),
    user_id: z.uuid(),
    email: z.string(),
    full_name: z.string().nullable(),
    role: organizationRole,
    created_at: time,
  })
  .meta({ id: 'OrganizationMember' });

const fullName = displayName.nullable();

const all = { path: '/api/v1/orgs/current/members', tag: 'Members' } as const;
const one = {
  path: '/api/v1/orgs/current/members/{member_id}',
  tag: 'Members',
  params: z.strictObject({ member_id: z.uuid() }),
} as const;

export const memberRoutes: readonly Route[] = [
  defineRoute({
    ...all,
    method: 'GET',
    summary: 'List the members of the organization, oldest first',
    access: { to: 'organization', permission: 'organization:read' },
    tracking: UNTRACKED_READ,
    query: page,
    success: { status: 200, body: z.array(member) },
    failures: [],
    async handle({ db, organizationId, query }) {
      const found = await listMembers(db, organizationId, query);
      return { body: found.map(toBody) };
    },
  }),
  defineRoute({
    ...all,
    method: 'POST',
    summary: 'Add a user to the organization, at once',
    access: { to: 'organization', permission: 'organization:manage' },
    tracking: { operation: 'invite_user_to_org' },
    body: z.strictObject({ email, role: organizationRole, full_name: fullName.optional() }),
    success: { status: 201, body: member },
    failures: [409],
    async handle(call) {
      const { email: address, role, full_name = null } = call.body;
      const wanted = { email: address, role, fullName: full_name };
      return changed(await addMember(call.db, call.organizationId, wanted, callerOf(call).permissions));
    },
  }),
  defineRoute({
    ...one,
    method: 'PATCH',
    summary: 'Change the role or the name of a member; the last administrator stays one',
    access: { to: 'organization', permission: 'organization:manage' },
    tracking: { operation: 'update_org_member' },
    body: z.strictObject({ role: organizationRole.optional(), full_name: fullName.optional() }),
    success: { status: 200, body: member },
    failures: [404, 409],
    async handle(call) {
      const { role, full_name } = call.body;
      const { permissions } = callerOf(call);
      const { member_id } = call.params;
      const change = { role, fullName: full_name };
      return changed(await changeMember(call.db, call.organizationId, member_id, change, permissions));
    },
  }),
  defineRoute({
    ...one,
    method: 'DELETE',
    summary:
      'Remove a member, with his personal tokens and his places in workspaces; the last administrator stays',
    access: { to: 'organization', permission: 'organization:manage' },
    tracking: { operation: 'delete_org_member' },
    success: { status: 204 },
    failures: [404, 409],
    async handle(call) {
      await removeMember(call.db, call.organizationId, call.params.member_id, callerOf(call).permissions);
      return {};
    },
  }),
];

function changed(made: Member): Outcome {
  return { body: toBody(made), resources: [made.id, made.user_id] };
}

function toBody({ created_at, ...rest }: Member): unknown {
  return { ...rest, created_at: created_at.toISOString() };
}
