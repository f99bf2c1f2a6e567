// Permissions that are revoked while a request is in progress: its body is delayed until they are revoked. The request then
// writes nothing, and its rejection is in the audit log.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sql } from '../../../src/platform/store/sql.ts';
import { type Ask, type Asked, createPlatformApi, type PlatformApi } from '../../support/platform-api.ts';

let api: PlatformApi;
let organization: string;
let workspace: string;
let admin: string;
let nowMs = Date.now();

beforeAll(async () => {
  api = await createPlatformApi({ now: () => nowMs });
  organization = await api.addOrganization();
  workspace = await api.addWorkspace(organization);
  admin = await api.addServiceKey(organization, 'ORGANIZATION_ADMIN');
});
afterAll(async () => api[Symbol.asyncDispose]());

async function made(path: string, body?: unknown): Promise<Asked['body']> {
  const asked = await api.ask('POST', path, { key: admin, tenant: workspace, ...(body ? { body } : {}) });
  expect([200, 201]).toContain(asked.status);
  return asked.body;
}

/** Sends a request whose body continues after its first byte only when `meanwhile` has ended. */
async function askSlowly(
  method: string,
  path: string,
  { body, ...ask }: Ask,
  meanwhile: () => Promise<unknown>,
): Promise<Asked> {
  const bytes = new TextEncoder().encode(JSON.stringify(body));
  const isWanted = Promise.withResolvers<void>();
  const isOver = Promise.withResolvers<void>();
  const pieces = [bytes.subarray(0, 1), bytes.subarray(1)];
  const raw = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const piece = pieces.shift();
        if (piece === undefined) return controller.close();
        if (pieces.length === 0) {
          isWanted.resolve();
          await isOver.promise;
        }
        controller.enqueue(piece);
      },
    },
    { highWaterMark: 0 },
  );
  const asked = api.ask(method, path, { ...ask, raw });
  await isWanted.promise;
  await meanwhile();
  isOver.resolve();
  return asked;
}

async function remove(path: string): Promise<void> {
  expect([200, 204]).toContain((await api.ask('DELETE', path, { key: admin, tenant: workspace })).status);
}

async function lastEvent(): Promise<unknown> {
  const { operation, record } = await api.database.owner.db
    .selectFrom('audit_events')
    .select(['operation', 'record'])
    .orderBy('seq', 'desc')
    .executeTakeFirstOrThrow();
  const { operation_succeeded, enrichments } = JSON.parse(record);
  return [operation, operation_succeeded, enrichments.response_status_code];
}

const ofOrganization = '/api/v1/orgs/current/service-keys';

describe('a caller who has sent a request a moment before', () => {
  const create = (key: string, description: string): Promise<Asked> =>
    api.ask('POST', ofOrganization, { key, body: { role: 'ORGANIZATION_VIEWER', description } });

  it('creates no key once its own key is deleted', async () => {
    const { id, key } = await made(ofOrganization, { role: 'ORGANIZATION_ADMIN' });
    expect((await create(key, 'before')).status).toBe(200);
    await remove(`${ofOrganization}/${id}`);
    expect((await create(key, 'after its end')).status).toBe(401);
    expect(await lastEvent()).toEqual(['create_service_key', false, 401]);
    const listed = await api.ask('GET', ofOrganization, { key: admin });
    expect(listed.text).not.toContain('after its end');
  });

  it('has the role that they were given since, and no other one', async () => {
    const role = 'ORGANIZATION_ADMIN';
    await made('/api/v1/orgs/current/members', { email: 'constant@example.test', role });
    const member = { email: 'changing@example.test', role };
    const { id, user_id } = await made('/api/v1/orgs/current/members', member);
    const { key } = await made('/api/v1/orgs/current/personal-access-tokens', { user_id });
    const change = async (changed: string): Promise<void> => {
      const path = `/api/v1/orgs/current/members/${id}`;
      expect((await api.ask('PATCH', path, { key: admin, body: { role: changed } })).status).toBe(200);
    };
    const statuses = [(await create(key, 'as an administrator')).status];
    await change('ORGANIZATION_VIEWER');
    statuses.push((await create(key, 'as a viewer')).status);
    await change('ORGANIZATION_ADMIN');
    statuses.push((await create(key, 'as an administrator again')).status);
    expect(statuses).toEqual([200, 403, 200]);
  });
});

