// The roles that may call each route, written down a second time, so that a change of either table is noticed. And that no
// caller can get more permissions than they have.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type OrganizationRole,
  organizationRoles,
  permissionsOf,
  type WorkspaceRole,
  workspaceRoles,
} from '../../../src/platform/identity/permission.ts';
import { addMember, changeMember, removeMember } from '../../../src/platform/management/members.ts';
import { management } from '../../../src/platform/management/module.ts';
import { addWorkspaceMember } from '../../../src/platform/management/workspace-members.ts';
import { createPlatformApi, type PlatformApi } from '../../support/platform-api.ts';
import { createTestWiring } from '../../support/test-wiring.ts';
import { insertMember } from '../identity/test-rows.ts';

const organizationNames = Object.keys(organizationRoles) as OrganizationRole[];
const workspaceNames = Object.keys(workspaceRoles) as WorkspaceRole[];

let api: PlatformApi;
let organization: string;
let workspace: string;
/** By role: `service …` for a service key, `member …` for a personal token. */
let keys: ReadonlyMap<string, string>;

beforeAll(async () => {
  api = await createPlatformApi();
  organization = await api.addOrganization();
  workspace = await api.addWorkspace(organization);
  const made: [string, string][] = [];
  for (const role of organizationNames) {
    made.push([`service ${role}`, await api.addServiceKey(organization, role)]);
    made.push([`member ${role}`, await api.addMemberKey(organization, role)]);
  }
  for (const role of workspaceNames) {
    const place = { id: workspace, role };
    made.push([`service ${role}`, await api.addServiceKey(organization, role, workspace)]);
    made.push([`member ${role}`, await api.addMemberKey(organization, 'ORGANIZATION_USER', place)]);
  }
  keys = new Map(made);
});
afterAll(async () => api[Symbol.asyncDispose]());

const managers = [
  'service ORGANIZATION_ADMIN',
  'member ORGANIZATION_ADMIN',
  'service ORGANIZATION_OPERATOR',
  'member ORGANIZATION_OPERATOR',
];
const administrators = managers.slice(0, 2);
const workspaceAdmins = [...managers, 'service WORKSPACE_ADMIN', 'member WORKSPACE_ADMIN'];
const insideWorkspace = [
  ...workspaceAdmins,
  'service WORKSPACE_USER',
  'member WORKSPACE_USER',
  'service WORKSPACE_VIEWER',
  'member WORKSPACE_VIEWER',
];
const members = [
  'member ORGANIZATION_ADMIN',
  'member ORGANIZATION_OPERATOR',
  'member ORGANIZATION_USER',
  'member ORGANIZATION_VIEWER',
  'member WORKSPACE_ADMIN',
  'member WORKSPACE_USER',
  'member WORKSPACE_VIEWER',
];
const insideOrganization = [
  ...members,
  'service ORGANIZATION_ADMIN',
  'service ORGANIZATION_OPERATOR',
  'service ORGANIZATION_USER',
  'service ORGANIZATION_VIEWER',
];

