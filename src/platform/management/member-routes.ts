// `/api/v1/orgs/current/members`: the members of the organization and their roles.
import { z } from '../../base/schema.ts';
import { inOrganization } from '../api/access.ts';
import { type Route, UNTRACKED_READ, defineRoute } from '../api/route.ts';
import { displayName, email, organizationRole, page, time } from './fields.ts';
import { type Member, addMember, changeMember, listMembers, removeMember } from './members.ts';

/** The fields of a member of an organization or of a workspace, besides the role. */
export const memberFields = z.strictObject({
  id: z.uuid(),
  user_id: z.uuid(),
  email: z.string(),
  full_name: z.string().nullable(),
  created_at: time,
});

const member = memberFields.extend({ role: organizationRole }).meta({ id: 'OrganizationMember' });

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
    access: inOrganization('organization:read'),
    tracking: UNTRACKED_READ,
    query: page,
    responses: { 200: z.array(member) },
    handle: async ({ db, organizationId, query }) => ({ body: await listMembers(db, organizationId, query) }),
  }),
  defineRoute({
    ...all,
    method: 'POST',
    summary: 'Add a user to the organization, without an invitation',
    access: inOrganization('organization:manage'),
    tracking: { operation: 'invite_user_to_org' },
    body: z.strictObject({ email, role: organizationRole, full_name: fullName.optional() }),
    responses: { 201: member },
    failures: [409],
    handle: async (call) => memberOutcome(await addMember(call, call.body)),
  }),
  defineRoute({
    ...one,
    method: 'PATCH',
    summary: 'Change the role or the name of a member; the last administrator cannot be demoted',
    access: inOrganization('organization:manage'),
    tracking: { operation: 'update_org_member' },
    body: z.strictObject({ role: organizationRole.optional(), full_name: fullName.optional() }),
    responses: { 200: member },
    failures: [404, 409],
    handle: async (call) => memberOutcome(await changeMember(call, call.params.member_id, call.body)),
  }),
  defineRoute({
    ...one,
    method: 'DELETE',
    summary:
      'Remove a member with their personal tokens and workspace memberships; the last administrator cannot be removed',
    access: inOrganization('organization:manage'),
    tracking: { operation: 'delete_org_member' },
    responses: { 204: null },
    failures: [404, 409],
    handle: (call) => removeMember(call, call.params.member_id),
  }),
];

export function memberOutcome<R extends string>(member: Member<R>) {
  return { body: member, resources: [member.id, member.user_id] };
}
