// Runs of a database and the streams of several processes on it, each with connections and notifications of its own.
import { randomUUID } from 'node:crypto';
import { createLog } from '../../../../src/base/log.ts';
import {
  openRunNotices,
  type RunNotices,
} from '../../../../src/platform/agent-server/streams/run-notices.ts';
import type { RunEvent } from '../../../../src/platform/agent-server/streams/event-queue.ts';
import {
  type ClaimedRun,
  createRunStreams,
  type RunStreams,
} from '../../../../src/platform/agent-server/streams/run-streams.ts';
import {
  createStateUpdates,
  type StateUpdates,
} from '../../../../src/platform/agent-server/streams/state-updates.ts';
import { openDatabase, type Store } from '../../../../src/platform/store/database.ts';
import { openNotifications } from '../../../../src/platform/store/postgres/notifications.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import type { TestDatabase } from '../../../support/platform-database.ts';

export type TestProcess = AsyncDisposable & {
  readonly streams: RunStreams;
  readonly updates: StateUpdates;
  readonly notices: RunNotices;
  readonly store: Store;
  /** The lines of its log so far. */
  readonly lines: readonly string[];
  /** As a queue claims a run, and takes it over from another process. */
  claim(runId: string): Promise<ClaimedRun>;
  /** As a queue ends a run: the commit, then the notice. */
  finish(runId: string): Promise<void>;
};

export async function startProcess(
  { connection }: Pick<TestDatabase, 'connection'>,
  sweepMs = 60_000,
): Promise<TestProcess> {
  const lines: string[] = [];
  const log = createLog('info', { write: (line) => void lines.push(line) });
  const store = openDatabase({ connection, maxConnections: 3, onError: () => undefined });
  const notifications = openNotifications({
    connection,
    onLost: () => undefined,
    onError: (error) => log.error({ error }, 'a subscriber failed'),
  });
  const notices = await openRunNotices({ store, notifications, log });
  const streams = createRunStreams({ store, notices, log, sweepMs });
  const updates = createStateUpdates({ store, notices, followed: streams.followed, log });
  return {
    ...{ streams, updates, notices, store, lines },
    claim: (runId) => claimRun(store, runId, streams.processId),
    async finish(runId) {
      await endRun(store, runId);
      notices.send({ kind: 'ended', runId });
    },
    async [Symbol.asyncDispose]() {
      await updates.close();
      await streams.close();
      await notices.close();
      await notifications.close();
      await store.close();
    },
  };
}

export type NewRun = {
  readonly isResumable?: boolean;
  readonly streamedBy?: string;
  readonly threadId?: string;
};

/** A pending run, on a thread of its own unless one is named. */
export async function createRun(
  { db }: Store,
  { isResumable = false, streamedBy, threadId = randomUUID() }: NewRun = {},
): Promise<{ readonly runId: string; readonly threadId: string }> {
  const [runId, assistantId] = [randomUUID(), '00000000-0000-4000-8000-000000000001'];
  await sql`insert into agent_assistants (assistant_id, graph_id, name) values (${assistantId}, 'agent', 'agent')
    on conflict do nothing`.execute(db);
  await sql`insert into agent_threads (thread_id) values (${threadId}) on conflict do nothing`.execute(db);
  await sql`
    insert into agent_runs (run_id, thread_id, assistant_id, assistant_version, graph_id, kwargs, multitask_strategy,
      is_resumable, streamed_by)
    values (${runId}, ${threadId}, ${assistantId}, 1, 'agent', '{}', 'enqueue', ${isResumable}, ${streamedBy ?? null})
  `.execute(db);
  return { runId, threadId };
}

async function claimRun(store: Store, runId: string, owner: string): Promise<ClaimedRun> {
  return store.write(async (trx) => {
    await sql`select 1 from agent_runs where run_id = ${runId} for update`.execute(trx);
    const { rows } = await sql<{
      thread_id: string;
      attempt: number;
      is_resumable: boolean;
      streamed_by: string | null;
    }>`
      update agent_runs set status = 'running', attempt = attempt + 1, lease_owner = ${owner},
        lease_until = now() + interval '10 s'
      where run_id = ${runId} returning thread_id, attempt, is_resumable, streamed_by`.execute(trx);
    const [row] = rows;
    if (row === undefined) throw new Error('there is no such run');
    const { thread_id: threadId, attempt, is_resumable: isResumable, streamed_by: streamedBy } = row;
    return { runId, threadId, attempt, isResumable, streamedBy };
  });
}

async function endRun({ db }: Store, runId: string): Promise<void> {
  await sql`
    update agent_runs set status = 'success', lease_owner = null, lease_until = null, ended_at = now()
    where run_id = ${runId}`.execute(db);
}

/** Events with data 0, 1, 2 … from this one on. */
export function numbered(from: number, count: number): { event: string; data: string }[] {
  return Array.from({ length: count }, (_, index) => ({ event: 'custom', data: String(from + index) }));
}

/** All events, as `id event data`. */
export async function collect(events: AsyncIterable<readonly RunEvent[]>): Promise<string[]> {
  const all: string[] = [];
  for await (const batch of events)
    for (const { id, event, data } of batch) all.push(`${id} ${event} ${data}`);
  return all;
}

export async function countStored({ db }: Store, runId: string): Promise<number> {
  const { rows } = await sql<{ n: string }>`
    select count(*) as n from agent_run_events where run_id = ${runId}`.execute(db);
  return Number(rows[0]?.n);
}
