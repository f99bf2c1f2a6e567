// `/assistants` over a real database: versions, what users see of each other, and what happens at once.
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Auth } from '@langchain/langgraph-sdk/auth';
import '../../../../src/platform/agent-server/assistants/assistant-graph-routes.ts';
import '../../../../src/platform/agent-server/assistants/assistant-list-routes.ts';
import '../../../../src/platform/agent-server/assistants/assistant-route.ts';
import '../../../../src/platform/agent-server/assistants/assistant-search.ts';
import '../../../../src/platform/agent-server/assistants/assistant-text.ts';
import { patchAssistant } from '../../../../src/platform/agent-server/assistants/assistant-writing.ts';
import '../../../../src/platform/agent-server/assistants/version-limits.ts';
import { defaultAssistantId } from '../../../../src/platform/agent-server/assistants/assistant-id.ts';
import { createAssistantRoutes } from '../../../../src/platform/agent-server/assistants/assistant-routes.ts';
import { ensureDefaultAssistants } from '../../../../src/platform/agent-server/assistants/default-assistants.ts';
import { WorkerError } from '../../../../src/platform/agent-server/workers/worker-error.ts';
import type { Gate } from '../../../../src/platform/agent-server/access/gate.ts';
import type { Route } from '../../../../src/platform/api/route.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { handlerGate, openGate, ownerAuth } from '../../../support/agent-gate.ts';
import { type Asked, createPlatformApi, type PlatformApi } from '../../../support/platform-api.ts';

const GRAPHS = new Map([
  ['agent', { description: 'The agent' }],
  ['other', { description: null }],
]);
const UNKNOWN = '00000000-0000-4000-8000-000000000000';

let api: PlatformApi;
/** Calls of workers, by their method. */
let call: (method: string, params: Record<string, unknown>) => unknown = () => '{}';

const under = (prefix: string, gate: Gate): readonly Route[] =>
  createAssistantRoutes({
    gate,
    deployment: { graphs: GRAPHS },
    workers: { call: async (method, params) => (await call(method, params as never)) as never },
  }).map((route) => ({ ...route, path: `${prefix}${route.path}` }));

/** Of their own, they see what is shared too; nothing is theirs to delete but their threads. */
const team = new Auth()
  .authenticate((request: Request) => request.headers.get('x-user') ?? 'nobody')
  .on('threads', ({ user }) => ({ owner: user.identity }))
  .on('assistants', () => ({}));

beforeAll(async () => {
  const routes = [
    ...under('', openGate()),
    ...under('/users', handlerGate(ownerAuth())),
    ...under('/team', handlerGate(team)),
  ];
  api = await createPlatformApi({ routes });
  await ensureDefaultAssistants(api.database.store, GRAPHS);
});
afterAll(() => api?.[Symbol.asyncDispose]());

const ask = (method: string, path: string, body?: unknown, user?: string): Promise<Asked> =>
  api.ask(method, user === undefined ? path : `/users${path}`, {
    ...(body === undefined ? {} : { body }),
    ...(user === undefined ? {} : { bearer: user }),
  });

async function create(body: object = {}, user?: string): Promise<Record<string, unknown>> {
  const asked = await ask('POST', '/assistants', { graph_id: 'agent', ...body }, user);
  expect([asked.status, asked.text]).toEqual([200, asked.text]);
  return asked.body;
}

