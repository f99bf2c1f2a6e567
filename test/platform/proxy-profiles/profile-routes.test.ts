// The routes of proxy profiles: what is shown, kept and rejected.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createProfileScene, HUSH, opaqueRules, type ProfileScene } from './profile-scene.ts';

let scene: ProfileScene;
beforeAll(async () => {
  scene = await createProfileScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

const VALUE_LOC = ['body', 'proxy_config', 'rules', 0, 'headers', 0, 'value'];

describe('a proxy profile', () => {
  it('is created, read, listed, changed and deleted', async () => {
    const { ask } = await scene.addWorkspace();
    const made = await ask('POST', '', { name: ' GitHub ', proxy_config: opaqueRules('a.example.com') });
    expect(made.status).toBe(201);
    const { id } = made.body;
    const shown = opaqueRules('a.example.com', { is_set: true });
    expect(made.body).toMatchObject({ name: 'GitHub', is_default: false, version: 1, proxy_config: shown });
    const read = await ask('GET', `/${id}`);
    expect([read.status, read.body]).toEqual([200, made.body]);
    const { proxy_config: _, ...summary } = made.body;
    expect((await ask('GET')).body).toEqual({ proxy_profiles: [summary], next_cursor: null });
    const renamed = await ask('PATCH', `/${id}`, { name: 'Git' });
    expect([renamed.status, renamed.body.name, renamed.body.version]).toEqual([200, 'Git', 1]);
    const changed = await ask('PATCH', `/${id}`, { proxy_config: { no_proxy: ['b.example.com'] } });
    expect([changed.status, changed.body.version]).toEqual([200, 2]);
    expect(changed.body.proxy_config).toEqual({ no_proxy: ['b.example.com'] });
    expect((await ask('PATCH', `/${id}`, {})).body.version).toBe(2);
    expect((await ask('DELETE', `/${id}`)).status).toBe(204);
    for (const method of ['GET', 'DELETE', 'PATCH']) {
      const { status, body } = await ask(
        method,
        `/${id}`,
        method === 'PATCH' ? { proxy_config: {} } : undefined,
      );
      expect([method, status, body.detail]).toEqual([method, 404, 'Proxy profile not found']);
    }
  });

  it('is listed, oldest first, page by page', async () => {
    const { ask, create } = await scene.addWorkspace();
    for (const name of ['b', 'ä', 'B', 'a', 'c']) await create(name);
    const names: string[] = [];
    for (let cursor = ''; ; ) {
      const { body } = await ask('GET', `?limit=2${cursor}`);
      names.push(...body.proxy_profiles.map((one: { readonly name: string }) => one.name));
      if (body.next_cursor === null) break;
      cursor = `&cursor=${body.next_cursor}`;
    }
    expect(names).toEqual(['b', 'ä', 'B', 'a', 'c']);
    const { body } = await ask('GET', '?limit=2');
    const other = await scene.addWorkspace();
    expect((await other.ask('GET', `?cursor=${body.next_cursor}`)).status).toBe(422);
  });

  it('keeps the opaque values that a change leaves out, but for another destination', async () => {
    const { ask, create } = await scene.addWorkspace();
    const id = await create('one', opaqueRules('a.example.com'));
    const kept = await ask('PATCH', `/${id}`, {
      proxy_config: opaqueRules('a.example.com', { is_set: true }),
    });
    expect([kept.status, kept.body.version]).toEqual([200, 2]);
    const moved = await ask('PATCH', `/${id}`, {
      proxy_config: opaqueRules('evil.example.com', { is_set: true }),
    });
    expect([moved.status, moved.body.detail.map(({ loc }: { loc: unknown }) => loc)]).toEqual([
      422,
      [VALUE_LOC],
    ]);
    expect((await ask('GET', `/${id}`)).body.version).toBe(2);
    const fresh = await ask('POST', '', {
      name: 'two',
      proxy_config: opaqueRules('a.example.com', { is_set: true }),
    });
    expect([fresh.status, fresh.body.detail[0].loc]).toEqual([422, VALUE_LOC]);
  });

  it('has opaque values that are in no response, event, log line or row', async () => {
    const { ask, create } = await scene.addWorkspace();
    const id = await create('hidden', opaqueRules('a.example.com'));
    const invalid = [
      { rules: [{ ...opaqueRules('*.com'), headers: [{ name: HUSH, type: HUSH, value: HUSH }] }] },
      opaqueRules('a.example.com', { value: `${HUSH}\n` }),
      opaqueRules('a.example.com', { value: HUSH, [HUSH]: HUSH }),
      HUSH,
    ];
    const asked = [
      await ask('GET', `/${id}`),
      await ask('GET'),
      await ask('PATCH', `/${id}`, { proxy_config: opaqueRules('b.example.com') }),
      await ask('DELETE', `/${id}`),
    ];
    for (const [at, proxy_config] of invalid.entries()) {
      const rejected = await ask('POST', '', { name: `invalid ${at}`, proxy_config });
      expect([at, rejected.status]).toEqual([at, 422]);
      asked.push(rejected);
    }
    await create('stored', opaqueRules('a.example.com'));
    const { db } = scene.api.database.owner;
    const rows = await db.selectFrom('proxy_profiles').selectAll().execute();
    const events = await db.selectFrom('audit_events').selectAll().execute();
    const all = [
      ...asked.map(({ text }) => text),
      ...scene.api.logged,
      ...rows.flatMap((row) => [JSON.stringify(row), row.sealed.toString('latin1')]),
      ...events.map(({ record }) => record),
    ].join('\n');
    expect(all).toContain('stored');
    expect(all).not.toContain(HUSH);
  });

  it('names workspace secrets that exist', async () => {
    const { api, organizationId } = scene;
    const { ask, workspaceId } = await scene.addWorkspace();
    const proxy_config = {
      rules: [
        {
          match_hosts: ['a.example.com'],
          headers: [{ name: 'Authorization', type: 'workspace_secret', value: 'Bearer {TOKEN}' }],
        },
      ],
    };
    const without = await ask('POST', '', { name: 'one', proxy_config });
    expect([without.status, without.body.detail]).toEqual([
      422,
      [
        {
          loc: VALUE_LOC,
          msg: 'The workspace secret TOKEN does not exist: set it by POST to /api/v1/workspaces/current/secrets first',
          type: 'value_error',
        },
      ],
    ]);
    const key = await api.addServiceKey(organizationId, 'WORKSPACE_ADMIN', workspaceId);
    const set = (value: string) =>
      api.ask('POST', '/api/v1/workspaces/current/secrets', { key, body: [{ key: 'TOKEN', value }] });
    await set('two\nlines');
    const broken = await ask('POST', '', { name: 'one', proxy_config });
    expect([broken.status, broken.body.detail[0].loc]).toEqual([422, VALUE_LOC]);
    await set('hush');
    expect((await ask('POST', '', { name: 'one', proxy_config })).status).toBe(201);
  });

  it('leaves one event of each write, with its id', async () => {
    const { ask, create, workspaceId } = await scene.addWorkspace();
    const id = await create('audited');
    await ask('PATCH', `/${id}`, { name: 'renamed' });
    await ask('DELETE', `/${id}`);
    await ask('POST', '', { name: 'x', proxy_config: { rules: 1 } });
    const events = await scene.api.database.owner.db
      .selectFrom('audit_events')
      .select(['operation', 'record'])
      .where('workspace_id', '=', workspaceId)
      .orderBy('seq')
      .execute();
    expect(
      events.map(({ operation, record }) => {
        const { operation_succeeded, enrichments } = JSON.parse(record);
        return [operation, operation_succeeded, enrichments.resource_ids];
      }),
    ).toEqual([
      ['create_sandbox_proxy_profile', true, [id]],
      ['update_sandbox_proxy_profile', true, [id]],
      ['delete_sandbox_proxy_profile', true, [id]],
      ['create_sandbox_proxy_profile', false, []],
    ]);
  });
});

describe('what the operator sets', () => {
  const callbacks = [{ match_hosts: ['a.example.com'], url: 'http://10.0.0.1/', ttl_seconds: 60 }];
  const body = { name: 'calling', proxy_config: { callbacks } };

  it('callbacks to private addresses are accepted', async () => {
    expect((await (await scene.addWorkspace()).ask('POST', '', body)).status).toBe(201);
  });

  it('callbacks to private addresses are rejected where sandboxes.private_callbacks is false', async () => {
    await using closed = await createProfileScene({ config: { sandboxes: { private_callbacks: false } } });
    const rejected = await (await closed.addWorkspace()).ask('POST', '', body);
    expect([rejected.status, rejected.body.detail[0].loc]).toEqual([
      422,
      ['body', 'proxy_config', 'callbacks', 0, 'url'],
    ]);
  });

  it('without a master key nothing is stored, and the response says why', async () => {
    await using bare = await createProfileScene({ hasMasterKey: false });
    const { ask } = await bare.addWorkspace();
    const made = await ask('POST', '', { name: 'one', proxy_config: {} });
    expect([made.status, made.body.detail]).toEqual([
      503,
      expect.stringContaining('sallyport platform init'),
    ]);
    expect((await ask('GET')).body.proxy_profiles).toEqual([]);
  });
});
