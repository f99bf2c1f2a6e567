// Users of a running server. Their tokens reach graphs, and no table, no line of the log and nothing that other programs of the
// machine can read. What is theirs does not exist for another user, whichever route they ask.
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectOnce } from '../../../../src/platform/store/database.ts';
import { type AgentProcess, startAgentServer, writeDeployment } from '../../../support/agent-process.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';
import { createScratch, type Scratch } from '../../../support/scratch.ts';

const TOKEN = 'a-token-that-must-stay-secret-7f3a';
const AUTH = `
import { Auth, HTTPException } from '@langchain/langgraph-sdk/auth';
export const auth = new Auth()
  .authenticate(async (request) => {
    const [, identity, token] = /^Bearer (\\w+):(.+)$/.exec(request.headers.get('authorization') ?? '') ?? [];
    if (token === undefined) throw new HTTPException(401, { message: 'Who?' });
    return { identity, token };
  })
  .on('*', ({ user, value }) => {
    if ('metadata' in value) (value.metadata ??= {}).owner = user.identity;
    return { owner: user.identity };
  });
`;
const GRAPH = `
import { Annotation, StateGraph } from '@langchain/langgraph';
const State = Annotation.Root({ length: Annotation(), header: Annotation() });
export const graph = new StateGraph(State)
  .addNode('look', (_, { configurable }) => ({
    length: configurable.langgraph_auth_user.token.length,
    header: configurable['x-secret'].length,
  }))
  .addEdge('__start__', 'look')
  .compile();
`;

let scratch: Scratch;
let database: TestDatabase;
let server: AgentProcess;
let url: string;

beforeAll(async () => {
  [scratch, database] = await Promise.all([createScratch(), createTestDatabase()]);
  const config = await writeDeployment(
    scratch.path,
    { graphs: { agent: './graph.js:graph' }, auth: { path: './auth.js:auth' }, dependencies: ['.'] },
    { 'auth.js': AUTH, 'graph.js': GRAPH, 'package.json': '{"type": "module"}' },
  );
  server = startAgentServer(config, { dataDirectory: join(scratch.path, 'data'), database });
  ({ url } = await server.ready);
}, 120_000);
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  await database?.[Symbol.asyncDispose]();
  await scratch?.[Symbol.asyncDispose]();
});

