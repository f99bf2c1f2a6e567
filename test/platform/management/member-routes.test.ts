// `/api/v1/orgs/current/members` and `/api/v1/workspaces/current/members`.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { lockOrganization } from '../../../src/platform/identity/organization-lock.ts';
import { organizationRoleIds } from '../../../src/platform/identity/permission.ts';
import { sql } from '../../../src/platform/store/sql.ts';
import { type Asked, createPlatformApi, type PlatformApi } from '../../support/platform-api.ts';
import { operationsOf } from './operations-of.ts';

let api: PlatformApi;
let organization: string;
let admin: string;

beforeAll(async () => {
  api = await createPlatformApi();
});
afterAll(async () => api[Symbol.asyncDispose]());
beforeEach(async () => {
  organization = await api.addOrganization();
  admin = await api.addServiceKey(organization, 'ORGANIZATION_ADMIN');
});

const path = '/api/v1/orgs/current/members';
const tokens = '/api/v1/orgs/current/personal-access-tokens';

function add(role: string, email: string = `${randomUUID()}@example.test`, key = admin): Promise<Asked> {
  return api.ask('POST', path, { key, body: { email, role } });
}

/** Adds a member; returns their id and a personal token of theirs. */
async function addWithToken(role: string): Promise<{ id: string; userId: string; key: string }> {
  const { id, user_id: userId } = (await add(role)).body;
  const made = await api.ask('POST', tokens, { key: admin, body: { user_id: userId } });
  return { id, userId, key: made.body.key };
}

/** Until so many statements on this database wait for a lock. */
async function untilWaiting(expected: number): Promise<void> {
  const waiting = sql<{ readonly count: number }>`select count(*)::int from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`;
  for (let count = 0; count < expected; )
    count = (await waiting.execute(api.database.owner.db)).rows[0]?.count ?? 0;
}

