// `/v2/listeners`, as control-plane clients use it.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/platform/store/database.ts';
import { sql } from '../../../src/platform/store/sql.ts';
import { type Asked, createPlatformApi, type PlatformApi } from '../../support/platform-api.ts';

let api: PlatformApi;
let organization: string;
let workspace: string;
let key: string;

beforeAll(async () => {
  api = await createPlatformApi();
  organization = await api.addOrganization();
  workspace = await api.addWorkspace(organization);
  key = await api.addServiceKey(organization, 'WORKSPACE_ADMIN', workspace);
});
afterAll(async () => api[Symbol.asyncDispose]());

/** Resolves when so many statements wait for the lock of another transaction. */
async function blocked(db: Database, count = 1): Promise<void> {
  const waiting = sql`
    select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  while ((await waiting.execute(db)).rows.length < count);
}

const path = '/v2/listeners';
const document = (): Record<string, unknown> => ({
  compute_type: 'k8s',
  compute_id: randomUUID(),
  compute_config: { k8s_namespaces: ['agents', 'staging'] },
});

async function create(body: unknown = document()): Promise<Asked> {
  return api.ask('POST', path, { key, body });
}

async function eventsOf(id: string): Promise<readonly unknown[]> {
  const rows = await api.database.owner.db
    .selectFrom('audit_events')
    .select(['operation', 'record'])
    .where('record', 'like', `%${id}%`)
    .orderBy('seq')
    .execute();
  return rows.map(({ operation, record }) => [operation, JSON.parse(record).operation_succeeded]);
}

describe('a listener', () => {
  it('is created, read, changed, replaced and deleted, and each change leaves one event', async () => {
    const asked = document();
    const made = await create(asked);
    expect(made.status).toBe(201);
    const { id } = made.body;
    expect(made.body).toEqual({
      ...asked,
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      version: null,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      updated_at: made.body.created_at,
    });
    expect((await api.ask('GET', `${path}/${id}`, { key })).body).toEqual(made.body);

    const patched = await api.ask('PATCH', `${path}/${id}`, { key, body: { version: '1.2.0' } });
    expect([patched.status, patched.body.version]).toEqual([200, '1.2.0']);
    expect(patched.body.compute_config).toEqual(asked['compute_config']);
    expect(Date.parse(patched.body.updated_at)).toBeGreaterThan(Date.parse(made.body.updated_at));

    const replaced = await api.ask('PUT', `${path}/${id}`, {
      key,
      body: { compute_config: { k8s_namespaces: null } },
    });
    expect([replaced.status, replaced.body.version]).toEqual([200, null]);
    expect(replaced.body.compute_config).toEqual({ k8s_namespaces: null });

    const deleted = await api.ask('DELETE', `${path}/${id}`, { key });
    expect([deleted.status, deleted.text]).toEqual([204, '']);
    const gone = await api.ask('GET', `${path}/${id}`, { key });
    expect([gone.status, gone.body]).toEqual([
      404,
      { detail: `Listener ID ${id} not found.`, code: 'not_found' },
    ]);
    expect(await eventsOf(id)).toEqual([
      ['create_listener', true],
      ['update_listener', true],
      ['update_listener', true],
      ['delete_listener', true],
    ]);
  });

  it('has its id in lower case in its events, whatever the case in the path', async () => {
    const { id } = (await create()).body;
    const shouted = `${path}/${id.toUpperCase()}`;
    expect((await api.ask('DELETE', shouted, { key })).status).toBe(204);
    expect((await api.ask('DELETE', shouted, { key })).status).toBe(404);
    expect(await eventsOf(id)).toEqual([
      ['create_listener', true],
      ['delete_listener', true],
      ['delete_listener', false],
    ]);
  });

  it('with a compute id that the workspace already has is a conflict, which leaves an event', async () => {
    const asked = document();
    await create(asked);
    const again = await create(asked);
    expect([again.status, again.body]).toEqual([
      409,
      {
        detail: `Listener for workspace ID '${workspace}' and compute ID '${asked['compute_id']}' already exists.`,
        code: 'conflict',
      },
    ]);
    const last = await api.database.owner.db
      .selectFrom('audit_events')
      .select(['operation', 'record'])
      .where('organization_id', '=', organization)
      .orderBy('seq', 'desc')
      .limit(1)
      .executeTakeFirstOrThrow();
    expect([last.operation, JSON.parse(last.record)]).toMatchObject([
      'create_listener',
      { operation_succeeded: false, enrichments: { response_status_code: 409 } },
    ]);
  });

  it('with a compute id of another workspace is no conflict', async () => {
    const asked = document();
    await create(asked);
    const other = await api.addServiceKey(
      organization,
      'WORKSPACE_ADMIN',
      await api.addWorkspace(organization),
    );
    expect((await api.ask('POST', path, { key: other, body: asked })).status).toBe(201);
  });

  it('of a workspace that is deleted at the same time is rejected like one of an unknown workspace', async () => {
    const { owner } = api.database;
    const brief = await api.addWorkspace(organization);
    const general = await api.addServiceKey(organization, 'ORGANIZATION_ADMIN');
    const own = await api.addServiceKey(organization, 'WORKSPACE_ADMIN', brief);
    // The last use of a key is stored beside a request, at most once a minute: here it would wait as well.
    await api.ask('GET', path, { key: own });
    await api.authenticator.settle();
    const response = await owner.write(async (trx) => {
      await trx.deleteFrom('workspaces').where('id', '=', brief).execute();
      const asked = api.ask('POST', path, { key: general, tenant: brief, body: document() });
      await blocked(owner.db);
      const askedByOwn = api.ask('POST', path, { key: own, body: document() });
      await blocked(owner.db, 2);
      return { asked, askedByOwn };
    });
    const late = await response.asked;
    const later = await api.ask('POST', path, { key: general, tenant: brief, body: document() });
    expect([late.status, late.text]).toEqual([403, later.text]);
    expect(later.status).toBe(403);
    // A key of the workspace is deleted with it.
    expect((await response.askedByOwn).status).toBe(401);
  });

  it('that is unknown cannot be changed, replaced or deleted', async () => {
    const id = randomUUID();
    const body = { compute_config: {} };
    for (const [method, rest] of [
      ['PATCH', { body }],
      ['PUT', { body }],
      ['DELETE', {}],
    ] as const) {
      const response = await api.ask(method, `${path}/${id}`, { key, ...rest });
      expect([method, response.status, response.body]).toEqual([
        method,
        404,
        { detail: `Listener ID ${id} not found.`, code: 'not_found' },
      ]);
    }
    expect(await eventsOf(id)).toEqual([
      ['update_listener', false],
      ['update_listener', false],
      ['delete_listener', false],
    ]);
  });
});

describe('the list', () => {
  it('has consecutive pages, oldest first', async () => {
    const other = await api.addWorkspace(organization);
    const own = await api.addServiceKey(organization, 'WORKSPACE_ADMIN', other);
    const ids: string[] = [];
    for (let count = 0; count < 5; count += 1)
      ids.push((await api.ask('POST', path, { key: own, body: document() })).body.id);
    const seen: string[] = [];
    for (let offset = 0; ; ) {
      const page = await api.ask('GET', `${path}?limit=2&offset=${offset}`, { key: own });
      expect(page.status).toBe(200);
      expect(page.body.offset).toBe(offset + page.body.resources.length);
      if (page.body.resources.length === 0) break;
      seen.push(...page.body.resources.map(({ id }: { id: string }) => id));
      offset = page.body.offset;
    }
    expect(seen).toEqual(ids);
  });

  it.each([
    ['limit=0', 'greater_than_equal'],
    ['limit=101', 'less_than_equal'],
    ['limit=ten', 'int_type'],
    ['offset=-1', 'greater_than_equal'],
  ])('with %s is rejected with the location of the error', async (query, type) => {
    const { status, body } = await api.ask('GET', `${path}?${query}`, { key });
    const loc = ['query', query.split('=')[0]];
    expect([status, body]).toMatchObject([422, { detail: [{ loc, type }] }]);
  });
});

it('a list ignores a query parameter that it does not have: its client may be newer', async () => {
  const { status } = await api.ask('GET', `${path}?size=1&size=2`, { key });
  expect(status).toBe(200);
});

describe('an invalid document', () => {
  const rows: readonly (readonly [string, unknown, readonly (string | number)[], string])[] = [
    ['none', undefined, ['body'], 'missing'],
    ['not an object', [], ['body'], 'dict_type'],
    ['without a type', { ...document(), compute_type: undefined }, ['body', 'compute_type'], 'missing'],
    ['of another type', { ...document(), compute_type: 'vm' }, ['body', 'compute_type'], 'enum'],
    ['with a blank id', { ...document(), compute_id: ' ' }, ['body', 'compute_id'], 'value_error'],
    ['with an empty id', { ...document(), compute_id: '' }, ['body', 'compute_id'], 'string_too_short'],
    [
      'with a line break in the id',
      { ...document(), compute_id: 'a\nb' },
      ['body', 'compute_id'],
      'string_pattern_mismatch',
    ],
    [
      'with a bidirectional mark in the id',
      { ...document(), compute_id: 'a\u202eb' },
      ['body', 'compute_id'],
      'string_pattern_mismatch',
    ],
    ['without a config', { ...document(), compute_config: undefined }, ['body', 'compute_config'], 'missing'],
    [
      'with null for the config',
      { ...document(), compute_config: null },
      ['body', 'compute_config'],
      'dict_type',
    ],
    [
      'with an invalid namespace',
      { ...document(), compute_config: { k8s_namespaces: ['ok', 'Not_OK'] } },
      ['body', 'compute_config', 'k8s_namespaces', 1],
      'string_pattern_mismatch',
    ],
  ];
  it.each(rows)('%s is a 422 with the location of the error', async (_, body, loc, type) => {
    const response = await api.ask('POST', path, { key, body });
    expect([response.status, response.body]).toMatchObject([422, { detail: [{ loc, type }] }]);
  });

  it.each(['not-a-uuid', '%00', '..%2f..', "' or 1=1 --"])('%j instead of an id is a 422', async (id) => {
    const response = await api.ask('GET', `${path}/${encodeURI(id)}`, { key });
    expect([response.status, response.body]).toMatchObject([
      422,
      { detail: [{ loc: ['path', 'listener_id'] }] },
    ]);
  });

  it.each(['compute_type', 'compute_id'])('cannot change %s', async (name) => {
    const made = (await create()).body;
    const body = { [name]: 'another', version: '2' };
    const response = await api.ask('PATCH', `${path}/${made.id}`, { key, body });
    expect([response.status, response.body]).toMatchObject([200, { [name]: made[name], version: '2' }]);
  });

  it('ignores what it does not know, as clients may be newer', async () => {
    const id = randomUUID();
    const config = { k8s_namespaces: ['default'], k8s_cluster_role: 'admin' };
    const response = await create({ ...document(), id, region: 'eu', compute_config: config });
    expect(response.status).toBe(201);
    expect(response.body.id).not.toBe(id);
    expect(response.body.compute_config).toEqual({ k8s_namespaces: ['default'] });
    expect(response.body).not.toHaveProperty('region');
  });

  it.each(['PATCH', 'PUT'])('may be what was read, with what is to be changed: %s', async (method) => {
    const created = (await create()).body;
    const body = { ...created, version: '2' };
    const response = await api.ask(method, `${path}/${created.id}`, { key, body });
    expect([response.status, response.body]).toEqual([200, { ...body, updated_at: expect.any(String) }]);
  });

  it('is not found by a UUID of any variant', async () => {
    const response = await api.ask('GET', `${path}/12345678-1234-0234-8234-123456789012`, { key });
    expect(response.status).toBe(404);
  });
});

describe('an organization that is not entitled', () => {
  it.each([
    ['of another plan', { plan: 'developer' }],
    ['that is personal', { isPersonal: true }],
  ])('%s gets the same 403 for every route with a listener, whatever the id', async (_, given) => {
    const poor = await api.addOrganization(given);
    const there = await api.addWorkspace(poor);
    const own = await api.addServiceKey(poor, 'WORKSPACE_ADMIN', there);
    const one = `${path}/${randomUUID()}`;
    const body = { compute_config: {} };
    for (const [method, at, sent] of [
      ['POST', path, { body: document() }],
      ['GET', one, {}],
      ['PATCH', one, { body }],
      ['PUT', one, { body }],
      ['DELETE', one, {}],
    ] as const) {
      const response = await api.ask(method, at, { key: own, ...sent });
      expect([method, response.status, response.body]).toEqual([
        method,
        403,
        {
          detail: `Listeners cannot be created for workspace ID '${there}'. Creating listeners is only allowed for organizations with self-hosted enterprise plans.`,
          code: 'forbidden',
        },
      ]);
    }
    expect((await api.ask('GET', path, { key: own })).body).toEqual({ resources: [], offset: 0 });
  });
});

describe('a role', () => {
  it('with read permissions only can read, and nothing else', async () => {
    const viewer = await api.addServiceKey(organization, 'WORKSPACE_VIEWER', workspace);
    const { id } = (await create()).body;
    expect((await api.ask('GET', `${path}/${id}`, { key: viewer })).status).toBe(200);
    expect((await api.ask('POST', path, { key: viewer, body: document() })).status).toBe(403);
    expect((await api.ask('DELETE', `${path}/${id}`, { key: viewer })).status).toBe(403);
    expect((await api.ask('GET', `${path}/${id}`, { key })).status).toBe(200);
  });
});
