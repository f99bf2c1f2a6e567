// `sallyport agent-server` with users: a deployment whose handler takes the bearer token as the name, and shows and gives to each
// user what is theirs. Its graph does what its input says.
import { join } from 'node:path';
import { type AgentProcess, startAgentServer, writeDeployment } from '../../support/agent-process.ts';
import { createTestDatabase, type TestDatabase } from '../../support/platform-database.ts';
import { createScratch } from '../../support/scratch.ts';

const AUTH = `
import { Auth, HTTPException } from '@langchain/langgraph-sdk/auth';
export const auth = new Auth()
  .authenticate(async (request) => {
    const [, name, token = ''] = /^Bearer ([a-z]+)(?:\\.(\\w+))?$/.exec(request.headers.get('authorization') ?? '') ?? [];
    if (name === undefined) throw new HTTPException(401, { message: 'Who?' });
    return { identity: name, permissions: ['all'], token, nested: { tokens: [token] } };
  })
  .on('*', ({ action, value, user }) => {
    if ('metadata' in value && action !== 'search') (value.metadata ??= {}).owner = user.identity;
    return { owner: user.identity };
  });
`;

const GRAPH = `
import { Annotation, interrupt, StateGraph } from '@langchain/langgraph';
const State = Annotation.Root({ does: Annotation<unknown>(), seen: Annotation<unknown>() });
const act = async ({ does }, config) => {
  const { configurable = {}, signal, writer } = config;
  writer?.({ at: 'act' });
  if (does?.wait) await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));
  if (does?.ask) return { seen: interrupt('go on?') };
  if (does?.call === undefined) return { seen: 'done' };
  const { graph_auth_user: one, langgraph_auth_user: other, 'x-secret': header } = configurable;
  await fetch(does.call, { method: 'POST', body: JSON.stringify({ one, other, header: header ?? null }) });
  return { seen: 'called' };
};
export const graph = new StateGraph(State).addNode('act', act).addEdge('__start__', 'act').compile();
`;

export type Asked = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The text as JSON; undefined when it is none. */
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any;
};

export type AskOptions = {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
};

export type Tenants = AsyncDisposable & {
  readonly url: string;
  readonly server: AgentProcess;
  readonly database: TestDatabase;
  ask(user: string, method: string, path: string, options?: AskOptions): Promise<Asked>;
};

export async function startTenants(
  given: {
    readonly graphs?: Readonly<Record<string, string>>;
    readonly files?: Readonly<Record<string, string>>;
    readonly env?: Readonly<Record<string, string>>;
  } = {},
): Promise<Tenants> {
  const stack = new AsyncDisposableStack();
  const scratch = stack.use(await createScratch());
  const database = stack.use(await createTestDatabase());
  const config = await writeDeployment(
    join(scratch.path, 'deployment'),
    { graphs: { agent: './agent.ts:graph', ...given.graphs }, auth: { path: './auth.ts:auth' } },
    { 'agent.ts': GRAPH, 'auth.ts': AUTH, ...given.files },
  );
  const env = { LOG_LEVEL: 'debug', ...given.env };
  const server = stack.use(
    startAgentServer(config, { dataDirectory: join(scratch.path, 'data'), database, env }),
  );
  const { url } = await server.ready;
  return {
    ...{ url, server, database },
    async ask(user, method, path, { body, headers = {} } = {}) {
      const response = await fetch(`${url}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${user}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(20_000),
      });
      const text = await response.text();
      return { status: response.status, headers: response.headers, text, body: parse(text) };
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
