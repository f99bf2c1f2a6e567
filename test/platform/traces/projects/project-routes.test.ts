import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLog } from '../../../../src/base/log.ts';
import { postgresTraceStore } from '../../../../src/platform/traces/store/postgres-trace-store.ts';
import { removeTraces } from '../../../../src/platform/traces/upkeep/removal.ts';
import { type Asked, createPlatformApi, type PlatformApi } from '../../../support/platform-api.ts';
import { createTestWiring } from '../../../support/test-wiring.ts';
import { partOf, mergeRuns } from '../store/trace-scene.ts';

let api: PlatformApi;
let workspaceId: string;
let key: string;
let otherKey: string;
beforeAll(async () => {
  api = await createPlatformApi();
  const organizationId = await api.addOrganization();
  workspaceId = await api.addWorkspace(organizationId);
  key = await api.addServiceKey(organizationId, 'WORKSPACE_USER', workspaceId);
  otherKey = await api.addServiceKey(
    organizationId,
    'WORKSPACE_USER',
    await api.addWorkspace(organizationId),
  );
});
afterAll(() => api[Symbol.asyncDispose]());

const ask = (method: string, path: string, body?: unknown, as = key): Promise<Asked> =>
  api.ask(method, path, { key: as, ...(body === undefined ? {} : { body }) });
const create = async (fields: object = {}): Promise<Asked['body']> =>
  (await ask('POST', '/sessions', { name: `project ${randomUUID()}`, ...fields })).body;

