// Who may make administrators, act for others, and create keys that outlive their own.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Asked, createPlatformApi, type PlatformApi } from '../../support/platform-api.ts';

let api: PlatformApi;
let organization: string;
let tenant: string;
let admin: string;
let operator: string;

beforeAll(async () => {
  api = await createPlatformApi();
});
afterAll(() => api[Symbol.asyncDispose]());
beforeEach(async () => {
  organization = await api.addOrganization();
  tenant = await api.addWorkspace(organization);
  admin = await api.addServiceKey(organization, 'ORGANIZATION_ADMIN');
  operator = await api.addMemberKey(organization, 'ORGANIZATION_OPERATOR');
});

const members = '/api/v1/orgs/current/members';
const serviceKeys = '/api/v1/orgs/current/service-keys';
const tokens = '/api/v1/orgs/current/personal-access-tokens';
const own = '/api/v1/api-key/current';

function post(path: string, key: string, body: unknown): Promise<Asked> {
  return api.ask('POST', path, { key, tenant, body });
}

async function addMember(role: string): Promise<Asked['body']> {
  const made = await post(members, admin, { email: `${randomUUID()}@example.test`, role });
  expect(made.status).toBe(200);
  return made.body;
}

async function newestEvent(): Promise<Asked['body']> {
  const { body } = await api.ask('GET', '/api/v1/audit-logs?limit=1', { key: admin });
  return body.items[0];
}

describe('an operator of the organization', () => {
  it('reads the audit log and manages the organization', async () => {
    expect((await api.ask('GET', '/api/v1/audit-logs', { key: operator })).status).toBe(200);
    expect((await post('/api/v1/workspaces', operator, { display_name: 'Two' })).status).toBe(200);
    const role = 'ORGANIZATION_OPERATOR';
    expect((await post(serviceKeys, operator, { role })).status).toBe(200);
    expect((await post(members, operator, { email: 'new@example.test', role })).status).toBe(200);
  });

  it('makes no administrator, and changes and removes none', async () => {
    const role = 'ORGANIZATION_ADMIN';
    await addMember(role);
    const { id } = await addMember(role);
    const other = await addMember('ORGANIZATION_USER');
    const asked = [
      post(serviceKeys, operator, { role }),
      post(members, operator, { email: `${randomUUID()}@example.test`, role }),
      api.ask('PATCH', `${members}/${other.id}`, { key: operator, body: { role } }),
      api.ask('PATCH', `${members}/${id}`, { key: operator, body: { role: 'ORGANIZATION_USER' } }),
      api.ask('DELETE', `${members}/${id}`, { key: operator }),
    ];
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([403, 403, 403, 403, 403]);
  });

  it('creates tokens of their own and for nobody else', async () => {
    for (const role of ['ORGANIZATION_ADMIN', 'ORGANIZATION_VIEWER']) {
      const { user_id } = await addMember(role);
      const refused = await post(tokens, operator, { user_id });
      expect([refused.status, refused.body.detail]).toEqual([
        403,
        'This request requires the permission organization:grant_admin',
      ]);
    }
    expect((await post(own, operator, {})).status).toBe(200);
  });
});

describe('a token that an administrator creates for a member', () => {
  it('is shown by the event of each use, and one that the member creates is not', async () => {
    const { user_id } = await addMember('ORGANIZATION_ADMIN');
    const issued = (await post(tokens, admin, { user_id })).body;
    const creation = await newestEvent();
    expect(creation.resources).toEqual([{ uid: issued.id }, { uid: user_id }]);
    expect(creation.actor.user.credential_uid).toBe(issued.created_by_key_id);
    await post('/api/v1/workspaces', issued.key, { display_name: 'Issued' });
    const used = await newestEvent();
    expect(used.actor.user).toMatchObject({ uid: user_id, credential_uid: issued.id });
    expect(used.unmapped.original_audit_log.enrichments.credential_issued_by).toBe(issued.created_by_key_id);
    const chosen = (await post(own, issued.key, {})).body;
    expect([chosen.created_by_key_id, chosen.created_by_user_id]).toEqual([issued.id, user_id]);
    await post('/api/v1/workspaces', chosen.key, { display_name: 'Own' });
    const { enrichments } = (await newestEvent()).unmapped.original_audit_log;
    expect(Object.keys(enrichments)).not.toContain('credential_issued_by');
  });
});

describe('a key that expires', () => {
  const soon = new Date(Date.now() + 3_600_000).toISOString();
  const later = new Date(Date.now() + 7_200_000).toISOString();

  it('creates no key that expires later or never', async () => {
    const { user_id } = await addMember('ORGANIZATION_USER');
    const token = (await post(tokens, admin, { user_id, expires_at: soon })).body.key;
    const ofWorkspace = { role: 'WORKSPACE_ADMIN', expires_at: soon };
    const service = (await post('/api/v1/api-key', admin, ofWorkspace)).body.key;
    for (const [path, key] of [
      [own, token],
      ['/api/v1/api-key', service],
    ] as const) {
      for (const body of [{}, { expires_at: null }, { expires_at: later }]) {
        const refused = await post(path, key, body);
        expect([path, refused.status, refused.body.detail]).toEqual([
          path,
          403,
          `expires_at must not be later than that of your API key: ${soon}`,
        ]);
      }
      expect((await post(path, key, { expires_at: soon })).status).toBe(200);
    }
  });

  it('creates any when it manages the organization', async () => {
    const role = 'ORGANIZATION_OPERATOR';
    const { key } = (await post(serviceKeys, admin, { role, expires_at: soon })).body;
    for (const body of [{ role }, { role, expires_at: later }])
      expect((await post(serviceKeys, key, body)).status).toBe(200);
  });
});
