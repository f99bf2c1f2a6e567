// Every route with every role: a route serves exactly the roles with its permission. The permissions are read from the
// routes; a table names the roles of the most important routes explicitly.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  organizationRoles,
  type OrganizationRole,
  type Permission,
  workspaceRoles,
  type WorkspaceRole,
} from '../../../src/platform/identity/permission.ts';
import type { Ask } from '../../support/platform-api.ts';
import type { Operation } from './document.ts';
import { createExample, type EveryRoute, openEveryRoute, send, successOf } from './scene.ts';

let scene: EveryRoute;
let callers: readonly RoleCaller[];
beforeAll(async () => {
  scene = await openEveryRoute();
  callers = await createCallers();
});
afterAll(() => scene[Symbol.asyncDispose]());

/** A caller with one role, in the workspace A1. */
type RoleCaller = {
  readonly who: string;
  readonly organizationRole: OrganizationRole | undefined;
  readonly workspaceRole: WorkspaceRole | undefined;
  readonly isUser: boolean;
  readonly as: Ask;
};

const inOrganizations = Object.keys(organizationRoles) as readonly OrganizationRole[];
const inWorkspaces = Object.keys(workspaceRoles) as readonly WorkspaceRole[];

async function createCallers(): Promise<readonly RoleCaller[]> {
  const { api, a1 } = scene;
  const { organizationId, workspaceId: tenant } = a1;
  const made: RoleCaller[] = [];
  for (const role of inOrganizations) {
    const one = { organizationRole: role, workspaceRole: undefined };
    const member = await api.addMemberKey(organizationId, role);
    made.push({ who: `a member, ${role}`, ...one, isUser: true, as: { key: member, tenant } });
    const key = await api.addServiceKey(organizationId, role);
    made.push({ who: `a key of the organization, ${role}`, ...one, isUser: false, as: { key, tenant } });
  }
  for (const role of inWorkspaces) {
    const weak = 'ORGANIZATION_VIEWER';
    const member = await api.addMemberKey(organizationId, weak, { id: tenant, role });
    const ofUser = { organizationRole: weak, workspaceRole: role, isUser: true } as const;
    made.push({ who: `a member, ${weak} and ${role}`, ...ofUser, as: { key: member, tenant } });
    const key = await api.addServiceKey(organizationId, role, tenant);
    const ofKey = { organizationRole: undefined, workspaceRole: role, isUser: false };
    made.push({ who: `a key of the workspace, ${role}`, ...ofKey, as: { key } });
  }
  return made;
}

const RENAMING = 'PATCH /api/v1/workspaces/{workspace_id}';

function isAllowed(
  { organizationRole, workspaceRole, isUser }: RoleCaller,
  { route, path, title }: Operation,
): boolean {
  const { access } = route;
  if (access.to === 'anyone') return true;
  if (access.to === 'sandbox') return false;
  const inOrganization: readonly Permission[] = organizationRole ? organizationRoles[organizationRole] : [];
  const inWorkspace: readonly Permission[] = workspaceRole ? workspaceRoles[workspaceRole] : [];
  // A service key belongs to no user.
  if (path.startsWith('/api/v1/api-key/current') && !isUser) return false;
  // There the path names the workspace, not a header.
  if (title === RENAMING)
    return inOrganization.includes('organization:read') && inOrganization.includes('WORKSPACES_MANAGE');
  if (access.permission === undefined) return false;
  if (inOrganization.includes(access.permission)) return true;
  return access.to === 'workspace' && inWorkspace.includes(access.permission);
}

