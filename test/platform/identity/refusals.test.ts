// Rejected keys and headers as a client sees them.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mintKey } from '../../../src/platform/identity/api-key.ts';
import { type Ask, type Asked, createPlatformApi, type PlatformApi } from '../../support/platform-api.ts';

let api: PlatformApi;
let organization: string;
let workspace: string;
let key: string;
let nowMs = Date.parse('2026-11-22T00:00:00Z');

beforeAll(async () => {
  api = await createPlatformApi({ now: () => nowMs });
  organization = await api.addOrganization();
  workspace = await api.addWorkspace(organization);
  key = await api.addServiceKey(organization, 'ORGANIZATION_ADMIN');
});
afterAll(async () => api[Symbol.asyncDispose]());

function read(options: Ask): Promise<Asked> {
  return api.ask('GET', '/api/v1/workspaces/current/members', options);
}

describe('a wrong key', () => {
  it('is a 401 with WWW-Authenticate: Bearer, and the same message whatever is wrong', async () => {
    const { id, text } = { id: randomUUID(), text: mintKey('personal').text };
    const responses = [
      await read({ key: text }),
      await read({ bearer: text }),
      await read({ key: 'sp_sk_' }),
      await read({ key, bearer: text, tenant: workspace }),
      await read({ key: text, tenant: id, organization: id }),
    ];
    for (const { status, headers } of responses)
      expect([status, headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
    expect(new Set(responses.map((response) => response.text)).size).toBe(1);
  });

  it('sent too often is a 429 with Retry-After, and a valid key is still accepted', async () => {
    const peer = '2001:db8::7';
    for (let at = 0; at < 30; at += 1) expect((await read({ key: 'wrong', peer })).status).toBe(401);
    const refused = await read({ key: 'wrong', peer: '2001:db8::8' });
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '60']);
    expect((await read({ key, peer, tenant: workspace })).status).toBe(200);
    nowMs += 60_000;
    expect((await read({ key: 'wrong', peer })).status).toBe(401);
  });

  it('leaves no audit event: it belongs to no organization', async () => {
    await api.ask('PATCH', '/api/v1/orgs/current/info', {
      key: 'wrong',
      organization,
      body: { display_name: 'x' },
    });
    const { db } = api.database.owner;
    expect(await db.selectFrom('audit_events').select('id').execute()).toEqual([]);
  });

  it('is counted together with wrong sandbox tokens; a request without a token is not counted', async () => {
    const peer = '198.51.100.9';
    const send = (ask: Ask): Promise<Asked> =>
      api.ask('POST', '/v1/sandbox-records', { peer, body: {}, ...ask });
    for (let at = 0; at < 40; at += 1) expect((await send({})).status).toBe(401);
    for (let at = 0; at < 15; at += 1) expect((await read({ key: 'wrong', peer })).status).toBe(401);
    for (let at = 0; at < 15; at += 1) expect((await send({ bearer: 'wrong' })).status).toBe(401);
    const refused = await send({ bearer: `sp_sb_${'a'.repeat(43)}` });
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '60']);
    const path = '/v1/sandboxes/box/tokens';
    const { token } = (await api.ask('POST', path, { key, tenant: workspace })).body;
    expect((await send({ bearer: token })).status).toBe(422);
  });
});

describe('a header that names an organization or a workspace', () => {
  it('is a 403 with the same message, whatever it names', async () => {
    const elsewhere = await api.addOrganization();
    const foreign = await api.addWorkspace(elsewhere);
    const tenants = [await read({ key, tenant: foreign }), await read({ key, tenant: randomUUID() })];
    expect(tenants.map(({ status }) => status)).toEqual([403, 403]);
    expect(tenants[0]?.text).toBe(tenants[1]?.text);
    const organizations = [
      await read({ key, organization: elsewhere }),
      await read({ key, organization: randomUUID() }),
      await read({ key, organization: 'nonsense' }),
    ];
    expect(organizations.map(({ status }) => status)).toEqual([403, 403, 403]);
    expect(new Set(organizations.map(({ text }) => text)).size).toBe(1);
  });

  it('is a 422 when a workspace id is malformed', async () => {
    const refused = await read({ key, tenant: 'nonsense' });
    expect([refused.status, refused.body.detail]).toEqual([
      422,
      [{ loc: ['header', 'X-Tenant-Id'], msg: 'Input must be a UUID', type: 'string_pattern_mismatch' }],
    ]);
  });

  it('is required of a key of the organization, however many workspaces there are', async () => {
    for (let count = 1; count <= 2; count += 1) {
      const refused = await read({ key });
      expect([refused.status, refused.body.detail]).toEqual([
        403,
        expect.stringContaining('requires workspace specification'),
      ]);
      expect((await read({ key, tenant: workspace })).status).toBe(200);
      await api.addWorkspace(organization);
    }
  });
});
