// Members in the shape of the public API, which knows roles by their ids and a user by two names.
import { z } from '../../base/schema.ts';
import {
  type OrganizationRole,
  organizationRoleIds,
  type WorkspaceRole,
  workspaceRoleIds,
} from '../identity/permission.ts';
import { organizationRole, time, workspaceRole } from './fields.ts';
import type { Member } from './members.ts';

const shared = z.strictObject({
  id: z.uuid(),
  organization_id: z.uuid(),
  tenant_id: z.uuid().nullable().describe('The workspace'),
  user_id: z.uuid(),
  ls_user_id: z.uuid().describe('The same as user_id'),
  email: z.string(),
  full_name: z.string().nullable(),
  display_name: z.string().nullable(),
  avatar_url: z.null(),
  linked_login_methods: z.array(z.never()),
  is_disabled: z.literal(false),
  read_only: z.boolean(),
  access_scope: z.enum(['organization', 'workspace']),
  role_id: z.uuid(),
  role_name: z.string(),
  created_at: time,
});

export const organizationMember = shared
  .extend({
    role: organizationRole,
    org_role_id: z.uuid(),
    org_role_name: z.string(),
    tenant_ids: z.array(z.uuid()).describe('The workspaces that the user is a member of'),
  })
  .meta({ id: 'OrganizationMember' });

export const workspaceMember = shared.extend({ role: workspaceRole }).meta({ id: 'WorkspaceMember' });

function toShared<R extends string>({ full_name, ...member }: Member<R>) {
  return {
    ...member,
    ls_user_id: member.user_id,
    full_name,
    display_name: full_name,
    avatar_url: null,
    linked_login_methods: [],
    is_disabled: false as const,
    role_name: member.role,
  };
}

export function toOrganizationMember(
  { workspaces, ...member }: Member<OrganizationRole> & { readonly workspaces?: readonly string[] | null },
  organizationId: string,
): z.input<typeof organizationMember> {
  const roleId = organizationRoleIds[member.role];
  return {
    ...toShared(member),
    created_at: member.created_at.toISOString(),
    organization_id: organizationId,
    tenant_id: null,
    read_only: member.role === 'ORGANIZATION_VIEWER',
    access_scope: 'organization',
    role_id: roleId,
    org_role_id: roleId,
    org_role_name: member.role,
    tenant_ids: [...(workspaces ?? [])],
  };
}

export function toWorkspaceMember(
  member: Member<WorkspaceRole>,
  organizationId: string,
  workspaceId: string,
): z.input<typeof workspaceMember> {
  return {
    ...toShared(member),
    created_at: member.created_at.toISOString(),
    organization_id: organizationId,
    tenant_id: workspaceId,
    read_only: member.role === 'WORKSPACE_VIEWER',
    access_scope: 'workspace',
    role_id: workspaceRoleIds[member.role],
  };
}

export function memberOutcome<B extends { readonly id: string; readonly user_id: string }>(body: B) {
  return { body, resources: [body.id, body.user_id] };
}
