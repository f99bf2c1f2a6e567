// That boxes are used: as long as a call runs or a WebSocket is open, the time of their last use is written again and again, by one
// statement for all of them, and by the clock of the database. Whoever stops boxes that are idle looks at that time alone.
import { describeBug, type Log } from '../../../base/log.ts';
import type { Database } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';

/** Far below the shortest `idle_ttl_seconds`, which is a minute. */
export const USE_SECONDS = 20;

export type BoxUse = {
  /** Writes the time now. False where it could not be: the box is being changed, or is to run no longer. */
  touch(id: string): Promise<boolean>;
  /** Until the result is called. */
  begin(id: string): () => void;
  /** Writes the times of all boxes in use, and of those that were since the last time. */
  write(): Promise<void>;
  close(): Promise<void>;
};

type Waiter = { readonly id: string; readonly done: PromiseWithResolvers<boolean> };

export function createBoxUse({ db, log }: { readonly db: Database; readonly log: Log }): BoxUse {
  /** How many calls run, and the boxes whose last one has ended. */
  const running = new Map<string, number>();
  let waiting: Waiter[] = [];
  let touching: Promise<void> | undefined;

  const write = async (): Promise<void> => {
    const ids = [...running.keys()];
    for (const [id, calls] of running) if (calls === 0) running.delete(id);
    try {
      if (ids.length > 0) await update(db, ids);
    } catch (error) {
      log.warn(describeBug(error), 'the last use of sandboxes was not stored; it is tried again');
      for (const id of ids) running.set(id, running.get(id) ?? 0);
    }
  };
  // Those that come meanwhile share the next statement.
  const touchAll = async (): Promise<void> => {
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      try {
        const ids = await update(db, [...new Set(batch.map(({ id }) => id))]);
        for (const { id, done } of batch) done.resolve(ids.has(id));
      } catch (error) {
        for (const { done } of batch) done.reject(error);
      }
    }
    touching = undefined;
  };
  const timer = setInterval(() => void write(), USE_SECONDS * 1000).unref();
  return {
    write,
    touch(id) {
      const done = Promise.withResolvers<boolean>();
      waiting.push({ id, done });
      touching ??= touchAll();
      return done.promise;
    },
    begin(id) {
      running.set(id, (running.get(id) ?? 0) + 1);
      return () => void running.set(id, Math.max(0, (running.get(id) ?? 1) - 1));
    },
    async close() {
      clearInterval(timer);
      await write();
    },
  };
}

/** The ids of the boxes that were written. One that is locked is written the next time: nobody waits behind a slow change. */
async function update(db: Database, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ id: string }>`
    update boxes set active_at = now()
    where id in (
      select id from boxes
      where id = any(${ids}::uuid[]) and status = 'ready' and desired = 'running'
      for no key update skip locked)
    returning id`.execute(db);
  return new Set(rows.map(({ id }) => id));
}
