// Two users of one deployment, over every operation of its OpenAPI document: what is of one user is to the other what does not
// exist, by status, body and header fields; nothing of it is listed, counted, streamed or changed.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sql } from '../../../src/platform/store/sql.ts';
import { type Asked, startTenants, type Tenants } from './tenants-scene.ts';

type Ids = {
  readonly assistant_id: string;
  readonly thread_id: string;
  readonly run_id: string;
  readonly checkpoint_id: string;
};
type Request = { readonly body?: object; readonly query?: string };
type Row = {
  readonly operation: string;
  /** Of a foreign id, and of one that does not exist. */
  readonly gets: number;
  readonly sent?: (ids: Ids) => Request;
  /** The events that it gets, where it is a stream. */
  readonly text?: RegExp;
  /** What the owner gets; `endless`: until the owner leaves. */
  readonly owner?: number | 'endless';
};

const input = { does: {} };
const NO_RUN = /^event: error\r?\ndata: \{"error":"NotFound"/m;
const creates = { gets: 404, sent: () => ({ body: { assistant_id: 'agent', input } }) };

/** Those with ids; what deletes is last, for the owner does all of it in the end. */
const ROWS: readonly Row[] = [
  { operation: 'GET /assistants/{assistant_id}', gets: 404 },
  {
    ...{ operation: 'PATCH /assistants/{assistant_id}', gets: 404 },
    sent: () => ({ body: { name: 'mine', metadata: { owner: 'eve' } } }),
  },
  {
    ...{ operation: 'POST /assistants/{assistant_id}/versions', gets: 404 },
    sent: () => ({ body: {} }),
  },
  {
    ...{ operation: 'POST /assistants/{assistant_id}/latest', gets: 404 },
    sent: () => ({ body: { version: 1 } }),
  },
  { operation: 'GET /assistants/{assistant_id}/graph', gets: 404 },
  { operation: 'GET /assistants/{assistant_id}/schemas', gets: 404 },
  { operation: 'GET /assistants/{assistant_id}/subgraphs', gets: 501, owner: 501 },
  { operation: 'GET /assistants/{assistant_id}/subgraphs/{namespace}', gets: 501, owner: 501 },
  { operation: 'GET /threads/{thread_id}', gets: 404 },
  {
    ...{ operation: 'PATCH /threads/{thread_id}', gets: 404 },
    sent: () => ({ body: { metadata: { owner: 'eve', mine: true } } }),
  },
  {
    ...{ operation: 'POST /threads/{thread_id}/copy', gets: 409 },
    sent: () => ({ body: {} }),
  },
  { operation: 'GET /threads/{thread_id}/state', gets: 404 },
  { operation: 'GET /threads/{thread_id}/state/{checkpoint_id}', gets: 404 },
  {
    ...{ operation: 'POST /threads/{thread_id}/state/checkpoint', gets: 404 },
    sent: ({ checkpoint_id }) => ({ body: { checkpoint: { checkpoint_id } } }),
  },
  {
    ...{ operation: 'POST /threads/{thread_id}/state', gets: 404 },
    sent: () => ({ body: { values: { seen: 'eve was here' } } }),
  },
  {
    ...{ operation: 'PATCH /threads/{thread_id}/state', gets: 404 },
    sent: () => ({ body: { metadata: { owner: 'eve' } } }),
  },
  { operation: 'GET /threads/{thread_id}/history', gets: 404 },
  {
    ...{ operation: 'POST /threads/{thread_id}/history', gets: 404 },
    sent: ({ checkpoint_id }) => ({ body: { checkpoint: { checkpoint_id } } }),
  },
  { operation: 'GET /threads/{thread_id}/runs', gets: 404 },
  { operation: 'GET /threads/{thread_id}/runs/{run_id}', gets: 404 },
  { operation: 'GET /threads/{thread_id}/runs/{run_id}/join', gets: 404 },
  { operation: 'GET /threads/{thread_id}/runs/{run_id}/stream', gets: 200, text: NO_RUN },
  { operation: 'GET /runs/{run_id}/stream', gets: 200, text: NO_RUN },
  { operation: 'GET /threads/{thread_id}/stream', gets: 404, owner: 'endless' },
  {
    ...{ operation: 'POST /threads/{thread_id}/runs/{run_id}/cancel', gets: 404, owner: 202 },
    sent: () => ({ query: '?action=rollback' }),
  },
  {
    ...{ operation: 'POST /runs/cancel', gets: 404 },
    sent: ({ run_id, thread_id }) => ({ body: { run_ids: [run_id], thread_id } }),
  },
  { operation: 'POST /threads/{thread_id}/runs', ...creates },
  { operation: 'POST /threads/{thread_id}/runs/stream', ...creates },
  { operation: 'POST /threads/{thread_id}/runs/wait', ...creates },
  ...['/runs', '/runs/stream', '/runs/wait'].map((path) => ({
    ...{ operation: `POST ${path}`, gets: 404 },
    sent: ({ assistant_id }: Ids) => ({ body: { assistant_id, input } }),
  })),
  { operation: 'DELETE /threads/{thread_id}/runs/{run_id}', gets: 404 },
  { operation: 'DELETE /threads/{thread_id}', gets: 404 },
  {
    ...{ operation: 'DELETE /assistants/{assistant_id}', gets: 404 },
    sent: () => ({ query: '?delete_threads=true' }),
  },
];

/** Those of which a caller learns ids: the other user finds nothing, however it is asked for. */
const LISTS: Readonly<Record<string, { readonly none: unknown; bodies(ids: Ids): readonly object[] }>> = {
  'POST /threads/search': {
    none: [],
    bodies: ({ thread_id, assistant_id }) => [
      { ids: [thread_id] },
      { metadata: { owner: 'ada' } },
      { metadata: { assistant_id }, select: ['thread_id'] },
      { values: { seen: 'done' }, extract: { seen: 'values.seen' } },
      { status: 'busy', sort_by: 'thread_id' },
    ],
  },
  'POST /threads/count': {
    none: 0,
    bodies: ({ thread_id }) => [{}, { ids: [thread_id] }, { metadata: { owner: 'ada' } }, { status: 'busy' }],
  },
  'GET /threads': { none: [], bodies: () => [] },
  'POST /assistants/search': {
    none: [],
    bodies: () => [{}, { graph_id: 'agent' }, { metadata: { owner: 'ada' } }, { name: 'of ada' }],
  },
  'POST /assistants/count': { none: 0, bodies: () => [{}, { metadata: { owner: 'ada' } }] },
};

/** They have nothing of a user, or what is of one is tested below. */
const OTHERS: readonly string[] = [
  ...['GET /ok', 'GET /info', 'GET /docs', 'GET /openapi.json'],
  ...['POST /threads', 'POST /assistants'],
  ...['POST /runs/batch', 'POST /threads/prune', 'POST /store/namespaces', 'POST /store/items/search'],
  ...['GET /store/items', 'PUT /store/items', 'DELETE /store/items'],
  ...['POST /runs/crons', 'POST /runs/crons/search', 'POST /runs/crons/count'],
  ...['PATCH /runs/crons/{cron_id}', 'DELETE /runs/crons/{cron_id}', 'POST /threads/{thread_id}/runs/crons'],
];

let tenants: Tenants;
/** Of the user ada. */
let ended: Ids;
let running: Ids;
/** Of the user eve. */
let own: Ids;

beforeAll(async () => {
  tenants = await startTenants();
  ended = await createScene('ada', 'wait', { input });
  running = await createScene('ada', 'stream', { input: { does: { wait: true } }, stream_resumable: true });
}, 60_000);
afterAll(() => tenants?.[Symbol.asyncDispose]());

const ask = (user: string, method: string, path: string, body?: object): Promise<Asked> =>
  tenants.ask(user, method, path, { body });

async function createScene(user: string, how: string, run: object): Promise<Ids> {
  const { body: assistant } = await ask(user, 'POST', '/assistants', { graph_id: 'agent', name: 'of ada' });
  const { assistant_id } = assistant;
  await ask(user, 'PATCH', `/assistants/${assistant_id}`, { context: { of: user } });
  const { thread_id } = (await ask(user, 'POST', '/threads', {})).body;
  await ask(user, 'POST', `/threads/${thread_id}/runs/wait`, { assistant_id, input: { does: {} } });
  const { checkpoint } = (await ask(user, 'GET', `/threads/${thread_id}/state`)).body;
  const path = `/threads/${thread_id}/runs`;
  if (how === 'stream') {
    const begun = await ask(user, 'POST', path, { assistant_id, ...run });
    return { assistant_id, thread_id, run_id: begun.body.run_id, checkpoint_id: checkpoint.checkpoint_id };
  }
  const [{ run_id }] = (await ask(user, 'GET', path)).body;
  return { assistant_id, thread_id, run_id, checkpoint_id: checkpoint.checkpoint_id };
}

const noIds = (): Ids => ({
  ...{ assistant_id: randomUUID(), thread_id: randomUUID(), run_id: randomUUID() },
  checkpoint_id: randomUUID(),
});

function send(user: string, { operation, sent }: Row, ids: Ids): Promise<Asked> {
  const [method = '', template = ''] = operation.split(' ');
  const path = template.replaceAll(/\{(\w+)\}/g, (_, name) => ids[name as keyof Ids] ?? 'none');
  const { body, query = '' } = sent?.(ids) ?? {};
  return ask(user, method, path + query, body);
}

/** All that a client can tell responses apart by, apart from the ids that it has sent itself. */
function seen({ status, headers, text }: Asked, ids: Ids): object {
  const blank = (given: string): string =>
    Object.entries(ids).reduce((all, [name, id]) => all.replaceAll(id, name), given);
  const fields = [...headers].filter(([name]) => name !== 'date' && name !== 'x-request-id');
  return { status, text: blank(text), fields: fields.map(([name, value]) => [name, blank(value)]) };
}

/** Rows of the tables of the agent server, as text, without what a running run changes by itself. */
async function rowsOf(): Promise<ReadonlyMap<string, string>> {
  const { db } = tenants.database.owner;
  const { rows: tables } = await sql<{ name: string }>`
    select table_name as name from information_schema.tables
    where table_schema = 'public' and table_name like 'agent\\_%'`.execute(db);
  const found = await Promise.all(
    tables.map(async ({ name }) => {
      const { rows } = await sql<{ text: string }>`
        select (to_jsonb(t) - 'lease_until')::text as text from ${sql.table(name)} t`.execute(db);
      return rows.map(({ text }) => [`${name} ${text}`, text] as const);
    }),
  );
  return new Map(found.flat());
}

it('the tables of this test know every operation of the document', async () => {
  const { body } = await ask('eve', 'GET', '/openapi.json');
  const operations = Object.entries(body.paths as Record<string, object>).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const known = [...ROWS.map(({ operation }) => operation), ...Object.keys(LISTS), ...OTHERS];
  expect(operations.toSorted()).toEqual(known.toSorted());
});

it('lists and counts of a user have nothing of another, whatever they ask for', async () => {
  for (const [operation, { none, bodies }] of Object.entries(LISTS)) {
    const [method = '', path = ''] = operation.split(' ');
    const asked = [...bodies(ended), ...bodies(running)];
    for (const body of asked.length === 0 ? [undefined] : asked) {
      const { status, headers, body: found } = await ask('eve', method, path, body);
      expect([operation, body, status, found]).toEqual([operation, body, 200, none]);
      expect(headers.get('x-pagination-total') ?? '0').toBe('0');
    }
  }
});

it('every operation tells ids of another user from none by nothing, and changes nothing', async () => {
  own = await createScene('eve', 'wait', { input });
  const before = await rowsOf();
  for (const row of ROWS) {
    for (const ids of [ended, running]) {
      const none = noIds();
      const [foreign, absent] = [await send('eve', row, ids), await send('eve', row, none)];
      expect([row.operation, seen(foreign, ids)]).toEqual([row.operation, seen(absent, none)]);
      expect([row.operation, foreign.status]).toEqual([row.operation, row.gets]);
      if (row.text !== undefined) expect(foreign.text).toMatch(row.text);
    }
  }
  const after = await rowsOf();
  expect([...before.keys()].filter((key) => !after.has(key))).toEqual([]);
  expect([...after.keys()].filter((key) => !before.has(key))).toEqual([]);
});

it('runs and checkpoints of another user are not there on a thread of one’s own either', async () => {
  const rows = ROWS.filter(
    ({ operation }) => operation.includes('{thread_id}') && /run_id|checkpoint/.test(operation),
  );
  expect(rows.length).toBeGreaterThan(5);
  for (const row of rows) {
    const { thread_id } = own;
    const [ids, none] = [
      { ...ended, thread_id },
      { ...noIds(), thread_id },
    ];
    const [foreign, absent] = [await send('eve', row, ids), await send('eve', row, none)];
    expect([row.operation, seen(foreign, ids)]).toEqual([row.operation, seen(absent, none)]);
    expect([row.operation, foreign.status]).toEqual([row.operation, row.gets]);
  }
});

it('many runs are cancelled only where all of them are the caller’s', async () => {
  const body = { run_ids: [own.run_id, running.run_id] };
  expect((await ask('eve', 'POST', '/runs/cancel', body)).status).toBe(404);
  expect((await ask('eve', 'POST', '/runs/cancel', { status: 'all' })).status).toBe(204);
  const { thread_id, run_id } = running;
  const { body: run } = await ask('ada', 'GET', `/threads/${thread_id}/runs/${run_id}`);
  expect(run.status).toMatch(/pending|running/);
});

it('an id that another user has is taken, and shows nothing of what has it', async () => {
  for (const [path, body] of [
    ['/threads', { thread_id: ended.thread_id }],
    ['/assistants', { assistant_id: ended.assistant_id, graph_id: 'agent' }],
  ] as const)
    for (const if_exists of ['raise', 'do_nothing']) {
      const { status, text } = await ask('eve', 'POST', path, { ...body, if_exists });
      expect([status, text]).toEqual([409, expect.not.stringContaining('ada')]);
    }
  const run = { assistant_id: 'agent', input, if_not_exists: 'create' };
  expect((await ask('eve', 'POST', `/threads/${ended.thread_id}/runs/wait`, run)).status).toBe(404);
});

async function unendedRuns(): Promise<number> {
  const { rows } = await sql`
    select from agent_runs where assistant_id = ${ended.assistant_id} and status in ('pending', 'running')
  `.execute(tenants.database.owner.db);
  return rows.length;
}

it('the owner is let do every one of these requests', async () => {
  for (const row of ROWS.filter(({ owner }) => owner !== 'endless')) {
    // One of these requests creates a run in the background.
    if (row.operation.startsWith('DELETE /assistants')) await expect.poll(unendedRuns).toBe(0);
    const { status, text } = await send('ada', row, ended);
    const wanted = row.owner ?? (status < 300 ? status : 200);
    expect([row.operation, status]).toEqual([row.operation, wanted]);
    expect(text).not.toMatch(NO_RUN);
  }
});