describe('a request with a delayed body', () => {
  it('creates no key when its own key was deleted', async () => {
    const { id, key } = await made(ofOrganization, { role: 'ORGANIZATION_ADMIN' });
    const body = { role: 'ORGANIZATION_ADMIN', description: 'a backdoor' };
    const late = await askSlowly('POST', ofOrganization, { key, body }, () =>
      remove(`${ofOrganization}/${id}`),
    );
    expect(late.status).toBe(401);
    const listed = await api.ask('GET', ofOrganization, { key: admin });
    expect(listed.text).not.toContain('a backdoor');
  });

  it('creates no key when its own key has expired', async () => {
    const expires_at = new Date(Date.now() + 60_000).toISOString();
    const { key } = await made('/api/v1/api-key', { role: 'WORKSPACE_ADMIN', expires_at });
    const late = await askSlowly('POST', '/api/v1/api-key', { key, body: {} }, async () => {
      nowMs += 120_000;
    });
    expect(late.status).toBe(401);
    expect(await lastEvent()).toEqual(['create_api_key', false, 401]);
  });

  it('cannot promote its caller after a demotion', async () => {
    const role = 'ORGANIZATION_ADMIN';
    await made('/api/v1/orgs/current/members', { email: 'first@example.test', role });
    const { id, user_id } = await made('/api/v1/orgs/current/members', { email: 'late@example.test', role });
    const { key } = await made('/api/v1/orgs/current/personal-access-tokens', { user_id });
    const path = `/api/v1/orgs/current/members/${id}`;
    const late = await askSlowly('PATCH', path, { key, body: { role } }, async () => {
      const body = { role: 'ORGANIZATION_VIEWER' };
      expect((await api.ask('PATCH', path, { key: admin, body })).status).toBe(200);
    });
    expect([late.status, late.body]).toEqual([
      403,
      { detail: 'This request requires the permission organization:manage', code: 'forbidden' },
    ]);
    expect(await lastEvent()).toEqual(['update_org_member', false, 403]);
  });

  it('creates nothing in a workspace after its caller was removed from it', async () => {
    const member = { email: 'gone@example.test', role: 'ORGANIZATION_USER' };
    const { user_id } = await made('/api/v1/orgs/current/members', member);
    const inside = '/api/v1/workspaces/current/members';
    const { id } = await made(inside, { user_id, role: 'WORKSPACE_ADMIN' });
    const { key } = await made('/api/v1/orgs/current/personal-access-tokens', { user_id });
    const body = { compute_type: 'k8s', compute_id: 'late', compute_config: {} };
    const ask = { key, tenant: workspace, body };
    const late = await askSlowly('POST', '/v2/listeners', ask, () => remove(`${inside}/${id}`));
    expect(late.status).toBe(403);
    expect(await lastEvent()).toEqual(['create_listener', false, 403]);
  });

  it('stores no record when its sandbox token was deleted', async () => {
    const { id, token } = await made('/v1/sandboxes/box/tokens');
    const counts = { bytes_up: 0, bytes_down: 0, duration_ms: 1, revision: 1, number: 1 };
    const record = { ...counts, time: '2026-11-22T00:00:00Z', sandbox: 'box', outcome: 'forwarded' };
    const body = { source: randomUUID(), records: [record] };
    const late = await askSlowly('POST', '/v1/sandbox-records', { key: token, body }, () =>
      remove(`/v1/sandboxes/box/tokens/${id}`),
    );
    expect(late.status).toBe(401);
    const { records } = (await api.ask('GET', '/v1/sandboxes/box/records', { key: admin, tenant: workspace }))
      .body;
    expect(records).toEqual([]);
  });
});

