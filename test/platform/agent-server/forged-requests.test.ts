// A user of a deployment who sends what only the server sets, or what names somebody else: header fields, configs, metadata, ids of
// checkpoints and events, methods and paths. None of it shows or changes anything of another user.
import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Asked, startTenants, type Tenants } from './tenants-scene.ts';

const ECHO = `
import { Annotation, StateGraph } from '@langchain/langgraph';
const State = Annotation.Root({ secret: Annotation<unknown>(), config: Annotation<unknown>() });
/** As graphs that look into their config when they are made, also for a state or a drawing. */
export const graph = ({ configurable = {} }) => {
  const made = configurable.langgraph_auth_user?.identity ?? 'nobody';
  return new StateGraph(State)
    .addNode('echo', (_, config) => ({ config: JSON.parse(JSON.stringify({ made, ...config.configurable })) }))
    .addNode('made_for_' + made, () => ({}))
    .addEdge('__start__', 'echo')
    .addEdge('echo', 'made_for_' + made)
    .compile();
};
`;

let tenants: Tenants;
let thread: { readonly thread_id: string; readonly checkpoint_id: string; readonly run_id: string };
let own: string;

beforeAll(async () => {
  tenants = await startTenants({ graphs: { echo: './echo.ts:graph' }, files: { 'echo.ts': ECHO } });
  const { thread_id } = (await ask('ada', 'POST', '/threads', {})).body;
  const input = { secret: 'of ada' };
  await ask('ada', 'POST', `/threads/${thread_id}/runs/wait`, { assistant_id: 'echo', input });
  const { checkpoint } = (await ask('ada', 'GET', `/threads/${thread_id}/state`)).body;
  const [{ run_id }] = (await ask('ada', 'GET', `/threads/${thread_id}/runs`)).body;
  thread = { thread_id, run_id, checkpoint_id: checkpoint.checkpoint_id };
  own = (await ask('eve', 'POST', '/threads', {})).body.thread_id;
}, 60_000);
afterAll(() => tenants?.[Symbol.asyncDispose]());

const ask = (user: string, method: string, path: string, body?: object): Promise<Asked> =>
  tenants.ask(user, method, path, { body });

/** With the fields as they are, repeated ones and any bytes included. */
async function sendFields(method: string, path: string, fields: readonly string[]): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const asked = request(`${tenants.url}${path}`, { method, headers: fields as never }, (response) => {
    text(response).then((body) => resolve(`${response.statusCode} ${body}`), reject);
  });
  asked.on('error', (error: NodeJS.ErrnoException) => resolve(`cut ${error.code}`)).end();
  return promise;
}

describe('header fields', () => {
  const [eve, ada] = [
    ['Authorization', 'Bearer eve'],
    ['authorization', 'Bearer ada'],
  ];
  it.each<[string, readonly string[]]>([
    ['two credentials', [...eve, ...ada]],
    ['the other one first', [...ada, ...eve]],
    ['a credential in a Proxy-Authorization', ['Proxy-Authorization', 'Bearer ada']],
    ['bytes after a credential', ['Authorization', 'Bearer ada\xff']],
    ['the studio', ['x-auth-scheme', 'langsmith']],
    ['the studio with a key', ['x-auth-scheme', 'langsmith', 'x-api-key', 'langgraph-studio-user']],
    ['a huge one', [...eve, 'x-huge', 'x'.repeat(1_000_000)]],
  ])('%s let nobody in as another user', async (_, fields) => {
    const got = await sendFields('GET', `/threads/${thread.thread_id}`, ['Host', 'localhost', ...fields]);
    expect(got).toMatch(/^(?:4\d\d|cut)/);
    expect(got).not.toContain('ada');
  });

  it('reach runs as they are, and never in place of what the server sets', async () => {
    const got = await tenants.ask('eve', 'POST', '/runs/wait', {
      body: { assistant_id: 'echo', input: {} },
      headers: {
        ...{ 'x-bytes': 'caf\xe9', 'x-auth-scheme': 'langsmith', 'x-thread-id': thread.thread_id },
        ...{ langgraph_auth_user: 'ada', graph_auth_user: 'ada', thread_id: thread.thread_id },
      },
    });
    expect(got.body.config).toMatchObject({
      ...{ 'x-bytes': 'caf\xe9', made: 'eve', thread_id: expect.not.stringContaining(thread.thread_id) },
      ...{ langgraph_auth_user: { identity: 'eve' }, graph_auth_user: { identity: 'eve' } },
    });
  });
});

