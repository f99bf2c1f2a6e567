// Which threads a search, a list and a count find.
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { nextTurn } from '../../../../src/base/steps.ts';
import '../../../../src/platform/agent-server/page-size.ts';
import { createThreadRoutes } from '../../../../src/platform/agent-server/threads/thread-routes.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { type AgentApi, createAgentApi } from '../../../support/agent-api.ts';

let api: AgentApi;
/** By name, in the order of their creation. */
const threads = new Map<string, string>();

beforeAll(async () => {
  api = await createAgentApi(createThreadRoutes);
  const { db } = api.database.store;
  const start = Date.now();
  const add = async (name: string, row: object) => {
    const created_at = new Date(start + threads.size * 1000);
    const values = { created_at, metadata: '{}', ...row };
    const insert = db.insertInto('agent_threads').values(values).returning('thread_id');
    threads.set(name, (await insert.executeTakeFirstOrThrow()).thread_id);
  };
  const state = JSON.stringify({ messages: [{ content: 'a' }, { content: 'b' }], n: 1 });
  await add('one', { metadata: '{"owner":"alice","tags":["x","y"]}', values: state, searched_values: state });
  await add('two', {
    metadata: '{"owner":"alice"}',
    status: 'interrupted',
    interrupts: '{"t":[{"value":1}]}',
    values: '{}',
  });
  await add('three', {
    metadata: '{"owner":"bob"}',
    status: 'error',
    error: '{"error":"TypeError","message":"no"}',
  });
  await add('temporary', { metadata: '{"owner":"alice"}', is_temporary: true });
});
afterAll(() => api?.[Symbol.asyncDispose]());

const namesOf = (found: readonly { readonly thread_id: string }[]) =>
  found.map(({ thread_id }) => [...threads].find(([, id]) => id === thread_id)?.[0]);
const search = async (body: object, user?: string) => {
  const found = await api.ask('POST', '/threads/search', { body, ...(user === undefined ? {} : { user }) });
  expect(found.status).toBe(200);
  return namesOf(found.body);
};

describe('POST /threads/search', () => {
  it.each([
    [{}, ['three', 'two', 'one']],
    [{ sort_order: 'asc' }, ['one', 'two', 'three']],
    [{ sort_by: 'status', sort_order: 'asc' }, ['three', 'one', 'two']],
    [{ metadata: { owner: 'alice' } }, ['two', 'one']],
    [{ metadata: { tags: ['y'] } }, ['one']],
    [{ metadata: { owner: 'nobody' } }, []],
    [{ ids: [] }, []],
    [{ ids: [], status: 'idle' }, []],
    [{ values: { n: 1 } }, ['one']],
    [{ values: { messages: [{ content: 'b' }] } }, ['one']],
    [{ values: { n: 2 } }, []],
    [{ status: 'interrupted' }, ['two']],
    [{ limit: 1, offset: 1 }, ['two']],
    [{ ids: null, metadata: null, status: null }, ['three', 'two', 'one']],
  ])('%j', async (body, expected) => {
    expect(await search(body)).toEqual(expected);
  });

  it('by ids, and never a temporary one', async () => {
    const ids = [threads.get('one'), threads.get('temporary')];
    expect(await search({ ids })).toEqual(['one']);
  });

  it('shows each user their own alone', async () => {
    expect(await search({}, 'alice')).toEqual(['two', 'one']);
    expect(await search({ ids: [threads.get('one')] }, 'bob')).toEqual([]);
    expect(await search({ metadata: { owner: 'alice' } }, 'bob')).toEqual([]);
  });

  it('selects members and extracts parts', async () => {
    const extract = {
      last: 'values.messages[-1].content',
      all: 'values.messages',
      none: 'values.a[0]',
      by: 'metadata.owner',
    };
    const body = { select: ['thread_id', 'status', 'context'], extract, sort_order: 'asc', limit: 2 };
    const found = (await api.ask('POST', '/threads/search', { body })).body;
    expect(found).toEqual([
      {
        ...{ thread_id: threads.get('one'), status: 'idle' },
        extracted: { last: 'b', all: [{ content: 'a' }, { content: 'b' }], none: null, by: 'alice' },
      },
      {
        thread_id: threads.get('two'),
        status: 'interrupted',
        extracted: { last: null, all: null, none: null, by: 'alice' },
      },
    ]);
  });

  it('says what threads have, and leaves out what they have not', async () => {
    const [one, two, three] = (await api.ask('POST', '/threads/search', { body: { sort_order: 'asc' } }))
      .body;
    expect(one).toMatchObject({ values: { n: 1 }, interrupts: {} });
    expect(two).toMatchObject({ values: {}, interrupts: { t: [{ value: 1 }] } });
    expect(three).toMatchObject({ error: { error: 'TypeError', message: 'no' }, interrupts: {} });
    expect(Object.keys(three)).not.toContain('values');
  });

  it.each([
    [{ limit: 1 }, '1', '2'],
    [{ limit: 1, offset: 1 }, '2', '3'],
    [{ limit: 3 }, null, '3'],
    [{ offset: 5 }, null, '5'],
  ])('%j: fields of the page', async (body, next, total) => {
    const { headers } = await api.ask('POST', '/threads/search', { body });
    expect([headers.get('x-pagination-next'), headers.get('x-pagination-total')]).toEqual([next, total]);
  });

  it.each([
    [{ limit: 0 }, 'limit'],
    [{ limit: 1001 }, 'limit'],
    [{ offset: -1 }, 'offset'],
    [{ status: 'done' }, 'status'],
    [{ ids: ['x'] }, 'ids'],
    [{ sort_by: 'metadata' }, 'sort_by'],
    [{ sort_order: 'up' }, 'sort_order'],
    [{ select: ['password'] }, 'select'],
    [{ extract: { a: 'thread_id' } }, 'extract'],
    [{ extract: { a: 'values..b' } }, 'extract'],
    [
      { extract: Object.fromEntries(Array.from({ length: 11 }, (_, at) => [`a${at}`, 'values.a'])) },
      'extract',
    ],
    [{ metadata: { a: '\0' } }, 'metadata'],
  ])('%j: 422', async (body, field) => {
    const { status, body: said } = await api.ask('POST', '/threads/search', { body });
    expect([status, said.detail[0].loc.slice(0, 2)]).toEqual([422, ['body', field]]);
  });
});