describe('an assistant', () => {
  it('is created with version 1 and read as it was returned', async () => {
    const made = await create({ config: { tags: ['a'] }, context: { n: 1.5 }, metadata: { a: { b: [1] } } });
    expect(made).toEqual({
      ...{ assistant_id: expect.any(String), graph_id: 'agent', version: 1, name: 'Untitled' },
      ...{ description: null, config: { tags: ['a'] }, context: { n: 1.5 }, metadata: { a: { b: [1] } } },
      ...{ created_at: expect.stringMatching(/^\d{4}-.*Z$/), updated_at: expect.any(String) },
    });
    expect((await ask('GET', `/assistants/${made['assistant_id']}`)).body).toEqual(made);
  });

  it('with an id that exists is a conflict, unless that is asked for', async () => {
    const assistant_id = '11111111-0000-4000-8000-000000000001';
    const made = await create({ assistant_id, name: 'one' });
    const again = { graph_id: 'agent', assistant_id, name: 'two' };
    expect((await ask('POST', '/assistants', again)).status).toBe(409);
    expect((await ask('POST', '/assistants', { ...again, if_exists: 'raise' })).status).toBe(409);
    expect((await ask('POST', '/assistants', { ...again, if_exists: 'do_nothing' })).body).toEqual(made);
  });

  it.each<readonly [string, object, number]>([
    ['an unknown graph', { graph_id: 'absent' }, 404],
    ['no graph', { graph_id: undefined }, 422],
    ['a malformed id', { assistant_id: 'x' }, 422],
    ['metadata that is a list', { metadata: [] }, 422],
    ['U+0000 in its metadata', { metadata: { a: '\0' } }, 422],
    ['another if_exists', { if_exists: 'replace' }, 422],
  ])('with %s is refused, and nothing is written', async (_, body, status) => {
    const before = (await ask('POST', '/assistants/count', {})).body;
    expect((await ask('POST', '/assistants', { graph_id: 'agent', ...body })).status).toBe(status);
    expect((await ask('POST', '/assistants/count', {})).body).toBe(before);
  });

  it.each(['GET', 'PATCH', 'DELETE'])('that is not there: %s', async (method) => {
    const body = method === 'PATCH' ? {} : undefined;
    for (const id of [UNKNOWN, 'absent'])
      expect((await ask(method, `/assistants/${id}`, body)).status).toBe(404);
  });
});

describe('a version', () => {
  it('is made by every change; what is left out stays, context is replaced, metadata merged', async () => {
    const made = await create({
      ...{ name: 'one', config: { tags: ['a'] }, context: { a: 1, b: 2 }, metadata: { a: 1 } },
    });
    const path = `/assistants/${made['assistant_id']}`;
    const second = (await ask('PATCH', path, { context: { c: 3 }, metadata: { b: 2 } })).body;
    expect(second).toMatchObject({
      ...{ version: 2, name: 'one', config: { tags: ['a'] }, context: { c: 3 }, metadata: { a: 1, b: 2 } },
    });
    expect(second.context).toEqual({ c: 3 });
    const third = (await ask('PATCH', path, { name: 'three' })).body;
    expect(third).toMatchObject({ version: 3, name: 'three', context: { c: 3 }, metadata: { a: 1, b: 2 } });
    expect((await ask('GET', path)).body).toEqual(third);
    const versions = (await ask('POST', `${path}/versions`, {})).body;
    expect(versions.map((one: { version: number; name: string }) => [one.version, one.name])).toEqual([
      [3, 'three'],
      [2, 'one'],
      [1, 'one'],
    ]);
    expect(
      (await ask('POST', `${path}/versions`, { metadata: { b: 2 }, limit: 1, offset: 1 })).body,
    ).toHaveLength(1);
    expect((await ask('POST', `${path}/versions`)).body).toHaveLength(3);
  });

  it('is restored whole, and the next number follows the largest', async () => {
    const made = await create({
      name: 'one',
      context: { a: 1 },
      config: { tags: ['a'] },
      metadata: { a: 1 },
    });
    const path = `/assistants/${made['assistant_id']}`;
    await ask('PATCH', path, {
      ...{ graph_id: 'other', name: 'two', description: 'd', context: { b: 2 } },
      ...{ config: { tags: ['b'] }, metadata: { b: 2 } },
    });
    const restored = (await ask('POST', `${path}/latest`, { version: 1 })).body;
    expect({ ...restored, updated_at: 0 }).toEqual({ ...made, updated_at: 0 });
    expect((await ask('POST', `${path}/latest?version=2`)).body).toMatchObject({
      ...{ version: 2, graph_id: 'other', name: 'two', description: 'd', context: { b: 2 } },
      metadata: { a: 1, b: 2 },
    });
    await ask('POST', `${path}/latest`, { version: 1 });
    expect((await ask('PATCH', path, {})).body).toMatchObject({ version: 3, name: 'one', context: { a: 1 } });
  });

  it('that is not there, or is none, is refused', async () => {
    const { assistant_id } = await create();
    const path = `/assistants/${assistant_id}`;
    const missing = await ask('POST', `${path}/latest`, { version: 2 });
    expect([missing.status, missing.body.detail]).toEqual([404, 'Assistant version not found']);
    expect((await ask('POST', `/assistants/${UNKNOWN}/latest`, { version: 1 })).status).toBe(404);
    for (const body of [{}, { version: 0 }, { version: '1' }, { version: 2 ** 40 }])
      expect((await ask('POST', `${path}/latest`, body)).status).toBe(422);
    expect((await ask('PATCH', path, { graph_id: 'absent' })).status).toBe(404);
    expect((await ask('GET', path)).body.version).toBe(1);
    expect((await ask('POST', `/assistants/${UNKNOWN}/versions`, {})).status).toBe(404);
    expect((await ask('DELETE', `${path}/versions`)).status).toBe(405);
    expect((await ask('DELETE', `${path}/versions/1`)).status).toBe(404);
  });

  it('is made by each of several changes at once', async () => {
    const { assistant_id } = await create();
    const path = `/assistants/${assistant_id}`;
    const changes = Array.from({ length: 8 }, (_, n) => ask('PATCH', path, { metadata: { [`k${n}`]: n } }));
    const versions = (await Promise.all(changes)).map(({ body }) => body.version);
    expect(versions.toSorted()).toEqual([2, 3, 4, 5, 6, 7, 8, 9]);
    const last = (await ask('GET', path)).body;
    expect([last.version, Object.keys(last.metadata)]).toEqual([9, expect.objectContaining({ length: 8 })]);
  });
});

