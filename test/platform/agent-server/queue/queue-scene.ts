// Queues on one database, as processes have them, with a worker that does what the test says and streams that only record.
import { randomUUID, randomUUIDv7 } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import type { RunToStart } from '../../../../src/agent-worker/protocol/calls.ts';
import type { WorkerEvent } from '../../../../src/agent-worker/protocol/messages.ts';
import { createLog } from '../../../../src/base/log.ts';
import { partyOf } from '../../../../src/platform/agent-server/access/run-users.ts';
import { createCheckpointPort } from '../../../../src/platform/agent-server/checkpoints/checkpoint-port.ts';
import { Backlog } from '../../../../src/platform/agent-server/queue/backlog.ts';
import {
  createRunQueue,
  type RunQueue,
  type RunQueueParts,
} from '../../../../src/platform/agent-server/queue/run-queue.ts';
import { runBody } from '../../../../src/platform/agent-server/runs/run-body.ts';
import { announce } from '../../../../src/platform/agent-server/runs/cancellation.ts';
import { type CreatedRun, createRun } from '../../../../src/platform/agent-server/runs/run-creation.ts';
import type { RunNotice, RunNotices } from '../../../../src/platform/agent-server/streams/run-notices.ts';
import {
  type GraphWorkers,
  type RunOptions,
  cancelReasonOf,
} from '../../../../src/platform/agent-server/workers/graph-workers.ts';
import { WorkerError } from '../../../../src/platform/agent-server/workers/worker-error.ts';
import type { Store } from '../../../../src/platform/store/database.ts';
import { createAgentRows } from '../../../support/agent-rows.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';

/** A run that a worker executes, until the test ends it. */
export type Executed = {
  readonly params: RunToStart;
  readonly options: RunOptions;
  end(values?: object, status?: 'success' | 'interrupted'): void;
  fail(error: Error): void;
};

export type Process = {
  readonly queue: RunQueue;
  /** The next execution of the run in this process. */
  started(runId: string): Promise<Executed>;
  readonly executing: ReadonlyMap<string, Executed>;
  /** The events of the run are complete: its end is committed. */
  ended(runId: string): Promise<void>;
  released(runId: string): Promise<void>;
  readonly events: ReadonlyMap<string, readonly WorkerEvent[]>;
  readonly logged: readonly string[];
};

export type QueueScene = AsyncDisposable & {
  readonly database: TestDatabase;
  readonly store: Store;
  readonly notices: readonly RunNotice[];
  addProcess(parts?: Partial<RunQueueParts>): Process;
  closeProcesses(): Promise<void>;
  /** With their threads. */
  removeRuns(): Promise<void>;
  addAssistant(): Promise<string>;
  addThread(): Promise<string>;
  /** Committed, and started by the process or offered to it, if there is one. */
  create(given: Given, process?: Process): Promise<CreatedRun>;
  status(runId: string): Promise<string | undefined>;
  /** As if its process had been killed long ago. */
  expire(runId: string): Promise<void>;
};

type Given = {
  readonly threadId?: string | undefined;
  readonly body?: object;
  readonly identity?: string;
  /** Of a place without a process that starts it. */
  readonly owner?: string | undefined;
  /** Between the commit and the start. */
  readonly onCommitted?: (created: CreatedRun) => Promise<void> | void;
};

export async function createQueueScene(): Promise<QueueScene> {
  const database = await createTestDatabase();
  const { store } = database;
  const rows = createAgentRows(store);
  const assistantId = await rows.addAssistant();
  const bus = createBus();
  const queues: RunQueue[] = [];
  const closeProcesses = async (): Promise<void> => {
    await Promise.all(queues.splice(0).map((queue) => queue.close()));
  };
  return {
    ...{ database, store, notices: bus.sent },
    addProcess(given = {}) {
      const made = createProcess(store, bus, given);
      queues.push(made.queue);
      return made;
    },
    addAssistant: () => rows.addAssistant(),
    addThread: () => rows.addThread(),
    async create({ threadId, body = {}, identity, owner, onCommitted }, process) {
      const parsed = runBody.parse({ assistant_id: assistantId, ...body });
      const user = identity === undefined ? {} : { user: userOf(identity) };
      const isDue = (parsed.after_seconds ?? 0) === 0;
      const whose = { ...user, headers: {} };
      const place = isDue ? process?.queue.reserve(partyOf(whose)) : undefined;
      const created = await store.write((trx) =>
        createRun(trx, PARTS, {
          ...{ runId: randomUUIDv7(), threadId, body: parsed, metadata: parsed.metadata ?? {} },
          ...{ filter: undefined, assistantFilter: undefined, assistantId, streamedBy: null },
          ...{ user: whose, owner: owner ?? place?.owner },
        }),
      );
      const { row, party, cancelled, begun } = created;
      await onCommitted?.(created);
      if (process === undefined) return created;
      const action = parsed.multitask_strategy === 'rollback' ? 'rollback' : 'interrupt';
      announce({ queue: process.queue, notices: bus }, cancelled, action);
      if (begun !== undefined) place?.start(begun.claim, { user: whose, latest: await begun.latest });
      place?.release();
      if (begun === undefined)
        process.queue.offer({ runId: row.run_id, threadId: row.thread_id, party, isDue });
      return created;
    },
    async status(runId) {
      const row = await store.db
        .selectFrom('agent_runs')
        .select('status')
        .where('run_id', '=', runId)
        .executeTakeFirst();
      return row?.status;
    },
    async expire(runId) {
      const past = { lease_until: new Date(0) };
      await store.db.updateTable('agent_runs').set(past).where('run_id', '=', runId).execute();
    },
    closeProcesses,
    async removeRuns() {
      await store.db.deleteFrom('agent_threads').execute();
    },
    async [Symbol.asyncDispose]() {
      await closeProcesses();
      await database[Symbol.asyncDispose]();
    },
  };
}