describe('a member of the organization', () => {
  it('is added, listed, changed and removed, and each change leaves one event', async () => {
    const body = { email: 'Ada.Lovelace@Example.TEST', role: 'ORGANIZATION_USER', full_name: 'Ada' };
    const made = await api.ask('POST', path, { key: admin, body });
    expect(made.status).toBe(200);
    const { id, user_id } = made.body;
    const { ORGANIZATION_USER, ORGANIZATION_VIEWER } = organizationRoleIds;
    expect(made.body).toEqual({
      ...body,
      email: 'ada.lovelace@example.test',
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      user_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      ls_user_id: user_id,
      organization_id: organization,
      tenant_id: null,
      tenant_ids: [],
      display_name: 'Ada',
      avatar_url: null,
      linked_login_methods: [],
      is_disabled: false,
      read_only: false,
      access_scope: 'organization',
      ...{ role_id: ORGANIZATION_USER, role_name: 'ORGANIZATION_USER' },
      ...{ org_role_id: ORGANIZATION_USER, org_role_name: 'ORGANIZATION_USER' },
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    });
    const listed = { organization_id: organization, members: [made.body], pending: [] };
    expect((await api.ask('GET', path, { key: admin })).body).toEqual(listed);
    expect((await api.ask('GET', `${path}/active`, { key: admin })).body).toEqual([made.body]);
    const change = { role_id: ORGANIZATION_VIEWER };
    const changed = await api.ask('PATCH', `${path}/${id}`, { key: admin, body: change });
    expect([changed.status, changed.body]).toMatchObject([
      200,
      { id, role: 'ORGANIZATION_VIEWER', role_id: ORGANIZATION_VIEWER, read_only: true },
    ]);
    const unnamed = await api.ask('PATCH', `${path}/${id}`, { key: admin, body: { full_name: null } });
    expect([unnamed.body.full_name, unnamed.body.role]).toEqual([null, 'ORGANIZATION_VIEWER']);
    expect((await api.ask('DELETE', `${path}/${id}`, { key: admin })).status).toBe(200);
    expect((await api.ask('GET', path, { key: admin })).body.members).toEqual([]);
    expect(await operationsOf(api, organization)).toEqual([
      ['invite_user_to_org', true, [id, user_id]],
      ['update_org_member', true, [id, user_id]],
      ['update_org_member', true, [id, user_id]],
      ['delete_org_member', true, [id]],
    ]);
  });

  it('is added once', async () => {
    const email = `${randomUUID()}@example.test`;
    expect((await add('ORGANIZATION_USER', email)).status).toBe(200);
    expect((await add('ORGANIZATION_ADMIN', email.toUpperCase())).status).toBe(409);
    const responses = await Promise.all([1, 2, 3].map(() => add('ORGANIZATION_USER', `x${email}`)));
    expect(responses.map(({ status }) => status).toSorted()).toEqual([200, 409, 409]);
  });

  it('is added while another organization that has the same user waits for its turn to write', async () => {
    const email = `${randomUUID()}@example.test`;
    expect((await add('ORGANIZATION_USER', email)).status).toBe(200);
    const [slow, quick] = [await api.addOrganization(), await api.addOrganization()];
    const keyOf = (id: string) => api.addServiceKey(id, 'ORGANIZATION_ADMIN');
    const [slowKey, quickKey] = [await keyOf(slow), await keyOf(quick)];
    let late: Promise<Asked> | undefined;
    await api.database.owner.write(async (trx) => {
      await sql`select public.audit_lock(${slow})`.execute(trx);
      late = add('ORGANIZATION_USER', email, slowKey);
      await untilWaiting(1);
      expect((await add('ORGANIZATION_USER', email, quickKey)).status).toBe(200);
    });
    expect((await late)?.status).toBe(200);
  });

  it('looks the same whether the user is a member of another organization or not', async () => {
    const foreign = await api.addServiceKey(await api.addOrganization(), 'ORGANIZATION_ADMIN');
    const email = `${randomUUID()}@example.test`;
    const body = { email, role: 'ORGANIZATION_ADMIN', full_name: 'Their name there' };
    await api.ask('POST', path, { key: foreign, body });
    const made = await add('ORGANIZATION_USER', email);
    expect([made.status, made.body.full_name]).toEqual([200, null]);
    expect((await api.ask('GET', path, { key: foreign })).body.members).toMatchObject([
      { full_name: body.full_name },
    ]);
  });

  it.each([
    ['not an address', 'ada'],
    ['too long', `${'a'.repeat(250)}@example.test`],
    ['with a line break', 'ada@example.test\n'],
    ['a list', 'ada@example.test,eve@example.test'],
  ])('rejects an email that is %s', async (_, email) => {
    const refused = await add('ORGANIZATION_USER', email);
    expect([refused.status, refused.body.detail[0].loc]).toEqual([422, ['body', 'email']]);
  });

  it('of another organization is not found', async () => {
    const foreign = await api.addServiceKey(await api.addOrganization(), 'ORGANIZATION_ADMIN');
    const { id, user_id } = (await add('ORGANIZATION_USER')).body;
    for (const unknown of [id, randomUUID(), user_id]) {
      const options = { key: foreign, body: { role: 'ORGANIZATION_ADMIN' } };
      const changed = await api.ask('PATCH', `${path}/${unknown}`, options);
      expect([changed.status, changed.text]).toEqual([
        404,
        '{"detail":"Member not found","code":"not_found"}\n',
      ]);
      const removed = await api.ask('DELETE', `${path}/${unknown}`, { key: foreign });
      expect([removed.status, removed.text]).toEqual([
        404,
        '{"detail":"Member not found","code":"not_found"}\n',
      ]);
    }
    const { members } = (await api.ask('GET', path, { key: admin })).body;
    expect(members).toMatchObject([{ role: 'ORGANIZATION_USER' }]);
  });

  it('is removed with their tokens and workspace memberships', async () => {
    const workspace = await api.addWorkspace(organization);
    const { id, userId, key } = await addWithToken('ORGANIZATION_USER');
    const body = { user_id: userId, role: 'WORKSPACE_USER' };
    const places = '/api/v1/workspaces/current/members';
    const tenant = workspace;
    expect((await api.ask('POST', places, { key: admin, tenant, body })).status).toBe(200);
    expect((await api.ask('GET', places, { key, tenant: workspace })).status).toBe(200);
    expect((await api.ask('DELETE', `${path}/${id}`, { key: admin })).status).toBe(200);
    expect((await api.ask('GET', places, { key, tenant: workspace })).status).toBe(401);
    expect((await api.ask('GET', places, { key: admin, tenant })).body.members).toEqual([]);
    expect((await api.ask('GET', tokens, { key: admin })).body).toEqual([]);
  });
});