describe('a search', () => {
  it('finds by graph, by a part of the name and by metadata, in pages', async () => {
    for (let n = 0; n < 3; n += 1)
      await create({ graph_id: 'other', name: `Found ${n} 100%`, metadata: { search: { n } } });
    const found = async (body: object) => (await ask('POST', '/assistants/search', body)).body.length;
    expect(await found({ name: 'found' })).toBe(3);
    expect(await found({ name: '1 100%', graph_id: 'other' })).toBe(1);
    expect(await found({ name: 'found', graph_id: 'agent' })).toBe(0);
    expect(await found({ metadata: { search: { n: 2 } } })).toBe(1);
    expect(await found({ name: 'f%d' })).toBe(0);
    expect((await ask('POST', '/assistants/count', { name: 'FOUND' })).text.trim()).toBe('3');
    const page = { name: 'found', limit: 2, sort_by: 'name', sort_order: 'asc', select: ['name'] };
    const first = await ask('POST', '/assistants/search', page);
    expect(first.body).toEqual([{ name: 'Found 0 100%' }, { name: 'Found 1 100%' }]);
    expect([first.headers.get('x-pagination-next'), first.headers.get('x-pagination-total')]).toEqual([
      '2',
      '3',
    ]);
    const last = await ask('POST', '/assistants/search', { ...page, offset: 2 });
    expect(last.body).toEqual([{ name: 'Found 2 100%' }]);
    expect([last.headers.get('x-pagination-next'), last.headers.get('x-pagination-total')]).toEqual([
      null,
      '3',
    ]);
  });

  it.each<readonly [string, object]>([
    ['limit', { limit: 0 }],
    ['limit', { limit: 1001 }],
    ['offset', { offset: -1 }],
    ['sort_by', { sort_by: 'metadata' }],
    ['select', { select: ['owner'] }],
  ])('with a wrong %s is refused', async (field, body) => {
    const { status, body: response } = await ask('POST', '/assistants/search', body);
    expect([status, response.detail[0].loc[1]]).toEqual([422, field]);
  });
});

describe('the default assistant', () => {
  it('is found by its graph, and named in every place of an id', async () => {
    const { body } = await ask('GET', '/assistants/agent');
    expect(body).toMatchObject({
      ...{ assistant_id: defaultAssistantId('agent'), graph_id: 'agent', version: 1, name: 'agent' },
      ...{ description: 'The agent', metadata: { created_by: 'system' } },
    });
    expect((await ask('POST', '/assistants/agent/versions', {})).body).toHaveLength(1);
    expect((await ask('PATCH', '/assistants/agent', { context: { a: 1 } })).body.version).toBe(2);
    expect((await ask('POST', '/assistants/agent/latest', { version: 1 })).body.context).toEqual({});
  });

  it('is made once by several processes, and keeps its changes', async () => {
    const graphs = new Map([
      ...GRAPHS,
      ['later', { description: null }],
      ['other two', { description: null }],
    ]);
    await ask('PATCH', '/assistants/other', { name: 'changed' });
    await Promise.all(Array.from({ length: 4 }, () => ensureDefaultAssistants(api.database.store, graphs)));
    const { body } = await ask('POST', '/assistants/search', { metadata: { created_by: 'system' } });
    expect(body.map((one: { name: string }) => one.name).toSorted()).toEqual([
      ...['agent', 'changed', 'later', 'other two'],
    ]);
  });
});