describe('GET /threads', () => {
  it('lists as the search does', async () => {
    const listed = await api.ask('GET', '/threads?limit=2');
    expect(namesOf(listed.body)).toEqual(['three', 'two']);
    expect(listed.headers.get('x-pagination-next')).toBe('2');
    expect(namesOf((await api.ask('GET', '/threads?status=idle', { user: 'alice' })).body)).toEqual(['one']);
    expect((await api.ask('GET', '/threads?limit=0')).status).toBe(422);
  });
});

describe('POST /threads/count', () => {
  it.each([
    [{}, undefined, 3],
    [{}, 'alice', 2],
    [{ metadata: { owner: 'alice' } }, 'bob', 0],
    [{ status: 'error' }, undefined, 1],
    [{ values: { n: 1 } }, undefined, 1],
  ])('%j of %s', async (body, user, expected) => {
    const ask = { body, ...(user === undefined ? {} : { user }) };
    expect((await api.ask('POST', '/threads/count', ask)).body).toBe(expected);
  });
});

describe('a search with extract', () => {
  it('parses each root once, and lets others have a turn between threads', async () => {
    const owner = 'large';
    const text = JSON.stringify({ messages: Array.from({ length: 4_000 }, (_, n) => ({ n })) });
    const { db } = api.database.store;
    const row = { metadata: JSON.stringify({ owner }), values: text };
    await db
      .insertInto('agent_threads')
      .values(Array.from({ length: 20 }, () => row))
      .execute();
    const names = Array.from({ length: 10 }, (_, at) => [`a${at}`, `values.messages[${at}].n`]);
    const body = { extract: Object.fromEntries(names), select: ['thread_id'], limit: 20 };
    const parse = vi.spyOn(JSON, 'parse');
    let turns = 0;
    const searching = api.ask('POST', '/threads/search', { body, user: owner });
    const search = { isOver: false };
    void searching.then(() => (search.isOver = true));
    let parsedInTurn = 0;
    let before = 0;
    const count = () => parse.mock.calls.filter(([given]) => given === text).length;
    while (!search.isOver) {
      await nextTurn();
      parsedInTurn = Math.max(parsedInTurn, count() - before);
      before = count();
      turns += 1;
    }
    const parsed = count();
    parse.mockRestore();
    const { status, body: found } = await searching;
    expect([status, found.length, found[0].extracted.a7]).toEqual([200, 20, 7]);
    expect([parsed, parsedInTurn < 20, turns > 20]).toEqual([20, true, true]);
  });

  it('refuses too many bytes, also of values that are stored compressed', async () => {
    const owner = 'huge';
    const metadata = JSON.stringify({ owner });
    const values = sql<string>`json_build_object('text', repeat('a', 17000000))`;
    const row = { metadata, values };
    await api.database.store.db.insertInto('agent_threads').values([row, row, row, row]).execute();
    const find = (body: object) => api.ask('POST', '/threads/search', { body, user: owner });
    const refused = async (body: object, detail: string) => {
      const { status, body: said } = await find(body);
      expect([status, said.detail]).toEqual([400, expect.stringContaining(detail)]);
    };
    await refused({}, 'The page has more than 67108864 bytes: lower limit');
    const extract = { a: 'values.text' };
    await refused({ extract, select: ['status'], limit: 1 }, 'extract reads or gives more than 8388608');
    expect((await find({ select: ['thread_id'] })).body).toHaveLength(4);
  });
});