describe('the last administrator', () => {
  it('cannot be removed or demoted, by themselves or by another caller', async () => {
    const last = await addWithToken('ORGANIZATION_ADMIN');
    for (const key of [last.key, admin]) {
      const options = { key, body: { role: 'ORGANIZATION_OPERATOR' } };
      const demoted = await api.ask('PATCH', `${path}/${last.id}`, options);
      expect([demoted.status, demoted.body.detail]).toEqual([
        409,
        'The last administrator of an organization cannot be removed or demoted: add another one first',
      ]);
      expect((await api.ask('DELETE', `${path}/${last.id}`, { key })).status).toBe(409);
    }
    const other = await addWithToken('ORGANIZATION_ADMIN');
    expect((await api.ask('DELETE', `${path}/${last.id}`, { key: last.key })).status).toBe(200);
    expect((await api.ask('DELETE', `${path}/${other.id}`, { key: admin })).status).toBe(409);
  });

  it.each(['PATCH', 'DELETE'])('remains when two %s each other at the same time', async (method) => {
    const body = method === 'PATCH' ? { body: { role: 'ORGANIZATION_USER' } } : {};
    for (let round = 0; round < 10; round += 1) {
      organization = await api.addOrganization();
      admin = await api.addServiceKey(organization, 'ORGANIZATION_ADMIN');
      const [one, two] = [await addWithToken('ORGANIZATION_ADMIN'), await addWithToken('ORGANIZATION_ADMIN')];
      const responses = await Promise.all([
        api.ask(method, `${path}/${one.id}`, { key: two.key, ...body }),
        api.ask(method, `${path}/${two.id}`, { key: one.key, ...body }),
      ]);
      // The key of the second may already be deleted or have fewer permissions when it is checked.
      const [first, second] = responses.map(({ status }) => status).toSorted((a, b) => a - b);
      expect(first).toBe(200);
      expect([401, 403, 409]).toContain(second);
      const listed = await api.ask('GET', path, { key: admin });
      const roles = listed.body.members.map(({ role }: { role: string }) => role);
      expect(roles.filter((role: string) => role === 'ORGANIZATION_ADMIN')).toHaveLength(1);
    }
  });

  it('remains when two remove each other, the second of whom holds nothing that the first waits for', async () => {
    const [one, two] = [await addWithToken('ORGANIZATION_ADMIN'), await addWithToken('ORGANIZATION_ADMIN')];
    const asked: Promise<Asked>[] = [];
    const { owner } = api.database;
    await owner.write(async (trx) => {
      await lockOrganization(trx, organization);
      asked.push(api.ask('DELETE', `${path}/${one.id}`, { key: two.key }));
      asked.push(api.ask('DELETE', `${path}/${two.id}`, { key: one.key }));
      await untilWaiting(2);
      const free = owner.db
        .selectFrom('organization_members')
        .select('id')
        .where('id', 'in', [one.id, two.id])
        .forUpdate()
        .skipLocked();
      expect(await free.execute()).toHaveLength(2);
    });
    const statuses = (await Promise.all(asked)).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([200, 401]);
  });

  it('is not required in an organization that never had one', async () => {
    const { id } = (await add('ORGANIZATION_USER')).body;
    expect((await api.ask('DELETE', `${path}/${id}`, { key: admin })).status).toBe(200);
  });

  it('must keep a key: otherwise nobody could manage the organization', async () => {
    const one = await addWithToken('ORGANIZATION_ADMIN');
    await add('ORGANIZATION_ADMIN');
    const keys = '/api/v1/orgs/current/service-keys';
    const [{ id: serviceKey }] = (await api.ask('GET', keys, { key: admin })).body;
    expect((await api.ask('DELETE', `${keys}/${serviceKey}`, { key: one.key })).status).toBe(200);
    const left = await api.ask('DELETE', `${path}/${one.id}`, { key: one.key });
    expect([left.status, left.body.detail]).toEqual([
      409,
      'No API key would be left that can manage the organization: create another one first',
    ]);
  });
});

