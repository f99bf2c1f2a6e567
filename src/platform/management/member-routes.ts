// `/api/v1/orgs/current/members`: the members of the organization and their roles. Users are added without an invitation, so
// that nobody is ever pending.
import { z } from '../../base/schema.ts';
import { inOrganization } from '../api/access.ts';
import { createPageQuery } from '../api/paging.ts';
import { type Route, UNTRACKED_READ, defineRoute } from '../api/route.ts';
import {
  displayName,
  email,
  nothing,
  organizationRole,
  organizationRoleId,
  organizationRoleOf,
  page,
  toPage,
} from './fields.ts';
import { memberOutcome, organizationMember, toOrganizationMember } from './member-shapes.ts';
import { addMember, changeMember, listMembers, removeMember } from './members.ts';

const fullName = displayName.nullable();
const roles = {
  role: organizationRole.optional().describe('Instead of role_id'),
  role_id: organizationRoleId.nullish(),
};
const newMember = z.object({
  ...roles,
  email,
  full_name: fullName.optional(),
  read_only: z.boolean().default(false).describe('The role is that of a viewer, whatever is asked for'),
});

const all = { path: '/api/v1/orgs/current/members', tag: 'Members' } as const;
const one = {
  path: '/api/v1/orgs/current/members/{identity_id}',
  tag: 'Members',
  params: z.strictObject({ identity_id: z.guid() }),
} as const;

export const memberRoutes: readonly Route[] = [
  defineRoute({
    ...all,
    method: 'GET',
    summary: 'List the members of the organization, oldest first',
    access: inOrganization('organization:read'),
    tracking: UNTRACKED_READ,
    query: page,
    responses: {
      200: z.strictObject({
        organization_id: z.uuid(),
        members: z.array(organizationMember),
        pending: z.array(z.never()),
      }),
    },
    async handle({ db, organizationId, query }) {
      const rows = await listMembers(db, organizationId, toPage(query));
      const members = rows.map((row) => toOrganizationMember(row, organizationId));
      return { body: { organization_id: organizationId, members, pending: [] } };
    },
  }),
  defineRoute({
    ...all,
    method: 'GET',
    path: '/api/v1/orgs/current/members/active',
    summary: 'List the members of the organization in pages, newest first',
    access: inOrganization('organization:read'),
    tracking: UNTRACKED_READ,
    query: createPageQuery(50).extend({
      emails: z.array(z.string().max(254)).max(100).optional(),
      user_ids: z.array(z.guid()).max(100).optional(),
      sort_by_desc: z.enum(['true', 'false']).default('true'),
    }),
    responses: { 200: z.array(organizationMember) },
    async handle({ db, organizationId, query: { emails, user_ids, sort_by_desc, ...wanted } }) {
      const filter = { emails, userIds: user_ids, isNewestFirst: sort_by_desc === 'true' };
      const rows = await listMembers(db, organizationId, wanted, filter);
      return { body: rows.map((row) => toOrganizationMember(row, organizationId)) };
    },
  }),
  defineRoute({
    ...all,
    method: 'POST',
    summary: 'Add a user to the organization, without an invitation',
    access: inOrganization('organization:manage'),
    tracking: { operation: 'invite_user_to_org' },
    body: newMember,
    responses: { 200: organizationMember },
    failures: [409],
    async handle(call) {
      const { role = 'ORGANIZATION_USER', role_id, read_only, ...rest } = call.body;
      const named = organizationRoleOf(role_id ?? '') ?? role;
      const added = await addMember(call, { ...rest, role: read_only ? 'ORGANIZATION_VIEWER' : named });
      return memberOutcome(toOrganizationMember(added, call.organizationId));
    },
  }),
  defineRoute({
    ...one,
    method: 'PATCH',
    summary: 'Change the role or the name of a member; the last administrator cannot be demoted',
    access: inOrganization('organization:manage'),
    tracking: { operation: 'update_org_member' },
    revokes: true,
    body: z.object({ ...roles, full_name: fullName.optional() }),
    responses: { 200: organizationMember },
    failures: [404, 409],
    async handle(call) {
      const { role_id, role, full_name } = call.body;
      const change = { role: organizationRoleOf(role_id ?? '') ?? role, full_name };
      const changed = await changeMember(call, call.params.identity_id, change);
      return memberOutcome(toOrganizationMember(changed, call.organizationId));
    },
  }),
  defineRoute({
    ...one,
    method: 'DELETE',
    summary:
      'Remove a member with their personal tokens and workspace memberships; the last administrator cannot be removed',
    access: inOrganization('organization:manage'),
    tracking: { operation: 'delete_org_member' },
    revokes: true,
    responses: { 200: nothing },
    failures: [404, 409],
    async handle(call) {
      await removeMember(call, call.params.identity_id);
      return { body: {} };
    },
  }),
];