describe('a project', () => {
  it('is made once for a name, and changed by an upsert', async () => {
    const name = randomUUID();
    const made = await ask('POST', '/api/v1/sessions', { name, extra: { metadata: { a: 1 } }, unknown: 1 });
    expect([made.status, made.body]).toMatchObject([
      200,
      { name, tenant_id: workspaceId, extra: { metadata: { a: 1 } } },
    ]);
    expect((await ask('POST', '/api/sessions', { name })).status).toBe(409);
    const again = await ask('POST', '/sessions?upsert=true', { name, description: 'new' });
    expect([again.status, again.body]).toMatchObject([
      200,
      { id: made.body.id, description: 'new', extra: made.body.extra },
    ]);
  });

  it('has the id that its creator chooses, which is taken in its workspace alone', async () => {
    const id = randomUUID();
    expect(await create({ id })).toMatchObject({ id });
    expect((await ask('POST', '/sessions', { id, name: randomUUID() })).status).toBe(409);
    expect((await ask('POST', '/sessions', { id, name: randomUUID() }, otherKey)).status).toBe(200);
  });

  it('is changed where the change has a field', async () => {
    const { id, name } = await create({ description: 'old' });
    const changed = await ask('PATCH', `/sessions/${id}`, { end_time: '2026-11-20T12:00:00' });
    expect(changed.body).toMatchObject({
      id,
      name,
      description: 'old',
      end_time: '2026-11-20T12:00:00.000Z',
    });
    const taken = await create();
    expect((await ask('PATCH', `/sessions/${id}`, { name: taken.name })).status).toBe(409);
  });

  it('of another workspace is not found by any route', async () => {
    const { id, name } = await create();
    for (const [method, path, body] of [
      ['GET', `/sessions/${id}`],
      ['PATCH', `/sessions/${id}`, { name: 'taken over' }],
      ['DELETE', `/sessions/${id}`],
      ['DELETE', `/sessions?session_ids=${id}`],
    ] as const)
      expect([method, (await ask(method, path, body, otherKey)).status]).toEqual([method, 404]);
    expect((await ask('GET', `/sessions?name=${name}`, undefined, otherKey)).body).toEqual([]);
    expect((await ask('GET', `/sessions/${id}`)).body).toMatchObject({ name });
  });

  it('named twice is deleted once, in whatever case its id is written', async () => {
    const { id } = await create();
    const path = `/sessions?session_ids=${id.toUpperCase()}&session_ids=${id}`;
    expect((await ask('DELETE', path)).status).toBe(200);
  });

  it('is found by name, part of a name, id and metadata, in pages', async () => {
    const mark = randomUUID();
    const made = [
      await create({
        name: `${mark} 1 one`,
        extra: { metadata: { mark, n: 1 } },
        start_time: '2026-01-01T00:00:00Z',
      }),
      await create({
        name: `${mark} 2 TWO`,
        extra: { metadata: { mark, n: 2 } },
        start_time: '2026-02-01T00:00:00Z',
      }),
    ];
    const find = async (query: string): Promise<readonly string[]> =>
      (await ask('GET', `/sessions?${query}`)).body.map((one: { readonly id: string }) => one.id);
    expect(await find(`name_contains=${mark} 2 two`)).toEqual([made[1].id]);
    expect(await find(`name_contains=${mark}`)).toEqual([made[1].id, made[0].id]);
    expect(await find(`name_contains=${mark}&sort_by_desc=false&limit=1&offset=1`)).toEqual([made[1].id]);
    expect(await find(`id=${made[0].id}&id=${made[1].id}&sort_by=name`)).toEqual([made[1].id, made[0].id]);
    expect(await find(`metadata=${encodeURIComponent(JSON.stringify({ mark, n: 1 }))}`)).toEqual([
      made[0].id,
    ]);
    for (const wrong of ['{', '[]', '"\\u0000"', '{"a":"\\u0000"}'])
      expect((await ask('GET', `/sessions?metadata=${encodeURIComponent(wrong)}`)).body).toEqual([]);
  });

  it('has the statistics of its runs, which go with it', async () => {
    const { id } = await create();
    const end = { end_time: '2026-11-20T12:00:02.123456Z' };
    const root = partOf({
      project: { rank: 2, id },
      values: { ...end, usage_in_extra: { total_tokens: 5, total_cost: '0.25' } },
    });
    const child = partOf({
      ...{ project: { rank: 2, id }, values: { ...end, error: 'broken' } },
      start: { trace_id: root.id, parent_run_id: root.id, parent_run_ids: [root.id] },
    });
    const { store } = api.database;
    await mergeRuns(store, workspaceId, [root, child]);
    const attachment = {
      workspace_id: workspaceId,
      run_id: child.id,
      name: 'file',
      mime_type: 'a/b',
      size: 1,
    };
    await store.db
      .insertInto('trace_attachments')
      .values({ ...attachment, object: randomUUID() })
      .execute();
    // It came before its run, and has no project yet.
    expect((await ask('POST', '/feedback', { run_id: child.id, key: 'k' })).status).toBe(200);
    await store.db.updateTable('trace_feedback').set({ session_id: null }).execute();
    const { body } = await ask('GET', `/sessions/${id}?include_stats=true`);
    expect(body).toMatchObject({
      ...{ run_count: 1, latency_p50: 2, total_tokens: 5, total_cost: '0.250000000', error_rate: 0 },
      last_run_start_time_live: '2026-11-20T12:00:00.123Z',
    });
    const listed = await ask('GET', `/sessions?id=${id}&include_stats=true`);
    expect(listed.body).toEqual([body]);
    expect((await ask('DELETE', `/sessions/${id}`)).status).toBe(200);
    expect((await ask('GET', `/sessions/${id}`)).status).toBe(404);
    const sameId = { id, name: randomUUID() };
    expect((await ask('POST', '/sessions', sameId)).body).toMatchObject({ detail: /being removed/ });
    expect((await ask('GET', `/sessions?name=${sameId.name}`)).body).toEqual([]);
    await removeTraces.run(
      {},
      {
        ...{
          id: '1',
          store,
          log: createLog('info', { write: () => undefined }),
          signal: new AbortController().signal,
        },
        send: createTestWiring().send,
      },
    );
    for (const run of [root, child])
      expect(await postgresTraceStore.readRun(store.db, { workspaceId, id: run.id })).toBeUndefined();
    for (const table of ['trace_removals', 'trace_attachments', 'trace_feedback'] as const)
      expect(await api.database.owner.db.selectFrom(table).selectAll().execute()).toEqual([]);
    expect((await ask('POST', '/sessions', sameId)).status).toBe(200);
  });
});
