// Service keys and personal access tokens.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { hashKey, parseKey } from '../../../src/platform/identity/api-key.ts';
import { organizationRoleIds, workspaceRoleIds } from '../../../src/platform/identity/permission.ts';
import { type Asked, createPlatformApi, type PlatformApi } from '../../support/platform-api.ts';
import { operationsOf } from './operations-of.ts';

let api: PlatformApi;
let organization: string;
let tenant: string;
let admin: string;
const clock = { offsetMs: 0 };

beforeAll(async () => {
  api = await createPlatformApi({ now: () => Date.now() + clock.offsetMs });
});
afterAll(async () => api[Symbol.asyncDispose]());
beforeEach(async () => {
  clock.offsetMs = 0;
  organization = await api.addOrganization();
  tenant = await api.addWorkspace(organization);
  admin = await api.addServiceKey(organization, 'ORGANIZATION_ADMIN', undefined, tenant);
});

const ofWorkspace = '/api/v1/api-key';
const own = '/api/v1/api-key/current';
const ofOrganization = '/api/v1/orgs/current/service-keys';
const ofMembers = '/api/v1/orgs/current/personal-access-tokens';

async function addMember(role: string): Promise<string> {
  const body = { email: `${randomUUID()}@example.test`, role };
  return (await api.ask('POST', '/api/v1/orgs/current/members', { key: admin, body })).body.user_id;
}

async function tokenOf(role: string): Promise<Asked['body']> {
  const body = { user_id: await addMember(role) };
  return (await api.ask('POST', ofMembers, { key: admin, body })).body;
}