const user = { identity: 'ada', permissions: ['all'] };
const FORGED = {
  ...{ graph_auth_user: user, graph_auth_user_id: 'ada', graph_auth_permissions: ['root'] },
  ...{ langgraph_auth_user: user, langgraph_auth_user_id: 'ada', langgraph_auth_permissions: ['root'] },
  ...{ __pregel_checkpointer: null, __pregel_read: 1, __pregel_scratchpad: {}, run_id: randomUUID() },
  ...{ ['__proto__']: { langgraph_auth_user: user }, constructor: { name: 'x' } },
};

describe('a config', () => {
  it('is that of its user, on a thread of its user, whatever it says', async () => {
    const configurable = { ...FORGED, thread_id: thread.thread_id };
    const { body, status } = await ask('eve', 'POST', `/threads/${own}/runs/wait`, {
      ...{ assistant_id: 'echo', input: {}, config: { configurable, metadata: { owner: 'ada' } } },
      checkpoint: { thread_id: thread.thread_id, checkpoint_ns: '', langgraph_auth_user: user },
      metadata: { owner: 'ada', langgraph_auth_user: user },
    });
    expect(status).toBe(200);
    expect(body.config).toMatchObject({ made: 'eve', thread_id: own, langgraph_auth_user_id: 'eve' });
    const [run] = (await ask('eve', 'GET', `/threads/${own}/runs`)).body;
    expect(run.metadata.owner).toBe('eve');
    expect(JSON.stringify(run.kwargs.config.configurable)).not.toMatch(/auth_|__p/);
  });

  it('makes a graph for whoever calls, also for a state, a history or a drawing', async () => {
    const config = { configurable: FORGED };
    const { assistant_id } = (await ask('eve', 'POST', '/assistants', { graph_id: 'echo', config })).body;
    const drawing = await ask('eve', 'GET', `/assistants/${assistant_id}/graph`);
    expect(drawing.text).toContain('made_for_eve');
    await ask('eve', 'POST', `/threads/${own}/runs/wait`, { assistant_id, input: {}, config });
    const shown = (await ask('eve', 'GET', `/threads/${own}`)).body;
    expect(Object.keys(shown.config.configurable)).not.toContain('langgraph_auth_user');
    for (const path of ['state', 'history'])
      expect((await ask('eve', 'GET', `/threads/${own}/${path}`)).status).toBe(200);
  });

  it('finds no checkpoint of another thread', async () => {
    const run = async (checkpoint_id: string, namespace = ''): Promise<Asked> => {
      const checkpoint = { checkpoint_id, checkpoint_ns: namespace, thread_id: thread.thread_id };
      const { thread_id } = (await ask('eve', 'POST', '/threads', {})).body;
      const given = { assistant_id: 'echo', input: {}, checkpoint };
      const asked = await ask('eve', 'POST', `/threads/${thread_id}/runs/wait`, given);
      const history = await ask('eve', 'GET', `/threads/${thread_id}/history`);
      return { ...asked, text: asked.text + history.text };
    };
    const [foreign, absent] = [await run(thread.checkpoint_id), await run(randomUUID())];
    expect(foreign.status).toBe(absent.status);
    expect(Object.keys(foreign.body)).toEqual(Object.keys(absent.body));
    expect(foreign.text + (await run(thread.checkpoint_id, 'echo')).text).not.toContain('of ada');
    const values = { secret: 'of eve' };
    const place = { checkpoint_id: thread.checkpoint_id, checkpoint: { thread_id: thread.thread_id } };
    await ask('eve', 'POST', `/threads/${own}/state`, { values, ...place });
    const { body: state } = await ask('ada', 'GET', `/threads/${thread.thread_id}/state`);
    expect([state.values.secret, state.checkpoint.checkpoint_id]).toEqual(['of ada', thread.checkpoint_id]);
  });
});

