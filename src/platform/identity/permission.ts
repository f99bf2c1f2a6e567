// What there is to be allowed, and which role allows it. Data alone.

export type Permission =
  | 'organization:manage'
  | 'organization:read'
  | 'WORKSPACES_MANAGE'
  | 'workspaces:read'
  | 'deployments:create'
  | 'deployments:read'
  | 'deployments:update'
  | 'deployments:delete'
  | 'sandboxes:manage'
  | 'sandboxes:read';

export type OrganizationRole =
  | 'ORGANIZATION_ADMIN'
  | 'ORGANIZATION_OPERATOR'
  | 'ORGANIZATION_USER'
  | 'ORGANIZATION_VIEWER';
export type WorkspaceRole = 'WORKSPACE_ADMIN' | 'WORKSPACE_USER' | 'WORKSPACE_VIEWER';

const everythingInAWorkspace: readonly Permission[] = [
  'WORKSPACES_MANAGE',
  'workspaces:read',
  'deployments:create',
  'deployments:read',
  'deployments:update',
  'deployments:delete',
  'sandboxes:manage',
  'sandboxes:read',
];

/** Roles in an organization; an administrator and an operator are administrators of each of its workspaces too. */
export const organizationRoles: Readonly<Record<OrganizationRole, readonly Permission[]>> = {
  ORGANIZATION_ADMIN: ['organization:manage', 'organization:read', ...everythingInAWorkspace],
  ORGANIZATION_OPERATOR: ['organization:manage', 'organization:read', ...everythingInAWorkspace],
  ORGANIZATION_USER: ['organization:read'],
  ORGANIZATION_VIEWER: ['organization:read'],
};

/** Roles in one workspace; none of them is worth anything in the organization. */
export const workspaceRoles: Readonly<Record<WorkspaceRole, readonly Permission[]>> = {
  WORKSPACE_ADMIN: everythingInAWorkspace,
  WORKSPACE_USER: [
    'workspaces:read',
    'deployments:create',
    'deployments:read',
    'deployments:update',
    'deployments:delete',
    'sandboxes:manage',
    'sandboxes:read',
  ],
  WORKSPACE_VIEWER: ['workspaces:read', 'deployments:read', 'sandboxes:read'],
};

/** None for a role that is not known, or null. */
export function permissionsOf(
  place: 'organization' | 'workspace',
  role: string | null,
): ReadonlySet<Permission> {
  const roles: Readonly<Record<string, readonly Permission[]>> =
    place === 'organization' ? organizationRoles : workspaceRoles;
  return new Set(role !== null && Object.hasOwn(roles, role) ? roles[role] : []);
}
