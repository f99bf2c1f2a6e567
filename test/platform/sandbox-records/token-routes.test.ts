import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hashKey } from '../../../src/platform/identity/api-key.ts';
import { type RecordScene, batchOf, createRecordScene } from './record-scene.ts';

let scene: RecordScene;
beforeAll(async () => {
  scene = await createRecordScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

describe('a token of a sandbox', () => {
  it('is shown once, stored as a hash, listed in short form, and rejected as soon as it is deleted', async () => {
    const { api, key } = scene;
    const made = await api.ask('POST', '/v1/sandboxes/box/tokens', { key, body: {} });
    expect(made.status).toBe(201);
    const { token, ...shown } = made.body;
    expect(token).toMatch(/^sp_sb_[0-9A-Za-z]{49}$/);
    expect(shown).toMatchObject({ sandbox: 'box', expires_at: null });
    expect(shown.short_token).toBe(`${token.slice(0, 10)}...${token.slice(-4)}`);
    const listed = await api.ask('GET', '/v1/sandboxes/box/tokens', { key });
    expect(listed.body).toEqual({ tokens: [shown] });
    const rows = await api.database.owner.db.selectFrom('sandbox_tokens').selectAll().execute();
    const text = JSON.stringify(rows) + rows.map(({ hash }) => hash.toString('latin1')).join();
    expect(text).not.toContain(token.slice(10, -4));
    expect((await scene.send(token, batchOf(1))).status).toBe(200);
    const path = `/v1/sandboxes/box/tokens/${shown.id}`;
    expect((await api.ask('DELETE', path, { key })).status).toBe(204);
    expect((await scene.send(token, batchOf(1))).status).toBe(401);
    expect((await api.ask('DELETE', path, { key })).status).toBe(404);
    expect(api.logged.join('')).not.toContain(token);
  });

  it('leaves events of its creation and deletion that do not contain it', async () => {
    const { api, key, workspaceId } = scene;
    const made = await api.ask('POST', '/v1/sandboxes/audited/tokens', { key });
    await api.ask('DELETE', `/v1/sandboxes/audited/tokens/${made.body.id}`, { key });
    const events = await api.database.owner.db
      .selectFrom('audit_events')
      .select(['operation', 'workspace_id', 'record'])
      .orderBy('seq', 'desc')
      .limit(2)
      .execute();
    expect(events.map(({ operation }) => operation)).toEqual([
      'delete_sandbox_token',
      'create_sandbox_token',
    ]);
    for (const { record, workspace_id } of events) {
      expect([record.includes(made.body.id), workspace_id]).toEqual([true, workspaceId]);
      expect(record).not.toContain(made.body.token);
    }
  });

  it('that was created before tokens had a checksum is accepted as before', async () => {
    const { api, workspaceId } = scene;
    const earlier = `sp_sb_${'a_-Z'.repeat(10)}abc`;
    const row = {
      workspace_id: workspaceId,
      sandbox: 'earlier',
      short_token: 'sp_sb_a_-Z…-Zabc',
      expires_at: null,
    };
    await api.database.owner.db
      .insertInto('sandbox_tokens')
      .values({ ...row, hash: hashKey(earlier) })
      .execute();
    expect((await scene.send(earlier, { ...batchOf(1) })).status).toBe(200);
  });

  it('expires', async () => {
    const { api, key } = scene;
    const early = await api.ask('POST', '/v1/sandboxes/box/tokens', {
      key,
      body: { expires_at: '2020-01-01T00:00:00Z' },
    });
    expect(early.status).toBe(400);
    const until = new Date(Date.now() + 60_000).toISOString();
    const made = await api.ask('POST', '/v1/sandboxes/box/tokens', { key, body: { expires_at: until } });
    expect(made.body.expires_at).toBe(until);
    expect((await scene.send(made.body.token, batchOf(1))).status).toBe(200);
    await api.database.owner.db
      .updateTable('sandbox_tokens')
      .set({ expires_at: new Date(Date.now() - 1) } as never)
      .where('id', '=', made.body.id)
      .execute();
    expect((await scene.send(made.body.token, batchOf(1))).status).toBe(401);
  });

  it('expires not later than the key that creates it', async () => {
    const { api, key, organizationId, workspaceId } = scene;
    const soon = new Date(Date.now() + 3_600_000).toISOString();
    const later = new Date(Date.now() + 7_200_000).toISOString();
    const made = await api.ask('POST', '/api/v1/api-key', {
      key,
      body: { role: 'WORKSPACE_ADMIN', expires_at: soon },
    });
    const ask = (body: unknown, by: string, tenant?: string) =>
      api.ask('POST', '/v1/sandboxes/bound/tokens', { key: by, body, ...(tenant && { tenant }) });
    for (const body of [{}, { expires_at: null }, { expires_at: later }]) {
      const refused = await ask(body, made.body.key);
      expect([refused.status, refused.body.detail]).toEqual([
        403,
        `expires_at must not be later than that of your API key: ${soon}`,
      ]);
    }
    expect((await ask({ expires_at: soon }, made.body.key)).status).toBe(201);
    // Who manages the organization could create any key.
    const manager = await api.addServiceKey(organizationId, 'ORGANIZATION_ADMIN');
    await api.database.owner.db
      .updateTable('api_keys')
      .set({ expires_at: new Date(soon) } as never)
      .where('hash', '=', hashKey(manager))
      .execute();
    expect((await ask({}, manager, workspaceId)).status).toBe(201);
  });

  it('is accepted as X-Api-Key or as Bearer, and every wrong token gets the same message', async () => {
    const { api } = scene;
    const token = await scene.token('box');
    const body = batchOf(1);
    expect((await api.ask('POST', '/v1/sandbox-records', { key: token, body })).status).toBe(200);
    const other = `sp_sb_${'A'.repeat(43)}`;
    const asked = [{}, { key: 'x' }, { bearer: other }, { key: scene.key }, { key: token, bearer: other }];
    const refused = await Promise.all(
      asked.map((by) => api.ask('POST', '/v1/sandbox-records', { ...by, body })),
    );
    expect(new Set(refused.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(refused[0]?.status).toBe(401);
    expect((await api.ask('GET', '/v1/sandboxes/box/records', { key: token })).status).toBe(401);
  });

  it('is created and deleted with sandboxes:manage only, and not visible in another workspace', async () => {
    const { api, organizationId } = scene;
    const made = await api.ask('POST', '/v1/sandboxes/box/tokens', { key: scene.key });
    const path = `/v1/sandboxes/box/tokens/${made.body.id}`;
    const viewer = await api.addServiceKey(organizationId, 'WORKSPACE_VIEWER', scene.workspaceId);
    expect((await api.ask('POST', '/v1/sandboxes/box/tokens', { key: viewer })).status).toBe(403);
    expect((await api.ask('DELETE', path, { key: viewer })).status).toBe(403);
    const elsewhere = await api.addServiceKey(
      organizationId,
      'WORKSPACE_ADMIN',
      await api.addWorkspace(organizationId),
    );
    const foreign = await api.ask('DELETE', path, { key: elsewhere });
    const absent = await api.ask('DELETE', '/v1/sandboxes/box/tokens/00000000-0000-4000-8000-000000000000', {
      key: elsewhere,
    });
    expect([foreign.status, foreign.text]).toEqual([404, absent.text]);
    expect((await api.ask('GET', '/v1/sandboxes/box/tokens', { key: elsewhere })).body).toEqual({
      tokens: [],
    });
    expect((await api.ask('DELETE', path, { key: scene.key })).status).toBe(204);
  });

  it('is one of at most fifty, also when many are created at the same time', async () => {
    const { api, key } = scene;
    const all = Array.from({ length: 80 }, () => api.ask('POST', '/v1/sandboxes/crowded/tokens', { key }));
    const statuses = (await Promise.all(all)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 201)).toHaveLength(50);
    expect(statuses.filter((status) => status === 409)).toHaveLength(30);
    expect((await api.ask('POST', '/v1/sandboxes/Not_A_Label/tokens', { key })).status).toBe(422);
  });
});
