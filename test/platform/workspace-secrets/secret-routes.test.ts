// Secrets are set, replaced, deleted and listed by key. Their values are in no response, event, log line or row.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSecretScene, type SecretScene, SECRETS } from './secret-scene.ts';

const VALUE = 'a value that nothing may show, 4711';

let scene: SecretScene;
beforeAll(async () => {
  scene = await createSecretScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

describe('the secrets of a workspace', () => {
  it('are set, replaced and deleted in one request, and listed by key', async () => {
    const { key } = await scene.addWorkspace();
    const set = (changes: unknown) => scene.set(changes, { key });
    const first = await set([
      { key: 'b_token', value: VALUE },
      { key: 'A', value: VALUE },
      { key: '_', value: VALUE },
      { key: 'ZULU', value: VALUE },
    ]);
    expect([first.status, first.body]).toEqual([200, {}]);
    expect(await scene.list({ key })).toEqual(['A', 'ZULU', '_', 'b_token']);
    const changes = [
      { key: 'A', value: null },
      { key: 'ABSENT', value: null },
      { key: 'C', value: 'x' },
      { key: '_', value: 'other' },
    ];
    expect((await set(changes)).status).toBe(200);
    expect(await scene.list({ key })).toEqual(['C', 'ZULU', '_', 'b_token']);
    expect((await set([])).status).toBe(200);
  });

  it('are those of one workspace', async () => {
    const other = await scene.addWorkspace();
    await scene.set([{ key: 'ONLY_HERE', value: VALUE }], other);
    expect(await scene.list()).not.toContain('ONLY_HERE');
    await scene.set([{ key: 'ONLY_HERE', value: null }]);
    expect(await scene.list({ key: other.key })).toEqual(['ONLY_HERE']);
  });

  it('have values that are in no response, event, log line or row', async () => {
    const { api, key } = scene;
    const asked = [
      await scene.set([{ key: 'HUSH', value: VALUE }]),
      await scene.set([
        { key: 'HUSH', value: VALUE },
        { key: 'HUSH', value: VALUE },
      ]),
      await scene.set([{ key: VALUE, value: VALUE }]),
      await scene.set([{ key: 'HUSH', value: [VALUE] }]),
      await scene.set([{ key: 'HUSH', value: { [VALUE]: VALUE } }]),
      await scene.set({ HUSH: VALUE }),
      await scene.set([{ key: 'HUSH', value: `${VALUE}\0` }]),
      await scene.set([{ key: 'HUSH', value: VALUE }], { key: VALUE }),
      await api.ask('POST', SECRETS, { key, raw: `[{"key":"HUSH","value":"${VALUE}"` }),
      await api.ask('GET', SECRETS, { key }),
    ];
    expect(asked.map(({ status }) => status)).toEqual([200, 422, 422, 422, 422, 422, 422, 401, 422, 200]);
    const { db } = api.database.owner;
    const rows = await db.selectFrom('workspace_secrets').selectAll().execute();
    const events = await db.selectFrom('audit_events').selectAll().execute();
    const all = [
      JSON.stringify(asked.map(({ text, headers }) => [text, [...headers]])),
      ...api.logged,
      ...rows.flatMap((row) => [JSON.stringify(row), row.sealed.toString('latin1')]),
      ...events.map(({ record }) => record),
    ].join('\n');
    expect(all).toContain('HUSH');
    expect(all).not.toContain(VALUE);
    expect(all).not.toContain(Buffer.from(VALUE).toString('base64').slice(0, 20));
  });

  it('leave one event for each request, with the keys that were changed', async () => {
    const { key, workspaceId } = await scene.addWorkspace();
    await scene.set([{ key: 'ONE', value: VALUE }], { key });
    await scene.set(
      [
        { key: 'TWO', value: VALUE },
        { key: 'ONE', value: null },
        { key: 'ABSENT', value: null },
      ],
      { key },
    );
    // A value in the place of a key.
    const swapped = `ghp_${'x'.repeat(36)}`;
    await scene.set([{ key: swapped, value: 'TOKEN' }], { key });
    await scene.set([{ key: 'not a key', value: 'x' }], { key });
    const events = await scene.api.database.owner.db
      .selectFrom('audit_events')
      .select(['operation', 'record'])
      .where('workspace_id', '=', workspaceId)
      .orderBy('seq')
      .execute();
    expect(new Set(events.map(({ operation }) => operation))).toEqual(new Set(['update_workspace_secrets']));
    const found = events.map(({ record }) => {
      const { operation_succeeded, enrichments } = JSON.parse(record);
      return [operation_succeeded, enrichments.resource_names, enrichments.resource_ids.length];
    });
    expect(found).toEqual([
      [true, ['ONE'], 1],
      [true, ['ONE', 'TWO'], 2],
      [true, ['ghp_xxxx…'], 1],
      [false, undefined, 0],
    ]);
  });

  it('are set by administrators of the workspace only, and listed by all its members', async () => {
    const { api, organizationId, workspaceId } = scene;
    for (const [role, status] of [
      ['WORKSPACE_ADMIN', 200],
      ['WORKSPACE_USER', 403],
      ['WORKSPACE_VIEWER', 403],
    ] as const) {
      const key = await api.addServiceKey(organizationId, role, workspaceId);
      const set = await scene.set([{ key: 'BY_ROLE', value: VALUE }], { key });
      expect([role, set.status]).toEqual([role, status]);
      expect((await api.ask('GET', SECRETS, { key })).status).toBe(200);
    }
  });
});

describe('without a master key', () => {
  it('nothing is stored, the response says what the operator must do, and keys can be listed', async () => {
    await using bare = await createSecretScene({ hasMasterKey: false });
    const set = await bare.set([{ key: 'TOKEN', value: VALUE }]);
    expect([set.status, set.body.detail]).toEqual([
      503,
      'This installation has no master key, so it cannot store secret values: its operator must run sallyport platform init',
    ]);
    expect(set.text).not.toContain(bare.api.masterKeyFile);
    expect(bare.api.logged.join('')).not.toContain(VALUE);
    expect(await bare.list()).toEqual([]);
  });
});
