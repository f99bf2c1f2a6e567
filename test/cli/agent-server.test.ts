// `sallyport agent-server` as a process: it serves, it ends, and a start that cannot serve says why.
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Client } from '@langchain/langgraph-sdk';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startAgentServer, writeDeployment } from '../support/agent-process.ts';
import { createTestDatabase, type TestDatabase } from '../support/platform-database.ts';
import { createScratch, type Scratch } from '../support/scratch.ts';
import { leaveStaleSocket } from '../support/stale-socket.ts';
import { type Finished, program, runToEnd } from '../support/spawned-process.ts';

const GRAPH = `
  import { Annotation, START, StateGraph } from '@langchain/langgraph';
  const State = Annotation.Root({ text: Annotation<string> });
  export const graph = new StateGraph(State).addNode('hello', () => ({ text: 'hello' })).addEdge(START, 'hello').compile();`;

let database: TestDatabase;
let scratch: Scratch;
beforeAll(async () => {
  database = await createTestDatabase();
  scratch = await createScratch();
});
afterAll(async () => {
  await database?.[Symbol.asyncDispose]();
  await scratch?.[Symbol.asyncDispose]();
});

describe('an agent server', () => {
  it('serves what it says of itself and runs, under its prefix, until a signal ends it', async () => {
    const config = await writeDeployment(
      join(scratch.path, 'serves'),
      { graphs: { agent: './agent.ts:graph' }, http: { mount_prefix: '/agents/' } },
      { 'agent.ts': GRAPH },
    );
    await using server = startAgentServer(config, { dataDirectory: join(scratch.path, 'data'), database });
    const { url } = await server.ready;
    const ask = async (path: string): Promise<string> => (await fetch(`${url}${path}`)).text();
    expect(await ask('/agents/ok?check_db=1')).toBe('{"ok":true}\n');
    expect(JSON.parse(await ask('/agents/info'))).toMatchObject({
      context: 'js',
      flags: { assistants: true },
    });
    expect(Object.keys(JSON.parse(await ask('/agents/openapi.json')).paths)).toContain('/agents/ok');
    expect(await ask('/agents/docs')).toContain('<html');
    expect(JSON.parse(await ask('/ok'))).toMatchObject({ code: 'no_route' });
    const post = async (path: string, body: object): Promise<Record<string, string>> => {
      const headers = { 'content-type': 'application/json' };
      const response = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
      return (await response.json()) as Record<string, string>;
    };
    const { thread_id: thread } = await post('/agents/threads', {});
    const run = { assistant_id: 'agent', input: {} };
    expect(await post(`/agents/threads/${thread}/runs/wait`, run)).toEqual({ text: 'hello' });
    expect(JSON.parse(await ask(`/agents/threads/${thread}/state`))).toMatchObject({
      values: { text: 'hello' },
    });
    const resumable = { ...run, stream_resumable: true };
    const client = new Client({ apiUrl: `${url}/agents`, apiKey: null });
    const [created] = await Array.fromAsync(client.runs.stream(String(thread), 'agent', resumable));
    const { run_id: runId = '' } = (created?.data ?? {}) as { readonly run_id?: string };
    // As the clients do: behind the address that they have.
    const stream = await fetch(`${url}/agents/threads/${thread}/runs/${runId}/join`);
    const location = stream.headers.get('location') ?? '';
    expect(location).toBe(`/threads/${thread}/runs/${runId}/join`);
    expect(JSON.parse(await ask(`/agents${location}`))).toEqual({ text: 'hello' });
    server.process.kill('SIGTERM');
    expect(await server.process.exited).toEqual({ code: 0, signal: null });
  });

  it('listens at a unix socket, also where a killed one has left its own, with errors as text on request', async () => {
    const directory = join(scratch.path, 'socket');
    const config = await writeDeployment(
      directory,
      { graphs: { agent: './agent.ts:graph' }, http: { error_format: 'text' } },
      { 'agent.ts': GRAPH },
    );
    const socketPath = join(directory, 'api.sock');
    await leaveStaleSocket(socketPath);
    const dataDirectory = join(scratch.path, 'data');
    const args = ['--listen', `unix:${socketPath}`];
    await using server = startAgentServer(config, { dataDirectory, database, args });
    expect((await server.ready).url).toBe(`unix:${socketPath}`);
    const ask = async (path: string) => {
      const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
      request({ socketPath, path }, resolve).on('error', reject).end();
      const response = await promise;
      return [response.statusCode, response.headers['content-type'], await text(response)];
    };
    expect(await ask('/ok')).toEqual([200, 'application/json', '{"ok":true}\n']);
    expect(await ask('/assistants/none')).toEqual([
      ...[404, expect.stringContaining('text/plain'), expect.stringMatching(/^There is no such assistant/)],
    ]);
  });
});