describe('a write that is sent while a revocation waits for the audit chain', () => {
  /** Sends the revocation and then the write while a writer holds the chain; both complete after it. */
  async function race(revoke: () => Promise<Asked>, write: () => Promise<Asked>): Promise<readonly Asked[]> {
    const asked: Promise<Asked>[] = [];
    await api.database.owner.write(async (trx) => {
      await sql`select public.audit_lock(${organization})`.execute(trx);
      for (const [at, ask] of [revoke, write].entries()) {
        asked.push(ask());
        await untilWaiting(at + 1);
      }
    });
    return Promise.all(asked);
  }

  /** Until at least so many statements on this database wait for a lock: the last use of a key may be among them. */
  async function untilWaiting(expected: number): Promise<void> {
    const waiting = sql<{ readonly count: number }>`select count(*)::int from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`;
    for (let count = 0; count < expected; )
      count = (await waiting.execute(api.database.owner.db)).rows[0]?.count ?? 0;
  }

  async function namesOfKeys(): Promise<string> {
    return (await api.ask('GET', ofOrganization, { key: admin })).text;
  }

  const boxes = '/v1/sandboxes/box/tokens';
  /** Of one record. */
  const batch = () => {
    const counts = { bytes_up: 0, bytes_down: 0, duration_ms: 1, revision: 1, number: 1 };
    const record = { ...counts, time: '2026-11-22T00:00:00Z', sandbox: 'box', outcome: 'forwarded' };
    return { source: randomUUID(), records: [record] };
  };

  it('renames no organization for a member who is being removed, and neither waits for a deadlock', async () => {
    const role = 'ORGANIZATION_ADMIN';
    await made('/api/v1/orgs/current/members', { email: 'stays@example.test', role });
    const member = { email: 'renaming@example.test', role };
    const { id, user_id } = await made('/api/v1/orgs/current/members', member);
    const { key } = await made('/api/v1/orgs/current/personal-access-tokens', { user_id });
    const asked: Promise<Asked>[] = [];
    await api.database.owner.write(async (trx) => {
      await sql`select from organizations where id = ${organization} for no key update`.execute(trx);
      asked.push(api.ask('DELETE', `/api/v1/orgs/current/members/${id}`, { key: admin }));
      await untilWaiting(1);
      const body = { display_name: 'Renamed late' };
      asked.push(api.ask('PATCH', '/api/v1/orgs/current/info', { key, body }));
      await untilWaiting(2);
      // The one who waits for the organization holds nothing that the removal needs: that would be a deadlock.
      await sql`select from organization_members where id = ${id} for update nowait`.execute(trx);
    });
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([200, 401]);
  });

  it('stores no record with the token of a sandbox that is being deleted', async () => {
    const { id, token } = await made(boxes);
    const [revoked, late] = await race(
      () => api.ask('DELETE', `${boxes}/${id}`, { key: admin, tenant: workspace }),
      () => api.ask('POST', '/v1/sandbox-records', { key: token, body: batch() }),
    );
    expect([revoked?.status, late?.status]).toEqual([204, 401]);
  });

  it('stores no record after the deletion of its token, which waits for one that is being stored', async () => {
    const { id, token } = await made(boxes);
    const body = batch();
    const done: string[] = [];
    const asked: Promise<unknown>[] = [];
    const { owner } = api.database;
    // The insertion waits for another one of the same record.
    await owner.write(async (trx) => {
      const { source, records } = body;
      await trx
        .insertInto('sandbox_records')
        .values({
          ...{ workspace_id: workspace, sandbox: 'box', source, record: '{}' },
          ...{ number: String(records[0]?.number), time: new Date(records[0]?.time ?? 0) },
        })
        .execute();
      const stored = api.ask('POST', '/v1/sandbox-records', { key: token, body });
      asked.push(stored.then(({ status }) => done.push(`stored ${status}`)));
      await untilWaiting(1);
      const deleted = api.ask('DELETE', `${boxes}/${id}`, { key: admin, tenant: workspace });
      asked.push(deleted.then(({ status }) => done.push(`deleted ${status}`)));
      await Promise.race([deleted, untilWaiting(2)]);
      expect(done).toEqual([]);
    });
    await Promise.all(asked);
    expect(done.toSorted()).toEqual(['deleted 204', 'stored 200']);
  });

  const backdoor = { role: 'ORGANIZATION_ADMIN', description: 'a second backdoor' };

  it('creates no key with a key that is being deleted', async () => {
    const { id, key } = await made(ofOrganization, { role: 'ORGANIZATION_ADMIN' });
    const [revoked, late] = await race(
      () => api.ask('DELETE', `${ofOrganization}/${id}`, { key: admin }),
      () => api.ask('POST', ofOrganization, { key, body: backdoor }),
    );
    expect([revoked?.status, late?.status]).toEqual([200, 401]);
    expect(await lastEvent()).toEqual(['create_service_key', false, 401]);
    expect(await namesOfKeys()).not.toContain(backdoor.description);
  });

  it.each([
    ['removed from the organization', 'DELETE', undefined, 401],
    ['demoted', 'PATCH', { role: 'ORGANIZATION_VIEWER' }, 403],
  ] as const)('creates no key with a token of a member who is being %s', async (_, method, body, status) => {
    const email = `${randomUUID()}@example.test`;
    const { id, user_id } = await made('/api/v1/orgs/current/members', { email, role: 'ORGANIZATION_ADMIN' });
    const { key } = await made('/api/v1/orgs/current/personal-access-tokens', { user_id });
    const [revoked, late] = await race(
      () => api.ask(method, `/api/v1/orgs/current/members/${id}`, { key: admin, ...(body && { body }) }),
      () => api.ask('POST', ofOrganization, { key, body: backdoor }),
    );
    expect([revoked?.status, late?.status]).toEqual([200, status]);
    expect(await lastEvent()).toEqual(['create_service_key', false, status]);
    expect(await namesOfKeys()).not.toContain(backdoor.description);
  });

  it.each([
    ['removed from the workspace', 'DELETE', undefined],
    ['demoted in it', 'PATCH', { role: 'WORKSPACE_VIEWER' }],
  ] as const)('creates no listener with a token of a member who is being %s', async (_, method, body) => {
    const email = `${randomUUID()}@example.test`;
    const { user_id } = await made('/api/v1/orgs/current/members', { email, role: 'ORGANIZATION_USER' });
    const inside = '/api/v1/workspaces/current/members';
    const { id } = await made(inside, { user_id, role: 'WORKSPACE_ADMIN' });
    const { key } = await made('/api/v1/orgs/current/personal-access-tokens', { user_id });
    const [revoked, late] = await race(
      () => api.ask(method, `${inside}/${id}`, { key: admin, tenant: workspace, ...(body && { body }) }),
      () =>
        api.ask('POST', '/v2/listeners', {
          key,
          tenant: workspace,
          body: { compute_type: 'k8s', compute_id: randomUUID(), compute_config: {} },
        }),
    );
    expect([revoked?.status, late?.status]).toEqual([200, 403]);
    expect(await lastEvent()).toEqual(['create_listener', false, 403]);
  });

  it.each([
    ['removed from it', 'DELETE', undefined, 404],
    ['demoted in it', 'PATCH', { role: 'WORKSPACE_VIEWER' }, 403],
  ] as const)(
    'renames no workspace with a token of a member who is being %s',
    async (_, method, body, status) => {
      const email = `${randomUUID()}@example.test`;
      const { user_id } = await made('/api/v1/orgs/current/members', { email, role: 'ORGANIZATION_USER' });
      const inside = '/api/v1/workspaces/current/members';
      const { id } = await made(inside, { user_id, role: 'WORKSPACE_ADMIN' });
      const { key } = await made('/api/v1/orgs/current/personal-access-tokens', { user_id });
      const [revoked, late] = await race(
        () => api.ask(method, `${inside}/${id}`, { key: admin, tenant: workspace, ...(body && { body }) }),
        () =>
          api.ask('PATCH', `/api/v1/workspaces/${workspace}`, { key, body: { display_name: 'taken over' } }),
      );
      expect([revoked?.status, late?.status]).toEqual([200, status]);
      expect(await lastEvent()).toEqual(['update_workspace', false, status]);
    },
  );
});