describe.each([
  ['of a workspace', ofWorkspace, { role: 'WORKSPACE_VIEWER' }, 'create_api_key', 'delete_api_key', []],
  [
    'of the organization',
    ofOrganization,
    { role: 'ORGANIZATION_VIEWER' },
    'create_service_key',
    'delete_service_key',
    ['list_org_service_keys'],
  ],
])('a service key %s', (_, path, given, creation, deletion, listing) => {
  it('is created, used, listed without its text, deleted, and then rejected', async () => {
    const body = { ...given, description: 'CI' };
    const made = await api.ask('POST', path, { key: admin, body });
    expect([made.status, made.headers.get('cache-control')]).toEqual([200, 'no-store']);
    const { key, ...rest } = made.body;
    expect(parseKey(key)).toMatchObject({ kind: 'service', shortKey: rest.short_key });
    expect(rest).toEqual({
      ...body,
      id: expect.any(String),
      short_key: expect.stringMatching(/^sp_sk_.{4}\.\.\..{4}$/),
      read_only: true,
      access_scope: path === ofWorkspace ? 'workspace' : 'organization',
      role_id: path === ofWorkspace ? workspaceRoleIds.WORKSPACE_VIEWER : null,
      org_role_id: path === ofWorkspace ? null : organizationRoleIds.ORGANIZATION_VIEWER,
      workspace_id: path === ofWorkspace ? tenant : null,
      workspace_names: path === ofWorkspace ? [expect.any(String)] : null,
      default_workspace_id: path === ofWorkspace ? tenant : null,
      default_workspace_name: path === ofWorkspace ? expect.any(String) : null,
      user_id: null,
      created_at: expect.any(String),
      expires_at: null,
      created_by_key_id: expect.any(String),
      created_by_user_id: null,
      last_used_at: null,
    });
    const maker = hashKey(admin);
    const { db } = api.database.owner;
    const made_by = await db.selectFrom('api_keys').select('id').where('hash', '=', maker).executeTakeFirst();
    expect(rest.created_by_key_id).toBe(made_by?.id);
    const probe = path === ofWorkspace ? '/api/v1/workspaces/current/members' : '/api/v1/orgs/current';
    expect((await api.ask('GET', probe, { key })).status).toBe(200);
    await api.authenticator.settle();
    const listed = await api.ask('GET', path, { key: admin });
    const found = listed.body.find(({ id }: { id: string }) => id === rest.id);
    expect(found).toEqual({ ...rest, last_used_at: expect.any(String) });
    expect(listed.text).not.toContain(key.slice(10, -4));
    const gone = await api.ask('DELETE', `${path}/${rest.id}`, { key: admin });
    expect([gone.status, gone.body]).toEqual([200, found]);
    expect((await api.ask('GET', probe, { key })).status).toBe(401);
    expect(await operationsOf(api, organization)).toEqual([
      [creation, true, [rest.id]],
      ...listing.map((operation) => [operation, true, []]),
      [deletion, true, [rest.id]],
    ]);
  });

  it('is stored as a hash, and is in no log', async () => {
    const { key } = (await api.ask('POST', path, { key: admin, body: given })).body;
    const { db } = api.database.owner;
    const rows = await db.selectFrom('api_keys').selectAll().where('hash', '=', hashKey(key)).execute();
    const events = await db.selectFrom('audit_events').selectAll().execute();
    expect(rows).toHaveLength(1);
    const secret = key.slice(10, -4);
    expect(JSON.stringify([rows, events, api.logged])).not.toContain(secret);
  });

  it('of another collection is not found', async () => {
    const { id } = (await api.ask('POST', path, { key: admin, body: given })).body;
    const elsewhere = await api.addOrganization();
    const home = await api.addWorkspace(elsewhere);
    const foreign = await api.addServiceKey(elsewhere, 'ORGANIZATION_ADMIN', undefined, home);
    const other = path === ofWorkspace ? ofOrganization : ofWorkspace;
    // The keys of workspaces are among those of the organization, and not the other way round.
    const places = path === ofWorkspace ? [] : ([[other, admin]] as const);
    for (const [place, key] of [[path, foreign], [other, foreign], ...places, [ofMembers, admin]] as const)
      for (const unknown of [id, randomUUID()]) {
        const gone = await api.ask('DELETE', `${place}/${unknown}`, { key });
        expect([gone.status, gone.text]).toEqual([
          404,
          '{"detail":"API key not found","code":"not_found"}\n',
        ]);
      }
    expect((await api.ask('DELETE', `${path}/${id}`, { key: admin })).status).toBe(200);
  });

  it('expires at its expires_at', async () => {
    const expires_at = new Date(Date.now() + 3_600_000).toISOString();
    const made = await api.ask('POST', path, { key: admin, body: { ...given, expires_at } });
    expect(made.body.expires_at).toBe(expires_at);
    const { key } = made.body;
    const probe = path === ofWorkspace ? '/api/v1/workspaces/current/members' : '/api/v1/orgs/current';
    clock.offsetMs = 3_590_000;
    expect((await api.ask('GET', probe, { key })).status).toBe(200);
    clock.offsetMs = 3_600_000;
    expect((await api.ask('GET', probe, { key })).status).toBe(401);
  });

  it.each([
    ['in the past', '2020-01-01T00:00:00Z'],
    ['more than five years ahead', '2099-01-01T00:00:00Z'],
    ['without a zone', '2027-01-01T00:00:00'],
    ['a date without a time', '2027-01-01'],
    ['a number', 1_800_000_000],
    ['empty', ''],
  ])('rejects an expires_at that is %s', async (__, expires_at) => {
    const refused = await api.ask('POST', path, { key: admin, body: { ...given, expires_at } });
    expect(refused.status).toBe(422);
    expect(refused.body.detail.map(({ loc }: { loc: unknown }) => loc)).toEqual([['body', 'expires_at']]);
  });
});

describe('a service key', () => {
  it('has a role for the organization or for the workspace that it is created in', async () => {
    const wrong = [
      [ofWorkspace, 'ORGANIZATION_ADMIN'],
      [ofOrganization, 'WORKSPACE_ADMIN'],
      [ofOrganization, 'toString'],
    ] as const;
    for (const [path, role] of wrong)
      expect((await api.ask('POST', path, { key: admin, body: { role } })).status).toBe(422);
    const made = await api.ask('POST', ofWorkspace, { key: admin, body: {} });
    expect([made.status, made.body.role]).toEqual([200, 'WORKSPACE_USER']);
  });

  it('that is the last one to manage the organization cannot be deleted, by itself or concurrently', async () => {
    const [{ id }] = (await api.ask('GET', ofOrganization, { key: admin })).body;
    const refused = await api.ask('DELETE', `${ofOrganization}/${id}`, { key: admin });
    expect([refused.status, refused.body.detail]).toEqual([
      409,
      'No API key would be left that can manage the organization: create another one first',
    ]);
    const body = { role: 'ORGANIZATION_OPERATOR' };
    const second = (await api.ask('POST', ofOrganization, { key: admin, body })).body;
    const responses = await Promise.all([
      api.ask('DELETE', `${ofOrganization}/${id}`, { key: second.key }),
      api.ask('DELETE', `${ofOrganization}/${second.id}`, { key: admin }),
    ]);
    const statuses = responses.map(({ status }) => status).toSorted((a, b) => a - b);
    expect(statuses[0]).toBe(200);
    expect([401, 409]).toContain(statuses[1]);
  });
});

