// What the processes of a database tell each other about runs, by NOTIFY. A notice that is lost delays: whoever waits for one
// also reads the tables now and then.
import { describeBug, type Log } from '../../../base/log.ts';
import { z } from '../../../base/schema.ts';
import type { Database } from '../../store/database.ts';
import { type Notifications, notifyAll } from '../../store/postgres/notifications.ts';

export type RunNotice =
  /** `new`: a run of this thread may be claimed. `follow`: a process reads its runs. `started`: one of such a thread was claimed. */
  | { readonly kind: 'new' | 'follow' | 'started'; readonly threadId: string }
  /** `cancel`: its row has a cancellation. `ended`: it has a final status, or is deleted. */
  | { readonly kind: 'cancel' | 'ended'; readonly runId: string }
  /** `watch`: a process wants to read its events. `events`: some were stored. */
  | { readonly kind: 'watch' | 'events'; readonly runId: string }
  /** A client has changed the state of the thread; what it is now is stored under the id of the update. */
  | { readonly kind: 'updated'; readonly threadId: string; readonly updateId: string };

export type RunSubscriber = {
  /** Of any process, also of this one. */
  onNotice(notice: RunNotice): void;
  /** Notices may have been lost: read the tables. */
  onMissed(): void;
};

export type RunNotices = {
  /** After the commit that it tells of: a NOTIFY within a transaction makes all commits of the database wait for each other. */
  send(notice: RunNotice): void;
  subscribe(subscriber: RunSubscriber): () => void;
  /** Sends what is left. */
  close(): Promise<void>;
};

export type RunNoticesParts = {
  readonly store: { readonly db: Database };
  readonly notifications: Pick<Notifications, 'subscribe'>;
  readonly log: Log;
};

/** Resolves once notices arrive. */
export async function openRunNotices({ store, notifications, log }: RunNoticesParts): Promise<RunNotices> {
  const subscribers = new Set<RunSubscriber>();
  let waiting = new Set<string>();
  let sending: Promise<void> | undefined;
  const sendWaiting = async (): Promise<void> => {
    // What is sent in the same turn goes together.
    await Promise.resolve();
    while (waiting.size > 0) {
      const payloads = [...waiting];
      waiting = new Set();
      try {
        await notifyAll(store.db, 'agent_runs', payloads);
      } catch (error) {
        log.warn({ ...describeBug(error), notices: payloads.length }, 'notices of runs were not sent');
      }
    }
    sending = undefined;
  };
  const unsubscribe = await notifications.subscribe('agent_runs', {
    onMessage(payload) {
      const notice = parseRunNotice(payload);
      if (notice !== undefined) for (const { onNotice } of subscribers) onNotice(notice);
    },
    onMissed() {
      for (const { onMissed } of subscribers) onMissed();
    },
  });
  return {
    send(notice) {
      waiting.add(formatRunNotice(notice));
      sending ??= sendWaiting();
    },
    subscribe(subscriber) {
      subscribers.add(subscriber);
      return () => void subscribers.delete(subscriber);
    },
    async close() {
      unsubscribe();
      await sending;
    },
  };
}

/** The payload on the channel `agent_runs`. */
export function formatRunNotice(notice: RunNotice): string {
  if (notice.kind === 'updated') return `updated ${notice.threadId} ${notice.updateId}`;
  return `${notice.kind} ${'threadId' in notice ? notice.threadId : notice.runId}`;
}

const OF_THREADS = ['new', 'follow', 'started'] as const;
const OF_RUNS = ['cancel', 'ended', 'watch', 'events'] as const;
const ID = z.guid();

/** Undefined for what this version does not know. */
export function parseRunNotice(payload: string): RunNotice | undefined {
  const [kind, id, ...rest] = payload.split(' ');
  if (id === undefined || !ID.safeParse(id).success) return undefined;
  const [updateId, ...more] = rest;
  if (kind === 'updated' && updateId !== undefined && more.length === 0 && ID.safeParse(updateId).success)
    return { kind, threadId: id, updateId };
  if (rest.length > 0) return undefined;
  const ofThread = OF_THREADS.find((one) => one === kind);
  if (ofThread !== undefined) return { kind: ofThread, threadId: id };
  const ofRun = OF_RUNS.find((one) => one === kind);
  return ofRun && { kind: ofRun, runId: id };
}