async function ask(user: string, method: string, path: string, body?: object) {
  const headers = {
    ...{ authorization: `Bearer ${user}:${TOKEN}`, 'x-secret': TOKEN },
    ...(body && { 'content-type': 'application/json' }),
  };
  const response = await fetch(`${url}${path}`, {
    method,
    headers,
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, text, json: () => JSON.parse(text) };
}
const post = async (path: string, body: object) => (await ask('ada', 'POST', path, body)).json();

describe('tokens of users', { tags: 'long' }, () => {
  it('are sealed while a run waits, and gone when it has ended', async () => {
    expect((await fetch(`${url}/threads`, { method: 'POST' })).status).toBe(401);
    const { thread_id } = await post('/threads', {});
    const ended = await post(`/threads/${thread_id}/runs/wait`, { assistant_id: 'agent', input: {} });
    expect(ended).toEqual({ length: TOKEN.length, header: TOKEN.length });
    const later = { assistant_id: 'agent', input: {}, after_seconds: 3600 };
    const waiting = await post(`/threads/${thread_id}/runs`, later);
    expect(waiting['status']).toBe('pending');
    const { users, text } = await readTables(database);
    expect(users).toBe(1);
    expect(text).toContain(String(thread_id));
    expect(text.includes(TOKEN) || text.includes(Buffer.from(TOKEN).toString('hex'))).toBe(false);
    const { pid } = server.process;
    for (const file of ['environ', 'cmdline'])
      expect(await readFile(`/proc/${pid}/${file}`, 'latin1')).not.toContain(TOKEN);
    expect(server.process.stdout + server.process.stderr).not.toContain(TOKEN);
  });
});

describe('another user', { tags: 'long' }, () => {
  it('gets of every route what they would get of what is not there', async () => {
    const { thread_id } = await post('/threads', { metadata: { mark: MARK } });
    await post(`/threads/${thread_id}/runs/wait`, { assistant_id: 'agent', input: {} });
    const later = { assistant_id: 'agent', input: {}, after_seconds: 3600, metadata: { mark: MARK } };
    const { run_id } = await post(`/threads/${thread_id}/runs`, later);
    const { assistant_id } = await post('/assistants', { graph_id: 'agent', name: MARK });
    const own = { thread_id, run_id, assistant_id };
    const unknown = { thread_id: randomUUID(), run_id: randomUUID(), assistant_id: randomUUID() };
    const before = await snapshot(own);
    const { paths } = (await ask('ada', 'GET', '/openapi.json')).json();
    const rows: unknown[] = [];
    for (const [path, methods] of Object.entries<object>(paths))
      for (const method of Object.keys(methods).map((name) => name.toUpperCase())) {
        if (!/\{(?:thread|run|assistant)_id\}/.test(path)) continue;
        const asked = await askFor('eve', method, path, own);
        const missing = await askFor('eve', method, path, unknown);
        rows.push([method, path, asked.status]);
        expect([method, path, asked.status, asked.text]).toEqual([
          method,
          path,
          missing.status,
          missing.text,
        ]);
        // Clients that join a stream read its errors from it.
        const isMissing = /^event: error\ndata: .*404/m.test(asked.text);
        expect([method, path, isMissing || [404, 409, 501].includes(asked.status)]).toEqual([
          method,
          path,
          true,
        ]);
      }
    expect(rows.length).toBeGreaterThan(30);
    for (const [path, body] of Object.entries(LISTS)) {
      const { text } = await ask('eve', body === undefined ? 'GET' : 'POST', path, body);
      expect([path, text.trim()]).toEqual([path, path.endsWith('count') ? '0' : '[]']);
    }
    const cancel = await ask('eve', 'POST', '/runs/cancel', { thread_id, run_ids: [run_id] });
    expect(cancel.text).not.toContain(MARK);
    await ask('eve', 'POST', '/runs/cancel', { status: 'all' });
    for (const if_exists of ['raise', 'do_nothing'])
      expect((await ask('eve', 'POST', '/threads', { thread_id, if_exists })).status).toBe(409);
    expect(await snapshot(own)).toEqual(before);
  });
});

const MARK = 'a-mark-of-ada';
const LISTS = {
  '/threads': undefined,
  '/threads/search': {},
  '/threads/count': {},
  '/assistants/search': {},
  '/assistants/count': {},
};
type Ids = { readonly thread_id: string; readonly run_id: string; readonly assistant_id: string };

async function askFor(user: string, method: string, path: string, ids: Ids) {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    name in ids ? ids[name as keyof Ids] : randomUUID(),
  );
  const body = {
    ...{
      assistant_id: path.startsWith('/assistants') ? undefined : 'agent',
      input: {},
      values: {},
      version: 1,
    },
    ...{
      metadata: {},
      checkpoint: path.endsWith('/checkpoint') ? { checkpoint_id: randomUUID() } : undefined,
    },
  };
  const hasBody = ['POST', 'PATCH', 'PUT'].includes(method) && !path.endsWith('/cancel');
  return ask(user, method, filled, hasBody ? body : undefined);
}

/** What its owner sees. */
async function snapshot({ thread_id, run_id, assistant_id }: Ids): Promise<readonly unknown[]> {
  const paths = [
    `/threads/${thread_id}`,
    `/threads/${thread_id}/runs/${run_id}`,
    `/assistants/${assistant_id}`,
  ];
  return Promise.all(paths.map(async (path) => (await ask('ada', 'GET', path)).json()));
}

/** Every row of every table as text, in which bytes are hexadecimal. */
async function readTables({ ownerConnection }: TestDatabase): Promise<{ users: number; text: string }> {
  return connectOnce(ownerConnection, async (client) => {
    const { rows: tables } = await client.query<{ name: string }>(
      `select tablename as name from pg_tables where schemaname = 'public'`,
    );
    const texts: string[] = [];
    for (const { name } of tables) {
      const { rows } = await client.query<{ row: string }>(`select one::text as row from "${name}" as one`);
      texts.push(...rows.map(({ row }) => row));
    }
    const { rows } = await client.query<{ users: string }>('select count(*) as users from agent_run_users');
    return { users: Number(rows[0]?.users), text: texts.join('\n') };
  });
}