const PARTS = {
  graphs: new Set(['agent']),
  vault: { seal: async () => Buffer.from('sealed') },
  defaultConfigs: new Map([['agent', { tags: ['by default'], configurable: { level: 'default' } }]]),
};

function userOf(identity: string) {
  return { identity, display_name: identity, is_authenticated: true, permissions: [] };
}

type Notices = Pick<RunNotices, 'send' | 'subscribe'>;
type Bus = Notices & { readonly sent: RunNotice[] };

/** What NOTIFY does between processes. */
function createBus(): Bus {
  const subscribers = new Set<Parameters<Notices['subscribe']>[0]>();
  const sent: RunNotice[] = [];
  return {
    sent,
    send(notice) {
      sent.push(notice);
      for (const { onNotice } of subscribers) onNotice(notice);
    },
    subscribe(subscriber) {
      subscribers.add(subscriber);
      return () => void subscribers.delete(subscriber);
    },
  };
}

function createProcess(store: Store, bus: Bus, given: Partial<RunQueueParts>): Process {
  const moments = new EventEmitter().setMaxListeners(100);
  const executing = new Map<string, Executed>();
  const events = new Map<string, WorkerEvent[]>();
  const past = new Set<string>();
  const happened = (name: string): void => {
    past.add(name);
    moments.emit(name);
  };
  const reached = async (name: string): Promise<void> => {
    if (!past.delete(name)) await once(moments, name);
    past.delete(name);
  };
  const logged: string[] = [];
  const queue = createRunQueue({
    ...{
      store,
      notices: bus,
      owner: randomUUID(),
      places: 8,
      backlog: new Backlog(1_000),
      lonePlaces: 1,
      timeoutMs: 60_000,
      drainMs: 0,
      pauseMs: 0,
    },
    ...{ renewalMs: 20, upkeepMs: 20 },
    log: createLog('info', { write: (line) => void logged.push(line) }),
    workers: createScriptedWorkers(executing, (runId) => happened(`started ${runId}`)),
    streams: {
      async open({ runId }) {
        const written = events.get(runId) ?? [];
        events.set(runId, written);
        return {
          write: async (more) => void written.push(...more),
          end: async () => happened(`ended ${runId}`),
          release: async () => happened(`released ${runId}`),
        };
      },
    },
    createCheckpoints: (scope) => createCheckpointPort(store, scope),
    openUser: async () => ({ headers: {} }),
    ...given,
  });
  return {
    ...{ queue, executing, events, logged },
    async started(runId) {
      await reached(`started ${runId}`);
      const found = executing.get(runId);
      if (found === undefined) throw new Error('it has ended already');
      return found;
    },
    ended: (runId) => reached(`ended ${runId}`),
    released: (runId) => reached(`released ${runId}`),
  };
}

export function createScriptedWorkers(
  executing: Map<string, Executed>,
  onStart: (runId: string) => void,
): Pick<GraphWorkers, 'run' | 'call'> {
  return {
    call: async () => JSON.stringify({ values: { state: 'read' }, next: [], tasks: [] }) as never,
    run(params, options) {
      const { promise, resolve, reject } = Promise.withResolvers<{
        readonly status: 'success' | 'interrupted';
        readonly values: string;
        readonly interrupts: string;
      }>();
      const { cancel } = options;
      const onCancel = (): void =>
        reject(new WorkerError({ kind: 'cancelled', reason: cancelReasonOf(cancel) }));
      if (cancel.aborted) onCancel();
      cancel.addEventListener('abort', onCancel);
      executing.set(params.run_id, {
        ...{ params, options, fail: reject },
        end: (values = {}, status = 'success') =>
          resolve({ status, values: JSON.stringify(values), interrupts: '{}' }),
      });
      onStart(params.run_id);
      return promise.finally(() => executing.delete(params.run_id));
    },
  };
}