describe('every route', () => {
  it('serves exactly the roles with its permission, and other callers change nothing', async () => {
    const { api, a1, operations, digest } = scene;
    const found: unknown[] = [];
    for (const operation of operations.filter(({ route }) => route.access.to !== 'sandbox')) {
      const example = await createExample(api, operation, a1);
      const before = await digest.take();
      for (const { who, as } of callers.filter((caller) => !isAllowed(caller, operation))) {
        const { status, text } = await send(api, example, as);
        // A workspace that the caller cannot see is not found.
        const isUnseen = operation.title === RENAMING && status === 404;
        if (status !== 403 && !isUnseen) found.push([operation.title, who, status, text]);
      }
      expect(await digest.take()).toEqual(before);
      for (const caller of callers.filter((one) => isAllowed(one, operation))) {
        const { status, text } = await send(api, await createExampleFor(operation, caller), caller.as);
        if (status !== successOf(operation)) found.push([operation.title, caller.who, status, text]);
      }
    }
    expect(found).toEqual([]);
  });

  /** A personal token in the path belongs to the caller. */
  async function createExampleFor(
    operation: Operation,
    caller: RoleCaller,
  ): ReturnType<typeof createExample> {
    const { api, a1 } = scene;
    if (!operation.path.startsWith('/api/v1/api-key/current') || !caller.isUser)
      return createExample(api, operation, a1);
    const { body } = await api.ask('POST', '/api/v1/api-key/current', { ...caller.as, body: {} });
    const admin = { ...a1.admin, userId: String(body.user_id) };
    return createExample(api, operation, { ...a1, admin });
  }

  it('requires a permission that some roles have and others lack', () => {
    const all: readonly (readonly Permission[])[] = [
      ...Object.values(organizationRoles),
      ...Object.values(workspaceRoles),
    ];
    for (const { route, title } of scene.operations) {
      const { permission } = route.access;
      if (permission === undefined) continue;
      const count = all.filter((permissions) => permissions.includes(permission)).length;
      expect([title, count > 0 && count < all.length]).toEqual([title, true]);
    }
  });
});

describe('by an explicit list of roles', () => {
  const managers = ['ORGANIZATION_ADMIN', 'ORGANIZATION_OPERATOR'];
  const writers = [...managers, 'WORKSPACE_ADMIN', 'WORKSPACE_USER'];
  const readers = [...writers, 'WORKSPACE_VIEWER'];
  const rows: readonly (readonly [string, readonly string[]])[] = [
    ['GET /api/v1/audit-logs', managers],
    ['POST /api/v1/workspaces', managers],
    ['DELETE /api/v1/workspaces/{workspace_id}', managers],
    ['PATCH /api/v1/orgs/current', managers],
    ['POST /api/v1/orgs/current/members', managers],
    ['DELETE /api/v1/orgs/current/members/{member_id}', managers],
    ['POST /api/v1/orgs/current/service-keys', managers],
    ['GET /api/v1/orgs/current/service-keys', managers],
    ['POST /api/v1/workspaces/current/members', [...managers, 'WORKSPACE_ADMIN']],
    ['POST /api/v1/api-key', [...managers, 'WORKSPACE_ADMIN']],
    ['GET /v2/listeners', readers],
    ['POST /v2/listeners', writers],
    ['GET /v2/listeners/{listener_id}', readers],
    ['PATCH /v2/listeners/{listener_id}', writers],
    ['PUT /v2/listeners/{listener_id}', writers],
    ['DELETE /v2/listeners/{listener_id}', writers],
    ['POST /v1/sandboxes/{sandbox}/tokens', writers],
    ['GET /v1/sandboxes/{sandbox}/records', readers],
  ];
  it.each(rows)('%s serves %j only', async (title, roles) => {
    const { api, a1, operations } = scene;
    const operation = operations.find((one) => one.title === title);
    expect(operation).toBeDefined();
    if (operation === undefined) return;
    const served = new Set<string>();
    for (const { as, organizationRole, workspaceRole } of callers) {
      const { status } = await send(api, await createExample(api, operation, a1), as);
      const role = workspaceRole ?? organizationRole ?? '';
      if (status < 300) served.add(role);
      else expect([role, status]).toEqual([role, 403]);
    }
    expect([...served].toSorted()).toEqual(roles.toSorted());
  });
});