describe('a key that a public client asks for', () => {
  const { WORKSPACE_VIEWER, WORKSPACE_ADMIN } = workspaceRoleIds;
  const { ORGANIZATION_OPERATOR } = organizationRoleIds;
  const expires_at = new Date(Date.now() + 3_600_000).toISOString();

  it.each([
    [
      ofWorkspace,
      { read_only: true, role_id: WORKSPACE_ADMIN },
      { role: 'WORKSPACE_VIEWER', read_only: true },
    ],
    [ofWorkspace, { role_id: WORKSPACE_ADMIN, expires_at }, { role: 'WORKSPACE_ADMIN', expires_at }],
    [ofWorkspace, { role_id: null, expires_at: null, workspaces: null }, { role: 'WORKSPACE_USER' }],
    [
      ofOrganization,
      { org_role_id: ORGANIZATION_OPERATOR },
      { org_role_id: ORGANIZATION_OPERATOR, role_id: null },
    ],
    [
      ofOrganization,
      { description: 'CI', read_only: true },
      { role: 'ORGANIZATION_VIEWER', description: 'CI' },
    ],
    [
      ofOrganization,
      {},
      { role: 'ORGANIZATION_USER', description: 'Default API key', access_scope: 'organization' },
    ],
  ])('at %s with %j has what it asks for', async (path, body, wanted) => {
    const made = await api.ask('POST', path, { key: admin, body });
    expect([made.status, made.body]).toEqual([200, expect.objectContaining(wanted)]);
  });

  it('in one workspace, through the organization, is a key of that workspace', async () => {
    const body = { workspaces: [tenant], role_id: WORKSPACE_VIEWER };
    const made = await api.ask('POST', ofOrganization, { key: admin, body });
    expect(made.body).toMatchObject({
      workspace_id: tenant,
      role: 'WORKSPACE_VIEWER',
      access_scope: 'workspace',
    });
    const { body: listed } = await api.ask('GET', ofOrganization, { key: admin });
    expect(listed.map(({ id }: { id: string }) => id)).toContain(made.body.id);
    const gone = await api.ask('DELETE', `${ofOrganization}/${made.body.id}`, { key: admin });
    expect(gone.body.id).toBe(made.body.id);
    const foreign = await api.addWorkspace(await api.addOrganization());
    for (const workspaces of [[foreign], [randomUUID()]])
      expect((await api.ask('POST', ofOrganization, { key: admin, body: { workspaces } })).status).toBe(404);
    const two = { workspaces: [tenant, await api.addWorkspace(organization)] };
    expect((await api.ask('POST', ofOrganization, { key: admin, body: two })).status).toBe(422);
  });

  it('has the home workspace that it asks for, which it loses when that is deleted', async () => {
    const home = await api.addWorkspace(organization);
    const body = { role: 'ORGANIZATION_ADMIN', default_workspace_id: home };
    const made = await api.ask('POST', ofOrganization, { key: admin, body });
    expect(made.body).toMatchObject({
      default_workspace_id: home,
      default_workspace_name: expect.any(String),
    });
    const { key } = made.body;
    expect((await api.ask('GET', '/v2/listeners', { key })).status).toBe(200);
    await api.ask('DELETE', `/api/v1/workspaces/${home}`, { key: admin });
    const refused = await api.ask('GET', '/v2/listeners', { key });
    expect([refused.status, refused.body.detail]).toEqual([
      403,
      expect.stringContaining('requires workspace specification'),
    ]);
    const listed = (await api.ask('GET', ofOrganization, { key: admin })).body;
    const own = listed.find(({ id }: { id: string }) => id === made.body.id);
    expect([own.default_workspace_id, own.default_workspace_name]).toEqual([null, null]);
    const foreign = await api.addWorkspace(await api.addOrganization());
    for (const default_workspace_id of [foreign, randomUUID(), home]) {
      const asked = { ...body, default_workspace_id };
      expect((await api.ask('POST', ofOrganization, { key: admin, body: asked })).status).toBe(404);
    }
  });
});

