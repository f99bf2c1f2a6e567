import { describe, expect, it } from 'vitest';
import {
  type Permission,
  organizationRoles,
  permissionsOf,
  workspaceRoles,
} from '../../../src/platform/identity/permission.ts';

describe('the permissions of a role', () => {
  it('grow from viewer to user to administrator of a workspace', () => {
    const [viewer, user, admin] = (['WORKSPACE_VIEWER', 'WORKSPACE_USER', 'WORKSPACE_ADMIN'] as const).map(
      (role) => permissionsOf('workspace', role),
    );
    expect(viewer?.isSubsetOf(user!) && user?.isSubsetOf(admin!)).toBe(true);
    expect([...admin!.difference(user!)]).toEqual(['WORKSPACES_MANAGE']);
  });

  it('of administrators and operators of an organization include all those in its workspaces', () => {
    for (const role of ['ORGANIZATION_ADMIN', 'ORGANIZATION_OPERATOR'] as const)
      expect(
        new Set<Permission>(workspaceRoles.WORKSPACE_ADMIN).isSubsetOf(permissionsOf('organization', role)),
      ).toBe(true);
    const [admin, operator] = [organizationRoles.ORGANIZATION_ADMIN, organizationRoles.ORGANIZATION_OPERATOR];
    expect([...new Set<Permission>(admin).difference(new Set<Permission>(operator))]).toEqual([
      'organization:grant_admin',
    ]);
    expect(operator).toContain('organization:manage');
    expect(organizationRoles.ORGANIZATION_USER).toEqual(['organization:read']);
  });

  it.each([null, '', 'ORGANIZATION_EMPEROR', 'toString', '__proto__', 'WORKSPACE_ADMIN'])(
    'are none in an organization for %j',
    (role) => expect(permissionsOf('organization', role).size).toBe(0),
  );

  it('are none in a workspace for a role of the organization', () => {
    expect(permissionsOf('workspace', 'ORGANIZATION_ADMIN').size).toBe(0);
  });
});