describe('a member of a workspace', () => {
  const places = '/api/v1/workspaces/current/members';
  let tenant: string;
  beforeEach(async () => {
    tenant = await api.addWorkspace(organization);
  });

  it('is added, listed, changed and removed, and each change leaves one event of the workspace', async () => {
    const { user_id, email } = (await add('ORGANIZATION_USER')).body;
    const body = { user_id, role: 'WORKSPACE_USER' };
    const made = await api.ask('POST', places, { key: admin, tenant, body });
    expect(made.status).toBe(200);
    const { id } = made.body;
    expect(made.body).toMatchObject({
      ...body,
      ...{ organization_id: organization, tenant_id: tenant, ls_user_id: user_id, access_scope: 'workspace' },
      ...{ id: expect.any(String), email, full_name: null, created_at: expect.any(String) },
    });
    const listed = { tenant_id: tenant, members: [made.body], pending: [] };
    expect((await api.ask('GET', places, { key: admin, tenant })).body).toEqual(listed);
    expect((await api.ask('GET', `${places}/active`, { key: admin, tenant })).body).toEqual([made.body]);
    const change = { key: admin, tenant, body: { role: 'WORKSPACE_VIEWER' } };
    const changed = await api.ask('PATCH', `${places}/${id}`, change);
    expect([changed.status, changed.body]).toMatchObject([200, { id, role: 'WORKSPACE_VIEWER' }]);
    expect((await api.ask('POST', places, { key: admin, tenant, body })).status).toBe(409);
    expect((await api.ask('DELETE', `${places}/${id}`, { key: admin, tenant })).status).toBe(200);
    expect((await api.ask('DELETE', `${places}/${id}`, { key: admin, tenant })).status).toBe(404);
    expect((await operationsOf(api, organization)).slice(1)).toEqual([
      ['add_member_to_workspace', true, [id, user_id]],
      ['update_workspace_member', true, [id, user_id]],
      ['add_member_to_workspace', false, []],
      ['delete_workspace_member', true, [id]],
      ['delete_workspace_member', false, [id]],
    ]);
    expect((await api.ask('GET', path, { key: admin })).body.members).toHaveLength(1);
  });

  it('must be a member of the organization: other users are not found', async () => {
    const foreign = await api.addServiceKey(await api.addOrganization(), 'ORGANIZATION_ADMIN');
    const outsider = await add('ORGANIZATION_USER', undefined, foreign);
    for (const user_id of [outsider.body.user_id, randomUUID()]) {
      const body = { user_id, role: 'WORKSPACE_ADMIN' };
      const refused = await api.ask('POST', places, { key: admin, tenant, body });
      expect([refused.status, refused.text]).toEqual([
        404,
        '{"detail":"User not found in this organization","code":"not_found"}\n',
      ]);
    }
  });

  it('of another workspace is not found, even by a caller with access to both', async () => {
    const { user_id } = (await add('ORGANIZATION_USER')).body;
    const body = { user_id, role: 'WORKSPACE_USER' };
    const { id } = (await api.ask('POST', places, { key: admin, tenant, body })).body;
    const sibling = await api.addWorkspace(organization);
    for (const unknown of [id, randomUUID()]) {
      const options = { key: admin, tenant: sibling, body: { role: 'WORKSPACE_ADMIN' } };
      const changed = await api.ask('PATCH', `${places}/${unknown}`, options);
      expect([changed.status, changed.text]).toEqual([
        404,
        '{"detail":"Member not found","code":"not_found"}\n',
      ]);
      const removed = await api.ask('DELETE', `${places}/${unknown}`, { key: admin, tenant: sibling });
      expect([removed.status, removed.text]).toEqual([
        404,
        '{"detail":"Member not found","code":"not_found"}\n',
      ]);
    }
  });

  it('never remains when the user is removed from the organization at the same time', async () => {
    for (let round = 0; round < 10; round += 1) {
      const { id, user_id } = (await add('ORGANIZATION_USER')).body;
      const body = { user_id, role: 'WORKSPACE_USER' };
      const [added, removed] = await Promise.all([
        api.ask('POST', places, { key: admin, tenant, body }),
        api.ask('DELETE', `${path}/${id}`, { key: admin }),
      ]);
      expect([200, 404]).toContain(added.status);
      expect(removed.status).toBe(200);
      expect((await api.ask('GET', places, { key: admin, tenant })).body.members).toEqual([]);
    }
  });
});
