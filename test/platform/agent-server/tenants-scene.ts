// `sallyport agent-server` with users: a deployment whose handler takes the bearer token as the name, and shows and gives to each
// user what is theirs. Its graph does what its input says.
import { join } from 'node:path';
import { type AgentProcess, startAgentServer, writeDeployment } from '../../support/agent-process.ts';
import { createTestDatabase, type TestDatabase } from '../../support/platform-database.ts';
import { createScratch } from '../../support/scratch.ts';
import { AUTH, GRAPH } from './tenants-graphs.ts';

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