describe('the id of a graph that is not served yet', () => {
  it('is not a client’s to keep', async () => {
    const graphs = new Map([['future', { description: 'Later' }]]);
    const assistant_id = defaultAssistantId('future');
    await create({ assistant_id, name: 'mine', context: { a: 1 }, metadata: { owner: 'eve' } }, 'eve');
    await ask('PATCH', `/assistants/${assistant_id}`, { name: 'still mine' }, 'eve');
    const { store } = api.database;
    const both = [ensureDefaultAssistants(store, graphs), ensureDefaultAssistants(store, graphs)];
    expect((await Promise.all(both)).flat()).toContain('future');
    expect(await ensureDefaultAssistants(store, graphs)).toEqual([]);
    expect((await ask('GET', `/assistants/${assistant_id}`)).body).toMatchObject({
      ...{ graph_id: 'future', name: 'future', version: 1, description: 'Later' },
      ...{ context: {}, metadata: { created_by: 'system' } },
    });
    expect((await ask('POST', `/assistants/${assistant_id}/versions`, {})).body).toHaveLength(1);
    expect((await ask('GET', `/assistants/${assistant_id}`, undefined, 'eve')).status).toBe(404);
  });
});

describe('what is too large', () => {
  const LARGE = 'a'.repeat(17_000_000);

  it('is no page: of assistants, and of their versions', async () => {
    const metadata = { of: 'large' };
    const made = [];
    for (let index = 0; index < 4; index += 1) made.push(await create({ metadata }));
    const config = JSON.stringify({ text: LARGE });
    const ids = made.map(({ assistant_id: id }) => String(id));
    const { db } = api.database.store;
    await db.updateTable('agent_assistants').set({ config }).where('assistant_id', 'in', ids).execute();
    const search = (body: object) => ask('POST', '/assistants/search', { metadata, ...body });
    const { status, body } = await search({});
    expect([status, body.detail]).toEqual([400, expect.stringContaining('more than 67108864 bytes')]);
    expect((await search({ select: ['name'] })).body).toHaveLength(4);
    const [id = ''] = ids;
    const version = { assistant_id: id, graph_id: 'agent', name: 'a', description: null, context: '{}' };
    const rows = [2, 3, 4, 5].map((number) => ({ ...version, version: number, config, metadata: '{}' }));
    await db.insertInto('agent_assistant_versions').values(rows).execute();
    expect((await ask('POST', `/assistants/${id}/versions`, {})).status).toBe(400);
    expect((await ask('POST', `/assistants/${id}/versions`, { limit: 1, offset: 4 })).body).toHaveLength(1);
  });

  it('is no further version: of more than an assistant may have', async () => {
    const { assistant_id: id } = await create();
    const { db } = api.database.store;
    const addVersions = sql`insert into agent_assistant_versions
      (assistant_id, version, graph_id, name, config, context, metadata)
      select ${id}, version, 'agent', 'a', '{}', '{}', '{}' from generate_series(2, 9999) as version`;
    await addVersions.execute(db);
    const change = (name: string) => ask('PATCH', `/assistants/${id}`, { name });
    expect(await change('last')).toMatchObject({ status: 200, body: { version: 10_000 } });
    const { status, body } = await change('one more');
    const detail =
      'An assistant has at most 10000 versions: create another assistant for further changes, or delete this one with all its versions';
    expect([status, body.detail]).toEqual([409, detail]);
    expect((await ask('GET', `/assistants/${id}`)).body).toMatchObject({ version: 10_000, name: 'last' });
    // Going back makes none.
    expect((await ask('POST', `/assistants/${id}/latest`, { version: 1 })).status).toBe(200);
  });

  it('is no further version: of more bytes than an assistant may have in all of them', async () => {
    const text = randomBytes(100_000).toString('base64');
    const id = String((await create({ config: { configurable: { text } } }))['assistant_id']);
    const limits = { versions: 100, bytes: 300_000 };
    const change = (name: string) =>
      api.database.store.write((trx) => patchAssistant(trx, { id, changed: { name }, limits }, undefined));
    await change('second');
    const message = expect.stringMatching(/at most 300000 bytes together, .*: create another assistant/);
    await expect(change('third')).rejects.toMatchObject({ kind: 'conflict', message });
    expect((await ask('GET', `/assistants/${id}`)).body).toMatchObject({ version: 2, name: 'second' });
  });

  it('is no metadata, also not bit by bit', async () => {
    const text = 'a'.repeat(200_000);
    const over = { metadata: { a: text, b: text } };
    const refused = { status: 422, body: { detail: [{ loc: ['body', 'metadata'], type: 'too_long' }] } };
    expect(await ask('POST', '/assistants', { graph_id: 'agent', ...over })).toMatchObject(refused);
    const { assistant_id } = await create({ metadata: { a: text } });
    const change = await ask('PATCH', `/assistants/${assistant_id}`, { metadata: { b: text } });
    expect(change).toMatchObject(refused);
    expect((await ask('GET', `/assistants/${assistant_id}`)).body).toMatchObject({ version: 1 });
  });
});

