// `/api/v1/audit-logs`: access to it, and its query.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type OcsfEvent, ocsfEventSchema } from '../../../src/platform/audit/ocsf-schema.ts';
import { type Asked, createPlatformApi, type PlatformApi } from '../../support/platform-api.ts';

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

function read(query = '', key = admin): Promise<Asked> {
  return api.ask('GET', `/api/v1/audit-logs${query}`, { key, organization });
}

async function rename(times: number): Promise<void> {
  for (let at = 0; at < times; at += 1)
    await api.ask('PATCH', '/api/v1/orgs/current/info', { key: admin, body: { display_name: `Acme ${at}` } });
}

describe('the audit log', () => {
  it('lists events, newest first, ten per page', async () => {
    const made = await api.ask('POST', '/api/v1/workspaces', { key: admin, body: { display_name: 'R&D' } });
    await rename(11);
    const first = await read();
    expect([first.status, first.body.items.length]).toEqual([200, 10]);
    const second = await read(`?cursor=${first.body.cursor}`);
    expect(second.body.cursor).toBeNull();
    const items = [...first.body.items, ...second.body.items];
    expect(items.map((item) => ocsfEventSchema.parse(item).api.operation)).toEqual([
      ...Array.from({ length: 11 }, () => 'update_organization_info'),
      'create_workspace',
    ]);
    expect(items.at(-1).resources).toEqual([{ uid: made.body.id }]);
    expect(new Set(items.map(({ metadata }) => metadata.uid)).size).toBe(12);
  });

  it('contains rejected requests, but not reads of the log', async () => {
    const viewer = await api.addServiceKey(organization, 'ORGANIZATION_VIEWER');
    const body = { display_name: 'Mine' };
    await api.ask('PATCH', '/api/v1/orgs/current/info', { key: viewer, body });
    await read();
    const { items } = (await read()).body;
    expect(items).toHaveLength(1);
    expect(items[0]).toMatchObject({ status: 'Failure', http_response: { code: 403 } });
  });

  it('is filtered by operations, workspace and time', async () => {
    const workspace = await api.addWorkspace(organization);
    const token = { user_id: randomUUID(), role: 'WORKSPACE_USER' };
    await api.ask('POST', '/api/v1/workspaces/current/members', {
      key: admin,
      tenant: workspace,
      body: token,
    });
    await rename(1);
    await api.ask('GET', '/api/v1/orgs/current/service-keys', { key: admin });
    const found = async (query: string): Promise<readonly string[]> => {
      const { body } = await read(query);
      return body.items.map((item: { api: { operation: string } }) => item.api.operation);
    };
    const all = ['list_org_service_keys', 'update_organization_info', 'add_member_to_workspace'];
    expect(await found('')).toEqual(all);
    expect(await found('?operations=list_org_service_keys&operations=add_member_to_workspace')).toEqual([
      all[0],
      all[2],
    ]);
    expect(await found(`?workspace_id=${workspace}`)).toEqual([all[2]]);
    expect(await found(`?workspace_id=${workspace.toUpperCase()}`)).toEqual([all[2]]);
    expect(await found(`?workspace_id=${randomUUID()}`)).toEqual([]);
    const ahead = new Date(Date.now() + 60_000).toISOString();
    expect(await found(`?start_time=${ahead}`)).toEqual([]);
    const tooFar = await read(`?end_time=${ahead}`);
    expect([tooFar.status, tooFar.body.detail[0].loc]).toEqual([422, ['query', 'end_time']]);
    expect(tooFar.body.detail[0].msg).toContain('at most 10 s ahead of the clock of the database');
    // To the second, as the last assertions need it.
    const soon = new Date(Date.now() + 1_000).toISOString();
    expect(await found(`?end_time=${new Date(Date.now() - 60_000).toISOString()}`)).toEqual([]);
    const since = new Date(Date.now() - 60_000).toISOString();
    expect(await found(`?start_time=${since}&end_time=${soon}`)).toEqual(all);
    // A time without a zone is UTC, whatever the time zone of the platform is; an offset is respected.
    expect(await found(`?start_time=${since.slice(0, -1)}&end_time=${soon.slice(0, 19)}`)).toEqual(all);
    expect(await found(`?start_time=${since.slice(0, 19)}%2B00:00`)).toEqual(all);
    expect(await found(`?start_time=${since.slice(0, 19)}-01:00`)).toEqual([]);
  });

  it('finds what was rejected in a workspace, and what was done to it, by its id', async () => {
    const created = await api.ask('POST', '/api/v1/workspaces', {
      key: admin,
      body: { display_name: 'R&D' },
    });
    const { id } = created.body;
    await api.addWorkspace(organization);
    const viewer = await api.addServiceKey(organization, 'WORKSPACE_VIEWER', id);
    const refused = await api.ask('DELETE', `/v2/listeners/${randomUUID()}`, { key: viewer, tenant: id });
    const one = `/api/v1/workspaces/${id}`;
    const body = { display_name: 'Research' };
    expect([refused.status, (await api.ask('PATCH', one, { key: viewer, body })).status]).toEqual([403, 403]);
    await api.ask('PATCH', one, { key: admin, body });
    await api.ask('DELETE', one, { key: admin });
    const { items } = (await read(`?workspace_id=${id}`)).body;
    expect(items.map((item: OcsfEvent) => [item.api.operation, item.http_response?.code])).toEqual([
      ['delete_workspace', 200],
      ['update_workspace', 200],
      ['update_workspace', 403],
      ['delete_listener', 403],
      ['create_workspace', 200],
    ]);
  });

  it('does not say that a caller who cannot see a workspace was rejected in it', async () => {
    const foreign = await api.addWorkspace(await api.addOrganization());
    const viewer = await api.addServiceKey(
      organization,
      'WORKSPACE_VIEWER',
      await api.addWorkspace(organization),
    );
    const refused = await api.ask('DELETE', `/v2/listeners/${randomUUID()}`, {
      key: viewer,
      tenant: foreign,
    });
    expect(refused.status).toBe(403);
    expect((await read(`?workspace_id=${foreign}`)).body.items).toEqual([]);
    expect((await read()).body.items).toHaveLength(1);
  });

  it.each([
    ['limit', 'limit=0'],
    ['limit', 'limit=101'],
    ['limit', 'limit=ten'],
    ['start_time', 'start_time=yesterday'],
    ['end_time', 'end_time=2026-13-01T00:00:00Z'],
    ['start_time', 'start_time=2026-01-02T00:00:00Z&end_time=2026-01-01T00:00:00Z'],
    ['operations', 'operations=create_workspace&operations=drop_table'],
    ['workspace_id', 'workspace_id=7'],
    ['cursor', 'cursor=nonsense'],
  ])('rejects the %s in ?%s', async (name, query) => {
    const refused = await read(`?${query}`);
    expect(refused.status).toBe(422);
    expect(refused.body.detail[0].loc.slice(0, 2)).toEqual(['query', name]);
  });

  it('of another organization cannot be read with its id or with its cursor', async () => {
    await rename(3);
    const { cursor } = (await read('?limit=1')).body;
    const other = await api.addOrganization();
    const key = await api.addServiceKey(other, 'ORGANIZATION_ADMIN');
    expect((await read('', key)).status).toBe(403);
    const stolen = await api.ask('GET', `/api/v1/audit-logs?limit=1&cursor=${cursor}`, { key });
    expect(stolen.status).toBe(422);
    expect((await api.ask('GET', '/api/v1/audit-logs', { key })).body).toEqual({ cursor: null, items: [] });
  });

  it.each([
    [{ plan: 'developer' }, 'its plan is not enterprise'],
    [{ isPersonal: true }, 'it is a personal organization'],
    [{ config: {} }, 'its feature can_use_audit_logs is off'],
    [{ config: { can_use_audit_logs: false } }, 'its feature can_use_audit_logs is off'],
    [{ config: { can_use_audit_logs: true } }, undefined],
  ])('of an organization with %j is readable, or the response says why not: %s', async (given, reason) => {
    const id = await api.addOrganization(given);
    const key = await api.addServiceKey(id, 'ORGANIZATION_OPERATOR');
    const { status, body } = await api.ask('GET', '/api/v1/audit-logs', { key });
    expect(status).toBe(reason === undefined ? 200 : 403);
    if (reason !== undefined)
      expect(body).toMatchObject({
        detail: `Audit logs are not available to this organization: ${reason}`,
        code: 'forbidden',
      });
  });
});

describe('the default for all organizations', () => {
  it('applies to organizations without a flag of their own, except personal ones', async () => {
    await using open = await createPlatformApi({ canUseAuditLogs: true });
    const statusOf = async (given: Parameters<PlatformApi['addOrganization']>[0]): Promise<number> => {
      const key = await open.addServiceKey(await open.addOrganization(given), 'ORGANIZATION_ADMIN');
      return (await open.ask('GET', '/api/v1/audit-logs', { key })).status;
    };
    expect(await statusOf({ config: {} })).toBe(200);
    expect(await statusOf({ config: { can_use_audit_logs: false } })).toBe(403);
    expect(await statusOf({ config: {}, isPersonal: true })).toBe(403);
    expect(await statusOf({ config: {}, plan: 'plus' })).toBe(403);
  });
});
