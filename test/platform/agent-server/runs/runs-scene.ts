// The routes of runs in this process, on a database of its own, with real streams and a worker that does what the test says.
import { EventEmitter, once } from 'node:events';
import { createLog } from '../../../../src/base/log.ts';
import { createAdmission } from '../../../../src/platform/api/shares/admission.ts';
import { defaultLimits } from '../../../../src/platform/api/limits.ts';
import type { Api } from '../../../../src/platform/api/api-request.ts';
import { createApi } from '../../../../src/platform/api/pipeline.ts';
import type { Gate } from '../../../../src/platform/agent-server/access/gate.ts';
import { defaultAssistantId } from '../../../../src/platform/agent-server/assistants/assistant-id.ts';
import { createCheckpointPort } from '../../../../src/platform/agent-server/checkpoints/checkpoint-port.ts';
import { Backlog } from '../../../../src/platform/agent-server/queue/backlog.ts';
import { createRunQueue, type RunQueue } from '../../../../src/platform/agent-server/queue/run-queue.ts';
import { createRunRoutes } from '../../../../src/platform/agent-server/runs/run-routes.ts';
import { openRunNotices } from '../../../../src/platform/agent-server/streams/run-notices.ts';
import { createRunStreams } from '../../../../src/platform/agent-server/streams/run-streams.ts';
import { createAuthenticator } from '../../../../src/platform/identity/authentication.ts';
import { openNotifications } from '../../../../src/platform/store/postgres/notifications.ts';
import { createAgentRows } from '../../../support/agent-rows.ts';
import { createApiRequest, readText } from '../../../support/api-request.ts';
import { createTestDatabase, onePool, type TestDatabase } from '../../../support/platform-database.ts';
import { createScriptedWorkers, type Executed } from '../queue/queue-scene.ts';

export type Asked = {
  readonly status: number;
  readonly headers: Headers;
  /** To its end. */
  text(): Promise<string>;
  // oxlint-disable-next-line typescript/no-explicit-any
  json(): Promise<any>;
};

export type RunsScene = AsyncDisposable & {
  /** For a listener. */
  readonly api: Api;
  readonly database: TestDatabase;
  readonly queue: RunQueue;
  /** Whether as many runs wait as may. */
  fill(isFull: boolean): void;
  addThread(metadata?: object): Promise<string>;
  ask(method: string, path: string, options?: AskOptions): Promise<Asked>;
  /** The execution of the run, once it has begun. */
  started(runId: string): Promise<Executed>;
  /** Of the next run that begins. */
  next(): Promise<Executed>;
};

type AskOptions = {
  readonly body?: unknown;
  readonly as?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly left?: AbortSignal;
};

export async function createRunsScene(gate: Gate): Promise<RunsScene> {
  const database = await createTestDatabase();
  const { store, connection } = database;
  const rows = createAgentRows(store);
  const assistant = { graph_id: 'agent', name: 'agent', description: null };
  const assistantId = defaultAssistantId('agent');
  await store.db
    .insertInto('agent_assistants')
    .values({ assistant_id: assistantId, ...assistant })
    .execute();
  const log = createLog('error', { write: (line) => process.stderr.write(line) });
  const failed = (error: unknown): void => log.error({ error: String(error) }, 'notifications');
  const notifications = openNotifications({ connection, onLost: failed, onError: failed });
  const notices = await openRunNotices({ store, notifications, log });
  const streams = createRunStreams({ store, notices, log });
  const executing = new Map<string, Executed>();
  const moments = new EventEmitter();
  const backlog = new Backlog(100_000);
  const full = new Backlog(0);
  let isFull = false;
  const queue = createRunQueue({
    ...{ store, notices, owner: streams.processId, places: 8, lonePlaces: 1, log, streams },
    ...{ timeoutMs: 60_000, drainMs: 0, backlog },
    workers: createScriptedWorkers(executing, (runId) => moments.emit('started', runId)),
    createCheckpoints: (scope) => createCheckpointPort(store, scope),
    openUser: async () => ({ headers: {} }),
  });
  const routes = createRunRoutes({
    ...{ gate, queue, streams, notices, store, log, threadPendingRuns: 5 },
    backlog: { requirePlace: () => (isFull ? full : backlog).requirePlace() },
    vault: { prepare: async () => undefined, seal: async () => Buffer.from('sealed') },
    deployment: {
      graphs: new Map([['agent', { description: null }]]),
      defaultConfigs: new Map(),
    },
  });
  const authenticator = createAuthenticator({ now: () => Date.now() });
  const parts = { pools: onePool(store), authenticator, log, limits: { ...defaultLimits } };
  const api = createApi(routes, { ...parts, admission: createAdmission(parts) });
  return {
    ...{ api, database, queue },
    fill: (value) => void (isFull = value),
    addThread: (metadata = {}) => rows.addThread({ metadata }),
    async ask(method, path, { body, as, headers = {}, left } = {}) {
      const response = await api(
        createApiRequest(path, {
          method,
          headers: {
            ...(body === undefined ? {} : { 'content-type': 'application/json' }),
            ...(as === undefined ? {} : { authorization: `Bearer ${as}` }),
            ...headers,
          },
          body: body === undefined ? undefined : JSON.stringify(body),
          ...(left === undefined ? {} : { left }),
        }),
      );
      const text = (): Promise<string> => readText(response);
      return {
        ...{ status: response.status, headers: new Headers(response.fields), text },
        json: async () => JSON.parse(await text()),
      };
    },
    async started(runId) {
      while (!executing.has(runId)) await once(moments, 'started');
      return executing.get(runId) as Executed;
    },
    async next() {
      const [runId] = await once(moments, 'started');
      return executing.get(runId) as Executed;
    },
    async [Symbol.asyncDispose]() {
      await queue.close();
      await streams.close();
      await notices.close();
      await notifications.close();
      await api.settle();
      await database[Symbol.asyncDispose]();
    },
  };
}
