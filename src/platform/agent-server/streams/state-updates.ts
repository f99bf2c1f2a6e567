// What readers of a thread learn when a client changes its state: at once in this process, and over the database in others that follow
// the thread. A notice has no place for a state, so that one is stored for a moment.
import { randomUUID } from 'node:crypto';
import type { JsonText } from '../../../agent-worker/protocol/messages.ts';
import { describeBug, type Log } from '../../../base/log.ts';
import type { Database } from '../../store/database.ts';
import type { FollowedThreads } from './followed-threads.ts';
import type { RunNotices } from './run-notices.ts';
import { readStored } from './stored-events.ts';

export type StateUpdates = {
  /** After the commit. Never rejects: what the client has changed is changed. */
  announce(threadId: string, state: JsonText): Promise<void>;
  close(): Promise<void>;
};

export type StateUpdatesParts = {
  readonly store: { readonly db: Database };
  readonly notices: Pick<RunNotices, 'send' | 'subscribe'>;
  readonly followed: Pick<FollowedThreads, 'isFollowedElsewhere' | 'isFollowedHere' | 'updated'>;
  readonly log: Log;
};

export const STATE_UPDATE = 'state_update';

export function createStateUpdates({ store, notices, followed, log }: StateUpdatesParts): StateUpdates {
  /** Its notices come back to the process that has sent them. */
  const own = new Set<string>();
  const reading = new Set<Promise<void>>();
  const read = async (threadId: string, runId: string): Promise<void> => {
    try {
      const [stored] = await readStored(store.db, { runId, after: -1 });
      if (stored?.event === STATE_UPDATE) followed.updated(threadId, stored.data);
    } catch (error) {
      log.warn({ ...describeBug(error), thread: threadId }, 'an update of a state could not be read');
    }
  };
  const unsubscribe = notices.subscribe({
    onNotice(notice) {
      if (notice.kind !== 'updated' || own.delete(notice.updateId)) return;
      if (!followed.isFollowedHere(notice.threadId)) return;
      const done = read(notice.threadId, notice.updateId).finally(() => reading.delete(done));
      reading.add(done);
    },
    onMissed: () => own.clear(),
  });
  return {
    async announce(threadId, state) {
      const data = `{"state":${state},"thread_id":${JSON.stringify(threadId)}}`;
      followed.updated(threadId, data);
      if (!followed.isFollowedElsewhere(threadId)) return;
      const updateId = randomUUID();
      try {
        const row = { run_id: updateId, id: '0', event: STATE_UPDATE, data };
        await store.db.insertInto('agent_run_events').values(row).execute();
        own.add(updateId);
        notices.send({ kind: 'updated', threadId, updateId });
      } catch (error) {
        log.warn({ ...describeBug(error), thread: threadId }, 'an update was not sent to other processes');
      }
    },
    async close() {
      unsubscribe();
      await Promise.all(reading);
    },
  };
}