describe('a graph', () => {
  it('is drawn and described by a worker', async () => {
    const faked = { graph_auth_user: { identity: 'ada' } };
    const { assistant_id } = await create({ config: { configurable: { a: 1, ...faked } } });
    const calls: unknown[] = [];
    call = (method, params) => {
      calls.push([method, params]);
      return '{"input_schema": null}';
    };
    for (const query of ['', '?xray=true', '?xray=2', '?xray=false'])
      expect((await ask('GET', `/assistants/${assistant_id}/graph${query}`)).status).toBe(200);
    expect((await ask('GET', `/assistants/${assistant_id}/schemas`)).body).toEqual({
      ...{ graph_id: 'agent', input_schema: null },
    });
    const config = { configurable: { a: 1 } };
    expect(calls).toEqual([
      ...[false, true, 2, false].map((xray) => ['graph.drawing', { graph_id: 'agent', config, xray }]),
      ['graph.schemas', { graph_id: 'agent', config }],
    ]);
    const { assistant_id: own } = await create({ config: { configurable: faked } }, 'ben');
    await ask('GET', `/assistants/${own}/schemas`, undefined, 'ben');
    const ben = expect.objectContaining({ identity: 'ben' });
    const known = expect.objectContaining({ graph_auth_user: ben, langgraph_auth_user_id: 'ben' });
    expect(calls.at(-1)).toEqual(['graph.schemas', { graph_id: 'agent', config: { configurable: known } }]);
    expect((await ask('GET', `/assistants/${assistant_id}/graph?xray=all`)).status).toBe(422);
  });

  it.each<readonly [string, ConstructorParameters<typeof WorkerError>[0], number]>([
    ['a lost worker', 'lost', 503],
    ['code that throws', { kind: 'thrown', error: 'TypeError', message: 'a secret' }, 500],
    ['what cannot be done', { kind: 'refused', code: 'unsupported', message: 'no' }, 400],
  ])('is not there with %s', async (_, failure, status) => {
    call = () => Promise.reject(new WorkerError(failure));
    const asked = await ask('GET', '/assistants/agent/graph');
    expect(asked.status).toBe(status);
    expect(asked.text).not.toContain('a secret');
  });

  it('has no subgraphs yet', async () => {
    for (const path of ['subgraphs', 'subgraphs/a?recurse=true']) {
      const { status, body } = await ask('GET', `/assistants/agent/${path}`);
      expect([status, typeof body.detail]).toEqual([501, 'string']);
    }
  });
});