const table: Readonly<Record<string, readonly string[]>> = {
  'GET /api/v1/orgs/current': insideOrganization,
  'GET /api/v1/orgs/current/info': insideOrganization,
  'PATCH /api/v1/orgs/current/info': managers,
  'GET /api/v1/orgs/current/roles': insideOrganization,
  'GET /api/v1/workspaces': insideOrganization,
  'POST /api/v1/workspaces': managers,
  // With the id of a workspace that does not exist. workspace-routes.test.ts tests who can rename which workspace.
  'PATCH /api/v1/workspaces/{workspace_id}': insideOrganization,
  'DELETE /api/v1/workspaces/{workspace_id}': managers,
  'GET /api/v1/orgs/current/members': insideOrganization,
  'GET /api/v1/orgs/current/members/active': insideOrganization,
  'POST /api/v1/orgs/current/members': managers,
  'PATCH /api/v1/orgs/current/members/{identity_id}': managers,
  'DELETE /api/v1/orgs/current/members/{identity_id}': managers,
  'GET /api/v1/workspaces/current/members': insideWorkspace,
  'GET /api/v1/workspaces/current/members/active': insideWorkspace,
  'POST /api/v1/workspaces/current/members': workspaceAdmins,
  'PATCH /api/v1/workspaces/current/members/{identity_id}': workspaceAdmins,
  'DELETE /api/v1/workspaces/current/members/{identity_id}': workspaceAdmins,
  'GET /api/v1/api-key': workspaceAdmins,
  'POST /api/v1/api-key': workspaceAdmins,
  'DELETE /api/v1/api-key/{api_key_id}': workspaceAdmins,
  'GET /api/v1/orgs/current/service-keys': managers,
  'POST /api/v1/orgs/current/service-keys': managers,
  'DELETE /api/v1/orgs/current/service-keys/{api_key_id}': managers,
  'GET /api/v1/api-key/current': members,
  // The body is checked before the kind of the key, so that a service key passes access control here.
  'POST /api/v1/api-key/current': insideOrganization,
  'DELETE /api/v1/api-key/current/{pat_id}': members,
  'GET /api/v1/orgs/current/personal-access-tokens': managers,
  'POST /api/v1/orgs/current/personal-access-tokens': administrators,
  'DELETE /api/v1/orgs/current/personal-access-tokens/{pat_id}': managers,
  'GET /api/v1/audit-logs': managers,
};

describe('the table of roles', () => {
  it('has a row for every route', () => {
    const routes = management.routes?.(createTestWiring()) ?? [];
    expect(routes.map(({ method, path }) => `${method} ${path}`).toSorted()).toEqual(
      Object.keys(table).toSorted(),
    );
  });

  it.each(Object.entries(table))('%s', async (route, allowed) => {
    const [method = '', path = ''] = route.split(' ');
    // An invalid body: callers who pass access control get a 422.
    const body = method === 'POST' || method === 'PATCH' ? { body: [] } : {};
    const admitted: string[] = [];
    for (const [role, key] of keys) {
      const ask = { key, tenant: workspace, ...body };
      const { status } = await api.ask(method, path.replace(/\{\w+\}/, randomUUID()), ask);
      expect([200, 403, 404, 422]).toContain(status);
      if (status !== 403) admitted.push(role);
    }
    expect(admitted.toSorted()).toEqual(allowed.toSorted());
  });

  it.each(Object.keys(table))('%s requires an API key', async (route) => {
    const [method = '', path = ''] = route.split(' ');
    const asked = path.replace(/\{\w+\}/, randomUUID());
    // Of an address of its own: wrong keys are counted by address.
    const peer = `192.0.2.${Object.keys(table).indexOf(route) + 1}`;
    for (const key of [undefined, 'wrong'])
      expect((await api.ask(method, asked, key === undefined ? { peer } : { key, peer })).status).toBe(401);
  });
});

describe('assigning a role', () => {
  const pairs = organizationNames.flatMap((from) => organizationNames.map((to) => [from, to] as const));

  it.each(pairs)(
    '%s assigns, changes or removes %s: only when it has all of its permissions',
    async (from, to) => {
      const { store, owner } = api.database;
      const permissions = permissionsOf('organization', from);
      const scope = { organizationId: organization, permissions };
      const isWithin = permissionsOf('organization', to).isSubsetOf(permissions);
      const outcomes = await Promise.all(
        [
          store.write(async (trx) => {
            const wanted = { email: `${randomUUID()}@example.test`, role: to, full_name: null };
            await addMember({ db: trx, ...scope }, wanted);
          }),
          insertMember(owner.db, organization, 'ORGANIZATION_VIEWER').then(async (userId) => {
            const id = await memberIdOf(userId);
            await store.write((trx) => changeMember({ db: trx, ...scope }, id, { role: to }));
          }),
          insertMember(owner.db, organization, to).then(async (userId) => {
            const id = await memberIdOf(userId);
            await store.write((trx) => removeMember({ db: trx, ...scope }, id));
          }),
        ].map((work) => work.then(() => 'done').catch((error: { kind: string }) => error.kind)),
      );
      expect(outcomes).toEqual(Array.from({ length: 3 }, () => (isWithin ? 'done' : 'forbidden')));
    },
  );

  it('in a workspace: only a role with no more permissions', async () => {
    const { store, owner } = api.database;
    const scope = { organizationId: organization, workspaceId: workspace };
    for (const from of workspaceNames)
      for (const to of workspaceNames) {
        const user_id = await insertMember(owner.db, organization, 'ORGANIZATION_USER');
        const permissions = permissionsOf('workspace', from);
        const isWithin = permissionsOf('workspace', to).isSubsetOf(permissions);
        const outcome = await store
          .write((trx) => addWorkspaceMember({ db: trx, ...scope, permissions }, { user_id, role: to }))
          .then(() => 'done')
          .catch((error: { kind: string }) => error.kind);
        expect([from, to, outcome]).toEqual([from, to, isWithin ? 'done' : 'forbidden']);
      }
  });

  it('no key that a caller creates has more access than the caller', async () => {
    for (const [role, key] of keys) {
      const made = await everyKeyOf(key);
      for (const other of made) {
        const [own, given] = [await reachOf(key), await reachOf(other)];
        expect([role, given.filter((reached) => !own.includes(reached))]).toEqual([role, []]);
      }
    }
  });
});

