// Every route for every role: a route serves exactly those whose role has its permission. What the permissions are is
// read from the routes; for those whose roles are promised by name there is a table beside them.
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
import { createExample, type EveryRoute, openEveryRoute, send } from './scene.ts';

let scene: EveryRoute;
let askers: readonly Asker[];
beforeAll(async () => {
  scene = await openEveryRoute();
  askers = await createAskers();
});
afterAll(() => scene[Symbol.asyncDispose]());

/** Somebody with one role, asking in the workspace A1. */
type Asker = {
  readonly who: string;
  readonly organizationRole: OrganizationRole | undefined;
  readonly workspaceRole: WorkspaceRole | undefined;
  readonly isUser: boolean;
  readonly as: Ask;
};

const inOrganizations = Object.keys(organizationRoles) as readonly OrganizationRole[];
const inWorkspaces = Object.keys(workspaceRoles) as readonly WorkspaceRole[];

async function createAskers(): Promise<readonly Asker[]> {
  const { api, a1 } = scene;
  const { organizationId, workspaceId: tenant } = a1;
  const made: Asker[] = [];
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

function mayBe(
  { organizationRole, workspaceRole, isUser }: Asker,
  { route, path, title }: Operation,
): boolean {
  const { access } = route;
  if (access.to === 'anyone') return true;
  if (access.to === 'sandbox') return false;
  const inOrganization: readonly Permission[] = organizationRole ? organizationRoles[organizationRole] : [];
  const inWorkspace: readonly Permission[] = workspaceRole ? workspaceRoles[workspaceRole] : [];
  // A service key speaks for no user.
  if (path.startsWith('/api/v1/api-key/current') && !isUser) return false;
  // The path names the workspace there, and not a header.
  if (title === RENAMING)
    return inOrganization.includes('organization:read') && inOrganization.includes('WORKSPACES_MANAGE');
  if (inOrganization.includes(access.permission)) return true;
  return access.to === 'workspace' && inWorkspace.includes(access.permission);
}

describe('every route', () => {
  it('serves exactly those whose role has its permission, and nobody else changes anything', async () => {
    const { api, a1, operations, digest } = scene;
    const found: unknown[] = [];
    for (const operation of operations.filter(({ route }) => route.access.to !== 'sandbox')) {
      const example = await createExample(api, operation, a1);
      const before = await digest.take();
      for (const { who, as } of askers.filter((asker) => !mayBe(asker, operation))) {
        const { status, text } = await send(api, example, as);
        // A workspace that is not seen is not there.
        const isUnseen = operation.title === RENAMING && status === 404;
        if (status !== 403 && !isUnseen) found.push([operation.title, who, status, text]);
      }
      expect(await digest.take()).toEqual(before);
      for (const asker of askers.filter((one) => mayBe(one, operation))) {
        const { status, text } = await send(api, await ofTheirs(operation, asker), asker.as);
        if (status !== operation.route.success.status) found.push([operation.title, asker.who, status, text]);
      }
    }
    expect(found).toEqual([]);
  });

  /** A token of a user's own is that user's. */
  async function ofTheirs(operation: Operation, asker: Asker): ReturnType<typeof createExample> {
    const { api, a1 } = scene;
    if (!operation.path.startsWith('/api/v1/api-key/current') || !asker.isUser)
      return createExample(api, operation, a1);
    const { body } = await api.ask('POST', '/api/v1/api-key/current', { ...asker.as, body: {} });
    const admin = { ...a1.admin, userId: String(body.user_id) };
    return createExample(api, operation, { ...a1, admin });
  }

  it('asks for a permission that some role has, and some has not', () => {
    const all: readonly (readonly Permission[])[] = [
      ...Object.values(organizationRoles),
      ...Object.values(workspaceRoles),
    ];
    for (const { route, title } of scene.operations) {
      if (!('permission' in route.access)) continue;
      const { permission } = route.access;
      const having = all.filter((held) => held.includes(permission)).length;
      expect([title, having > 0 && having < all.length]).toEqual([title, true]);
    }
  });
});

describe('as it is promised by name', () => {
  const managers = ['ORGANIZATION_ADMIN', 'ORGANIZATION_OPERATOR'];
  const workers = [...managers, 'WORKSPACE_ADMIN', 'WORKSPACE_USER'];
  const readers = [...workers, 'WORKSPACE_VIEWER'];
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
    ['POST /v2/listeners', workers],
    ['GET /v2/listeners/{listener_id}', readers],
    ['PATCH /v2/listeners/{listener_id}', workers],
    ['PUT /v2/listeners/{listener_id}', workers],
    ['DELETE /v2/listeners/{listener_id}', workers],
    ['POST /v1/sandboxes/{sandbox}/tokens', workers],
    ['GET /v1/sandboxes/{sandbox}/records', readers],
  ];
  it.each(rows)('%s serves %j, and nobody else', async (title, roles) => {
    const { api, a1, operations } = scene;
    const operation = operations.find((one) => one.title === title);
    expect(operation).toBeDefined();
    if (operation === undefined) return;
    const served = new Set<string>();
    for (const { as, organizationRole, workspaceRole } of askers) {
      const { status } = await send(api, await createExample(api, operation, a1), as);
      const role = workspaceRole ?? organizationRole ?? '';
      if (status < 300) served.add(role);
      else expect([role, status]).toEqual([role, 403]);
    }
    expect([...served].toSorted()).toEqual(roles.toSorted());
  });
});