describe('users', () => {
  it('see, count, change and delete nothing of each other', async () => {
    call = () => '{"nodes": []}';
    const own = await create({ name: 'of ada' }, 'ada');
    expect(own['metadata']).toEqual({ owner: 'ada' });
    const path = `/assistants/${own['assistant_id']}`;
    const missing = await ask('GET', `/assistants/${UNKNOWN}`, undefined, 'eve');
    const requests: readonly (readonly [string, string, unknown?])[] = [
      ['GET', path],
      ['PATCH', path, { name: 'taken' }],
      ['DELETE', path],
      ['DELETE', `${path}?delete_threads=true`],
      ['POST', `${path}/versions`, {}],
      ['POST', `${path}/latest`, { version: 1 }],
      ['GET', `${path}/graph`],
      ['GET', `${path}/schemas`],
    ];
    for (const [method, to, body] of requests) {
      const asked = await ask(method, to, body, 'eve');
      expect([asked.status, asked.text]).toEqual([404, missing.text]);
    }
    const taken = { graph_id: 'agent', assistant_id: own['assistant_id'], if_exists: 'do_nothing' };
    expect((await ask('POST', '/assistants', taken, 'eve')).status).toBe(409);
    expect((await ask('POST', '/assistants/search', {}, 'eve')).body).toEqual([]);
    expect((await ask('POST', '/assistants/count', {}, 'eve')).body).toBe(0);
    expect((await ask('GET', '/assistants/agent', undefined, 'eve')).status).toBe(404);
    expect((await ask('GET', path, undefined, 'ada')).body).toEqual(own);
    expect((await ask('POST', '/assistants/count', {}, 'ada')).body).toBe(1);
    expect((await ask('DELETE', path, undefined, 'ada')).body).toEqual([own['assistant_id']]);
  });

  it('cannot give a filter or metadata themselves', async () => {
    const own = await create({ metadata: { owner: 'eve', more: 1 } }, 'ada');
    expect(own['metadata']).toEqual({ owner: 'ada', more: 1 });
    const path = `/assistants/${own['assistant_id']}`;
    expect((await ask('PATCH', path, { metadata: { owner: 'eve' } }, 'ada')).body.metadata.owner).toBe('ada');
    expect((await ask('POST', '/assistants/search', { metadata: { owner: 'ada' } }, 'eve')).body).toEqual([]);
  });

  it('see and restore no version whose metadata is of somebody else', async () => {
    const own = await create({}, 'ada');
    const path = `/assistants/${own['assistant_id']}`;
    await api.database.owner.db
      .updateTable('agent_assistant_versions')
      .set({ metadata: '{"owner": "eve"}' } as never)
      .where('assistant_id', '=', String(own['assistant_id']))
      .execute();
    await ask('PATCH', path, {}, 'ada');
    const versions = (await ask('POST', `${path}/versions`, {}, 'ada')).body;
    expect(versions.map((one: { version: number }) => one.version)).toEqual([2]);
    expect((await ask('POST', `${path}/latest`, { version: 1 }, 'ada')).status).toBe(404);
  });
});

describe('a deletion', () => {
  async function addRun(assistantId: unknown, owner: string, status: 'success' | 'pending'): Promise<string> {
    const { db } = api.database.store;
    const metadata = JSON.stringify({ assistant_id: assistantId, owner });
    const thread = db.insertInto('agent_threads').values({ metadata }).returning('thread_id');
    const { thread_id } = await thread.executeTakeFirstOrThrow();
    const run = {
      ...{ run_id: crypto.randomUUID(), thread_id, assistant_id: String(assistantId), assistant_version: 1 },
      ...{ graph_id: 'agent', kwargs: '{}', multitask_strategy: 'enqueue', status },
    };
    await db
      .insertInto('agent_runs')
      .values(run as never)
      .execute();
    return thread_id;
  }
  const exists = async (threadId: string): Promise<boolean> => {
    const query = api.database.store.db.selectFrom('agent_threads').select('thread_id');
    return (await query.where('thread_id', '=', threadId).executeTakeFirst()) !== undefined;
  };

  it('takes all versions and ended runs, and leaves the threads', async () => {
    const { assistant_id } = await create();
    await ask('PATCH', `/assistants/${assistant_id}`, {});
    const thread = await addRun(assistant_id, 'ada', 'success');
    expect((await ask('DELETE', `/assistants/${assistant_id}`)).body).toEqual([assistant_id]);
    expect((await ask('GET', `/assistants/${assistant_id}`)).status).toBe(404);
    expect(await exists(thread)).toBe(true);
    const left = api.database.store.db.selectFrom('agent_assistant_versions').select('version');
    expect(await left.where('assistant_id', '=', String(assistant_id)).execute()).toEqual([]);
  });

  it('takes the threads on request, of which none is somebody else’s', async () => {
    const { assistant_id } = await create();
    const [own, foreign] = [
      await addRun(assistant_id, 'ada', 'success'),
      await addRun(assistant_id, 'eve', 'success'),
    ];
    const path = `/team/assistants/${assistant_id}?delete_threads=true`;
    expect((await api.ask('DELETE', path, { headers: { 'x-user': 'ada' } })).status).toBe(200);
    expect([await exists(own), await exists(foreign)]).toEqual([false, true]);
  });

  it('waits for no run: one that has not ended is a conflict', async () => {
    const { assistant_id } = await create();
    await addRun(assistant_id, 'ada', 'pending');
    for (const query of ['', '?delete_threads=true'])
      expect((await ask('DELETE', `/assistants/${assistant_id}${query}`)).status).toBe(409);
    expect((await ask('GET', `/assistants/${assistant_id}`)).status).toBe(200);
  });
});
