// Routes of an agent server in this process, on a database of its own, without a socket. Its workers are fakes, unless a test has
// others, and its users are whom the field `x-user` names: each sees what has them as `owner` in its metadata.
import type { WorkerCalls } from '../../src/agent-worker/protocol/calls.ts';
import { createLog } from '../../src/base/log.ts';
import type { Api } from '../../src/platform/api/api-request.ts';
import type { Route } from '../../src/platform/api/route.ts';
import { defaultLimits } from '../../src/platform/api/limits.ts';
import { createApi } from '../../src/platform/api/pipeline.ts';
import { compileFilter } from '../../src/platform/agent-server/access/filters.ts';
import type { AgentGrant, Gate } from '../../src/platform/agent-server/access/gate.ts';
import type { RunNotice } from '../../src/platform/agent-server/streams/run-notices.ts';
import type {
  CallName,
  CallOptions,
  GraphWorkers,
} from '../../src/platform/agent-server/workers/graph-workers.ts';
import { createAuthenticator } from '../../src/platform/identity/authentication.ts';
import type { Store } from '../../src/platform/store/database.ts';
import { type AgentRows, createAgentRows } from './agent-rows.ts';
import { createApiRequest, readText } from './api-request.ts';
import { createTestDatabase, onePool, type TestDatabase } from './platform-database.ts';

export type AgentAsk = {
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent unchanged instead. */
  readonly raw?: string;
  /** Undefined: somebody who sees everything. */
  readonly user?: string;
  readonly headers?: Readonly<Record<string, string>>;
};

export type AgentAsked = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The text as JSON; undefined when it is empty. */
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any;
};

/** What a fake worker does, by the name of the call. */
export type FakeCalls = {
  [M in CallName]?: (
    params: WorkerCalls[M]['params'],
    options: CallOptions,
  ) => Promise<WorkerCalls[M]['result']>;
};

export type AgentApiParts = {
  readonly gate: Gate;
  readonly store: Store;
  readonly workers: Pick<GraphWorkers, 'call'>;
  readonly deployment: { readonly graphs: ReadonlyMap<string, { readonly description: string | null }> };
  readonly notices: { send(notice: RunNotice): void };
  readonly updates: { announce(threadId: string, state: string): Promise<void> };
};

export type AgentApi = AsyncDisposable & {
  /** For a listener. */
  readonly api: Api;
  readonly database: TestDatabase;
  readonly rows: AgentRows;
  /** A test may replace them at any time. */
  readonly calls: FakeCalls;
  /** Those that were sent. */
  readonly notices: readonly RunNotice[];
  /** States that were announced. */
  readonly updated: readonly { readonly threadId: string; readonly state: string }[];
  /** Every authorization that was asked for. */
  readonly authorized: readonly { readonly event: string; readonly value: object }[];
  ask(method: string, path: string, options?: AgentAsk): Promise<AgentAsked>;
};

export async function createAgentApi(
  createRoutes: (parts: AgentApiParts) => readonly Route[],
): Promise<AgentApi> {
  const database = await createTestDatabase();
  const { store } = database;
  const calls: FakeCalls = {};
  const notices: RunNotice[] = [];
  const updated: { threadId: string; state: string }[] = [];
  const authorized: { event: string; value: object }[] = [];
  const authenticator = createAuthenticator({ now: () => Date.now() });
  const routes = createRoutes({
    store,
    gate: createFakeGate((event, value) => void authorized.push({ event, value })),
    workers: createFakeWorkers(calls),
    deployment: { graphs: new Map([['agent', { description: null }]]) },
    notices: { send: (notice) => void notices.push(notice) },
    updates: { announce: async (threadId, state) => void updated.push({ threadId, state }) },
  });
  const log = createLog('trace', { write: () => undefined });
  const api = createApi(routes, { pools: onePool(store), authenticator, log, limits: defaultLimits });
  return {
    ...{ api, database, calls, notices, updated, authorized },
    rows: createAgentRows(store),
    async ask(method, path, { body, raw, user, headers: given = {} } = {}) {
      const sent = raw ?? (body === undefined ? undefined : JSON.stringify(body));
      const fields = {
        ...(sent === undefined ? {} : { 'content-type': 'application/json' }),
        ...(user === undefined ? {} : { 'x-user': user }),
        ...given,
      };
      const response = await api(createApiRequest(path, { method, headers: fields, body: sent }));
      const headers = new Headers(response.fields);
      const text = await readText(response);
      const isJson = headers.get('content-type')?.startsWith('application/json') === true && text !== '';
      return { status: response.status, headers, text, body: isJson ? JSON.parse(text) : undefined };
    },
    async [Symbol.asyncDispose]() {
      await api.settle();
      await authenticator.settle();
      await database[Symbol.asyncDispose]();
    },
  };
}

function createFakeGate(onAuthorize: (event: string, value: object) => void): Gate {
  const grantOf = (identity: string | undefined): AgentGrant => ({
    user:
      identity === undefined
        ? undefined
        : { identity, display_name: identity, is_authenticated: true, permissions: [] },
    isStudio: false,
    headers: {},
  });
  const access: Gate['access'] = {
    to: 'users',
    schemes: [],
    parameters: [],
    enter: async ({ head }) => grantOf(head.field('x-user')),
    confirm: async (_, granted) => granted,
    callerOf: ({ user }) => user?.identity ?? 'everybody',
  };
  const gate: Gate & { readonly appAccess: Gate['access'] } = {
    access,
    appAccess: access,
    async authorize({ user }, event, value) {
      onAuthorize(event, value);
      if (user === undefined) return { filter: undefined, value };
      const owner = { owner: user.identity };
      const metadata = { ...(value['metadata'] as object | undefined), ...owner };
      return { filter: compileFilter(owner), value: { ...value, metadata } };
    },
  };
  return gate;
}

function createFakeWorkers(calls: FakeCalls): Pick<GraphWorkers, 'call'> {
  return {
    async call(method, params, options = {}) {
      const call = calls[method];
      if (call === undefined) throw new Error(`this test has no worker for ${method}`);
      return call(params, options);
    },
  };
}
