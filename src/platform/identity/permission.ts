// All permissions, and the permissions of each role.

const inWorkspace = [
  'workspaces:read',
  'deployments:create',
  'deployments:read',
  'deployments:update',
  'deployments:delete',
  'sandboxes:manage',
  'sandboxes:read',
  'runs:create',
  'runs:read',
  'projects:delete',
  'exports:create',
  'exports:read',
] as const;
const administerWorkspace = ['WORKSPACES_MANAGE', ...inWorkspace] as const;
const operateOrganization = ['organization:manage', 'organization:read', ...administerWorkspace] as const;
/** Only those who have it can give it to others, or act for them. */
const administerOrganization = ['organization:grant_admin', ...operateOrganization] as const;

export type Permission = (typeof administerOrganization)[number];
type Roles<R extends string> = Readonly<Record<R, readonly Permission[]>>;

/** Roles in an organization. Administrators and operators manage it, and are administrators of each of its workspaces. */
export const organizationRoles = {
  ORGANIZATION_ADMIN: administerOrganization,
  ORGANIZATION_OPERATOR: operateOrganization,
  ORGANIZATION_USER: ['organization:read'],
  ORGANIZATION_VIEWER: ['organization:read'],
} as const satisfies Roles<string>;
export type OrganizationRole = keyof typeof organizationRoles;

/** Roles in one workspace. None of them gives a permission in the organization. */
export const workspaceRoles = {
  WORKSPACE_ADMIN: administerWorkspace,
  WORKSPACE_USER: inWorkspace,
  WORKSPACE_VIEWER: ['workspaces:read', 'deployments:read', 'sandboxes:read', 'runs:read', 'exports:read'],
} as const satisfies Roles<string>;
export type WorkspaceRole = keyof typeof workspaceRoles;

const sets = { organization: toSets(organizationRoles), workspace: toSets(workspaceRoles) };
const NONE: ReadonlySet<Permission> = new Set();

function toSets(roles: Roles<string>): ReadonlyMap<string, ReadonlySet<Permission>> {
  return new Map(Object.entries(roles).map(([role, permissions]) => [role, new Set(permissions)]));
}
/** The ids by which the public API names the roles; they are the same in every installation. */
export const organizationRoleIds = {
  ORGANIZATION_ADMIN: '7d3e2c10-5a61-4d0e-9f53-0b6a4e1c0a01',
  ORGANIZATION_OPERATOR: '7d3e2c10-5a61-4d0e-9f53-0b6a4e1c0a02',
  ORGANIZATION_USER: '7d3e2c10-5a61-4d0e-9f53-0b6a4e1c0a03',
  ORGANIZATION_VIEWER: '7d3e2c10-5a61-4d0e-9f53-0b6a4e1c0a04',
} as const satisfies Readonly<Record<OrganizationRole, string>>;
export const workspaceRoleIds = {
  WORKSPACE_ADMIN: '7d3e2c10-5a61-4d0e-9f53-0b6a4e1c0b01',
  WORKSPACE_USER: '7d3e2c10-5a61-4d0e-9f53-0b6a4e1c0b02',
  WORKSPACE_VIEWER: '7d3e2c10-5a61-4d0e-9f53-0b6a4e1c0b03',
} as const satisfies Readonly<Record<WorkspaceRole, string>>;

/** Empty for an unknown role and for null. */
export function permissionsOf(
  level: 'organization' | 'workspace',
  role: string | null,
): ReadonlySet<Permission> {
  return (role === null ? undefined : sets[level].get(role)) ?? NONE;
}