describe('a personal access token', () => {
  it('is created for a member by a manager of the organization, and then by the member', async () => {
    const first = await tokenOf('ORGANIZATION_USER');
    expect(first).toMatchObject({ user_id: expect.any(String), role: null, workspace_id: null });
    const { key } = first;
    expect(parseKey(key)?.kind).toBe('personal');
    const made = await api.ask('POST', own, { key, body: { description: 'laptop' } });
    expect([made.status, made.body.user_id]).toEqual([200, first.user_id]);
    const listed = await api.ask('GET', own, { key: made.body.key });
    expect(listed.body.map(({ id }: { id: string }) => id)).toEqual([first.id, made.body.id]);
    expect((await api.ask('DELETE', `${own}/${first.id}`, { key: made.body.key })).status).toBe(200);
    expect((await api.ask('GET', own, { key })).status).toBe(401);
    expect(await operationsOf(api, organization)).toEqual([
      ['invite_user_to_org', true, expect.any(Array)],
      ['create_personal_access_token', true, [first.id, first.user_id]],
      ['create_personal_access_token', true, [made.body.id, first.user_id]],
      ['delete_personal_access_token', true, [first.id]],
    ]);
  });

  it('is visible to and deleted by its owner and the managers of the organization only', async () => {
    const [mine, other] = [await tokenOf('ORGANIZATION_USER'), await tokenOf('ORGANIZATION_USER')];
    const listed = await api.ask('GET', own, { key: other.key });
    expect(listed.body.map(({ id }: { id: string }) => id)).toEqual([other.id]);
    for (const id of [mine.id, randomUUID()]) {
      const refused = await api.ask('DELETE', `${own}/${id}`, { key: other.key });
      expect([refused.status, refused.text]).toEqual([
        404,
        '{"detail":"API key not found","code":"not_found"}\n',
      ]);
    }
    expect((await api.ask('GET', ofMembers, { key: other.key })).status).toBe(403);
    expect((await api.ask('GET', ofMembers, { key: admin })).body).toHaveLength(2);
    expect((await api.ask('DELETE', `${ofMembers}/${mine.id}`, { key: admin })).status).toBe(200);
    expect((await api.ask('GET', own, { key: mine.key })).status).toBe(401);
  });

  it('does not exist for a service key', async () => {
    for (const [method, path] of [
      ['GET', own],
      ['POST', own],
      ['DELETE', `${own}/${randomUUID()}`],
    ] as const) {
      const refused = await api.ask(method, path, { key: admin, ...(method === 'POST' ? { body: {} } : {}) });
      expect([refused.status, refused.body.detail]).toEqual([
        403,
        'Service keys belong to no user: send a personal access token instead',
      ]);
    }
  });

  it('is not created for a user who is not a member', async () => {
    const outsider = await api.addUser();
    for (const user_id of [outsider, randomUUID()]) {
      const refused = await api.ask('POST', ofMembers, { key: admin, body: { user_id } });
      expect([refused.status, refused.text]).toEqual([
        404,
        '{"detail":"User not found in this organization","code":"not_found"}\n',
      ]);
    }
  });

  it('does not outlive a membership that ends while the token is created', async () => {
    const members = '/api/v1/orgs/current/members';
    for (let round = 0; round < 10; round += 1) {
      const { key, user_id } = await tokenOf('ORGANIZATION_USER');
      const { members: listed } = (await api.ask('GET', members, { key: admin })).body;
      const { id } = listed.find((member: { user_id: string }) => member.user_id === user_id);
      const [made] = await Promise.all([
        api.ask('POST', own, { key, body: {} }),
        api.ask('DELETE', `${members}/${id}`, { key: admin }),
      ]);
      expect([200, 401, 404]).toContain(made.status);
      if (made.status === 200) expect((await api.ask('GET', own, { key: made.body.key })).status).toBe(401);
      expect((await api.ask('GET', ofMembers, { key: admin })).body).toEqual([]);
    }
  });
});