describe('metadata', () => {
  it('that names another owner is that of its user', async () => {
    const { body: made } = await ask('eve', 'POST', '/threads', { metadata: { owner: 'ada' } });
    expect(made.metadata.owner).toBe('eve');
    for (const [path, metadata] of [
      [`/threads/${made.thread_id}`, { owner: 'ada' }],
      [`/threads/${made.thread_id}/state`, { owner: { $eq: 'eve' } }],
    ] as const)
      await ask('eve', 'PATCH', path, { metadata });
    const { body: shown } = await ask('eve', 'GET', `/threads/${made.thread_id}`);
    expect(shown.metadata.owner).toBe('eve');
    expect((await ask('ada', 'GET', `/threads/${made.thread_id}`)).status).toBe(404);
  });

  it.each([
    { owner: 'ada' },
    { owner: { $eq: 'ada' } },
    { owner: { $contains: 'ada' } },
    { owner: ['ada'] },
    { $or: [{ owner: 'ada' }, { owner: 'eve' }] },
    { "owner' or true --": 'ada' },
  ])('that is searched for by %j finds nothing of another user', async (metadata) => {
    for (const path of ['/threads', '/assistants']) {
      expect((await ask('eve', 'POST', `${path}/search`, { metadata })).body).toEqual([]);
      expect((await ask('eve', 'POST', `${path}/count`, { metadata })).body).toBe(0);
    }
  });
});

it.each(['-1', '0', '99999999999999999999', '-2', 'x', '0; drop table agent_runs', '\t', '1-0', '١'])(
  'an event id %j reads no run of another user, and no error',
  async (id) => {
    const headers = { 'last-event-id': /^[\x20-\x7e]*$/.test(id) ? id : encodeURIComponent(id) };
    const foreign = await tenants.ask('eve', 'GET', `/runs/${thread.run_id}/stream`, { headers });
    expect(foreign.text).toMatch(/^event: error\r?\ndata: \{"error":"NotFound"/m);
    const [run] = (await ask('eve', 'GET', `/threads/${own}/runs`)).body;
    expect((await tenants.ask('eve', 'GET', `/runs/${run.run_id}/stream`, { headers })).status).toBe(200);
  },
);

it.each([
  ['HEAD', (id: string) => `/threads/${id}`],
  ['OPTIONS', (id: string) => `/threads/${id}`],
  ['PUT', (id: string) => `/threads/${id}`],
  ['PURGE', (id: string) => `/threads/${id}`],
  ['GET', (id: string) => `//threads/${id}`],
  ['GET', (id: string) => `/threads/${own}/../${id}`],
  ['GET', (id: string) => `/threads/${own}%2f..%2f${id}`],
  ['GET', (id: string) => `/threads/${id.toUpperCase()}`],
  ['GET', (id: string) => `/threads/${id}/`],
  ['GET', (id: string) => `/threads/${id}?user=ada&filter=`],
] as const)('%s of a path like one of another user shows nothing (%#)', async (method, pathOf) => {
  const fields = ['Host', 'localhost', 'Authorization', 'Bearer eve'];
  const [foreign, absent] = [thread.thread_id, randomUUID()];
  const got = await sendFields(method, pathOf(foreign), fields);
  const none = await sendFields(method, pathOf(absent), fields);
  const blank = (all: string, id: string): string => all.replaceAll(new RegExp(id, 'gi'), '');
  expect(blank(got, foreign)).toBe(blank(none, absent));
  expect(got).not.toContain('ada');
});