describe('two agent servers on one database', { tags: 'long' }, () => {
  it('share the master key, and one of them streams to 500 clients of one address', async () => {
    const graphs = { agent: './agent.ts:graph' };
    const config = await writeDeployment(join(scratch.path, 'two'), { graphs }, { 'agent.ts': GRAPH });
    const dataDirectory = join(scratch.path, 'data');
    await using one = startAgentServer(config, { dataDirectory, database });
    const first = (await one.ready).url;

    const own = { dataDirectory: join(scratch.path, 'other'), database };
    await using refused = startAgentServer(config, own);
    expect((await refused.process.exited).code).toBe(2);
    expect(refused.process.stderr).toMatch(
      /other\/vault-master\.key: there is no master key, .* by SALLYPORT_PLATFORM_VAULT_MASTER_KEY_FILE/,
    );

    const env = { SALLYPORT_PLATFORM_VAULT_MASTER_KEY_FILE: join(dataDirectory, 'vault-master.key') };
    await using two = startAgentServer(config, { ...own, env });
    const second = (await two.ready).url;
    const post = async (url: string, body: object): Promise<Record<string, string>> => {
      const headers = { 'content-type': 'application/json' };
      const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
      return (await response.json()) as Record<string, string>;
    };
    const { thread_id: thread } = await post(`${first}/threads`, {});
    const run = { assistant_id: 'agent', input: {} };
    expect(await post(`${second}/threads/${thread}/runs/wait`, run)).toEqual({ text: 'hello' });

    const later = await post(`${first}/threads/${thread}/runs`, { ...run, after_seconds: 3600 });
    const left = new AbortController();
    const join500 = Array.from({ length: 500 }, () =>
      fetch(`${second}/threads/${thread}/runs/${later['run_id']}/stream`, { signal: left.signal }),
    );
    const statuses = (await Promise.all(join500)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(500);
    left.abort();
  });
});

describe('a start is refused, with exit code 2 and what to change, for', () => {
  const start = async (
    config: object,
    files: Readonly<Record<string, string>> = { 'agent.ts': GRAPH },
    args: readonly string[] = [],
    env: Readonly<Record<string, string>> = {},
  ): Promise<Finished> => {
    const path = await writeDeployment(join(scratch.path, 'refused'), config, files);
    const directory = args.includes('--data-dir') ? [] : ['--data-dir', join(scratch.path, 'no-data')];
    const all = ['agent-server', '--config', path, ...directory, ...args];
    return runToEnd(process.execPath, [program, ...all], { env });
  };
  const graphs = { agent: './agent.ts:graph' };

  it.each<[string, object, string, (readonly string[])?, Record<string, string>?]>([
    ['an unknown key', { graphs, aut: {} }, 'langgraph.json: aut: Unknown key'],
    [
      'a Python graph',
      { graphs: { agent: './a.py:graph' } },
      'langgraph.json: graphs.agent: Python is not supported',
    ],
    [
      'a key of a later version',
      { graphs, store: {} },
      'langgraph.json: store: This version does not support the store',
    ],
    [
      'a variable',
      { graphs },
      'sallyport: N_JOBS_PER_WORKER: Input must be a number',
      [],
      { N_JOBS_PER_WORKER: 'x' },
    ],
    ['a flag', { graphs }, 'sallyport: --listen: must be host:port or unix:/path', ['--listen', 'nowhere']],
    [
      'an open listener',
      { graphs },
      'is reachable from other machines, and nobody is authenticated',
      ['--listen', ':0'],
    ],
  ])('%s', async (_, config, message, args, env) => {
    const { code, stderr } = await start(config, undefined, args, env);
    expect(stderr).toContain(message);
    expect(code).toBe(2);
  });

  it('a data directory that cannot be written', { timeout: 60_000 }, async () => {
    const { code, stderr } = await start({ graphs }, undefined, ['--data-dir', '/proc/nowhere']);
    expect(stderr).toMatch(
      /^sallyport: The data directory \/proc\/nowhere: it cannot be created there\. .*--data-dir/,
    );
    expect(code).toBe(2);
  });

  it('a database where nobody listens names host and port, and no password', {
    timeout: 60_000,
  }, async () => {
    const env = { DATABASE_URL: 'postgresql://user:hush-hush@127.0.0.1:1/agents' };
    const { code, stderr } = await start({ graphs }, undefined, [], env);
    expect(stderr).toContain('The database that DATABASE_URL names (127.0.0.1:1) cannot be reached');
    expect(stderr).not.toContain('hush-hush');
    // Of the machine, not of the command.
    expect(code).toBe(1);
  });

  it('a source with a mistake', async () => {
    const { code, stderr } = await start({ graphs }, { 'agent.ts': 'export const graph = ;' });
    expect(stderr).toContain('langgraph.json: graphs.agent: agent.ts:1:22: Unexpected ";"\n');
    expect(code).toBe(2);
  });
});
