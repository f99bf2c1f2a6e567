// Every route with every role: a route serves exactly the roles with its permission. The permissions are read from the
// routes; a table names the roles of the most important routes explicitly.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  organizationRoles,
  type Permission,
  workspaceRoles,
} from '../../../src/platform/identity/permission.ts';
import { createRoleCallers, findRoleDefects, type RoleCaller } from './role-callers.ts';
import { createExample, type EveryRoute, openEveryRoute, send } from './scene.ts';
import { everyNth, isFullRun } from '../../support/run-size.ts';

let scene: EveryRoute;
let callers: readonly RoleCaller[];
beforeAll(async () => {
  scene = await openEveryRoute();
  callers = await createRoleCallers(scene);
});
afterAll(() => scene[Symbol.asyncDispose]());

describe('every route', () => {
  it('serves exactly the roles with its permission, and other callers change nothing', async () => {
    const found: unknown[] = [];
    const operations = scene.operations.filter(({ route }) => route.access.to !== 'sandbox');
    for (const operation of operations.filter((_, at) => isFullRun || at % 3 === 0))
      found.push(...(await findRoleDefects(scene, callers, operation)));
    expect(found).toEqual([]);
  });

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
    ['PATCH /api/v1/orgs/current/info', managers],
    ['POST /api/v1/orgs/current/members', managers],
    ['DELETE /api/v1/orgs/current/members/{identity_id}', managers],
    ['POST /api/v1/orgs/current/service-keys', managers],
    ['GET /api/v1/orgs/current/service-keys', managers],
    ['POST /api/v1/workspaces/current/members', [...managers, 'WORKSPACE_ADMIN']],
    ['POST /api/v1/api-key', [...managers, 'WORKSPACE_ADMIN']],
    ['POST /api/v1/workspaces/current/secrets', [...managers, 'WORKSPACE_ADMIN']],
    ['GET /api/v1/workspaces/current/secrets', readers],
    ['GET /v2/listeners', readers],
    ['POST /v2/listeners', writers],
    ['GET /v2/listeners/{listener_id}', readers],
    ['PATCH /v2/listeners/{listener_id}', writers],
    ['PUT /v2/listeners/{listener_id}', writers],
    ['DELETE /v2/listeners/{listener_id}', writers],
    ['POST /v1/sandboxes/{sandbox}/tokens', writers],
    ['GET /v1/sandboxes/{sandbox}/records', readers],
    ['GET /v1/proxy-profiles', readers],
    ['POST /v1/proxy-profiles', writers],
    ['PATCH /v1/proxy-profiles/{profile_id}', writers],
    ['DELETE /v1/proxy-profiles/{profile_id}', writers],
  ];
  everyNth(4, rows, (some, options) =>
    it.each(some)('%s serves %j only', options, async (title, roles) => {
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
    }),
  );
});