describe('two administrators', () => {
  it('who demote or remove each other at the same time: the second one is rejected', async () => {
    const { store, owner } = api.database;
    const permissions = permissionsOf('organization', 'ORGANIZATION_ADMIN');
    for (let round = 0; round < 10; round += 1) {
      const id = await api.addOrganization();
      await api.addServiceKey(id, 'ORGANIZATION_ADMIN');
      const users = [
        await insertMember(owner.db, id, 'ORGANIZATION_ADMIN'),
        await insertMember(owner.db, id, 'ORGANIZATION_ADMIN'),
      ];
      const change = { role: 'ORGANIZATION_USER' } as const;
      const [one = '', two = ''] = await Promise.all(users.map(memberIdOf));
      const scope = { organizationId: id, permissions };
      const outcomes = await Promise.allSettled([
        store.write((trx) => changeMember({ db: trx, ...scope }, one, change)),
        store.write(async (trx) => {
          if (round % 2 === 0) await changeMember({ db: trx, ...scope }, two, change);
          else await removeMember({ db: trx, ...scope }, two);
        }),
      ]);
      const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
      expect(refused.map(({ reason }) => reason)).toMatchObject([{ kind: 'conflict' }]);
    }
  });
});

async function memberIdOf(userId: string): Promise<string> {
  const { db } = api.database.owner;
  const row = db.selectFrom('organization_members').select('id').where('user_id', '=', userId);
  return (await row.executeTakeFirstOrThrow()).id;
}

/** One key of each kind and role that `key` may create. */
async function everyKeyOf(key: string): Promise<readonly string[]> {
  const { body: all } = await api.ask('GET', '/api/v1/orgs/current/members', { key });
  const users: readonly { readonly user_id: string }[] = all?.members?.slice(0, 12) ?? [];
  const asked = [
    ...organizationNames.map((role) => ['/api/v1/orgs/current/service-keys', { role }] as const),
    ...workspaceNames.map((role) => ['/api/v1/api-key', { role }] as const),
    ['/api/v1/api-key/current', {}] as const,
    ...users.map(({ user_id }) => ['/api/v1/orgs/current/personal-access-tokens', { user_id }] as const),
  ];
  const made: string[] = [];
  for (const [path, body] of asked) {
    const response = await api.ask('POST', path, { key, tenant: workspace, body });
    expect([200, 403]).toContain(response.status);
    if (response.status === 200) made.push(response.body.key);
  }
  return made;
}

/** The routes that `key` has access to. */
async function reachOf(key: string): Promise<readonly string[]> {
  const probes = [
    'PATCH /api/v1/orgs/current/info',
    'GET /api/v1/orgs/current',
    'GET /api/v1/workspaces/current/members',
    'POST /api/v1/workspaces/current/members',
    'POST /v2/listeners',
    'GET /v2/listeners',
  ];
  const reached: string[] = [];
  for (const probe of probes) {
    const [method = '', path = ''] = probe.split(' ');
    const body = method === 'GET' ? {} : { body: [] };
    const { status } = await api.ask(method, path, { key, tenant: workspace, ...body });
    if (status !== 403) reached.push(probe);
  }
  return reached;
}
