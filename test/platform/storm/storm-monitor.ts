// Watches the connections of the database server during a storm: whether those of a killed process have ended, and
// released their locks.
import { setTimeout as delay } from 'node:timers/promises';
import { type Connection, openDatabase } from '../../../src/platform/store/database.ts';
import { sql } from '../../../src/platform/store/sql.ts';
import type { Monitor } from './storm-process.ts';

export type StormMonitor = AsyncDisposable &
  Monitor & {
    /** Resolves when every job of the queue is done; rejects when some are not done in time. */
    jobsDone(queue: string): Promise<void>;
  };

const POLL_MS = 10;
const MAX_CLEANUP_MS = 5_000;
/** Another check measures the whole start. */
const MAX_CONNECTED_MS = 5_000;
/** Twice the time in which a job must run again. */
const MAX_JOBS_MS = 30_000;

export function openStormMonitor(owner: Connection): StormMonitor {
  const connection = { ...owner, application_name: 'storm monitor' };
  const store = openDatabase({ connection, maxConnections: 2, onError: () => undefined });
  const backendsOf = async (name: string): Promise<readonly number[]> => {
    const { rows } = await sql<{ readonly pid: number }>`
      select pid from pg_stat_activity where application_name = ${name}`.execute(store.db);
    return rows.map(({ pid }) => pid);
  };
  const locksOf = async (backends: readonly number[]): Promise<number> => {
    const { rows } = await sql<{ readonly pid: number }>`
      select pid from pg_locks where pid = any(${`{${backends.join(',')}}`}::integer[])`.execute(store.db);
    return rows.length;
  };
  return {
    backendsOf,
    async connected(name, limit) {
      const untilMs = performance.now() + MAX_CONNECTED_MS;
      const seen = async (): Promise<void> => {
        while (performance.now() < untilMs && (await backendsOf(name)).length === 0) await delay(POLL_MS);
      };
      await Promise.race([seen(), limit]);
      return backendsOf(name);
    },
    async cleanedUp(name, backends, sinceMs) {
      for (;;) {
        const elapsedMs = performance.now() - sinceMs;
        if ((await backendsOf(name)).length === 0 && (await locksOf(backends)) === 0) return elapsedMs;
        if (elapsedMs > MAX_CLEANUP_MS) return undefined;
        await delay(POLL_MS);
      }
    },
    async jobsDone(queue) {
      const untilMs = performance.now() + MAX_JOBS_MS;
      for (;;) {
        const { rows } = await sql<{ readonly state: string }>`
          select state::text from pgboss.job where name = ${queue} and state <> 'completed'`.execute(
          store.db,
        );
        if (rows.length === 0) return;
        if (performance.now() > untilMs)
          throw new Error(`unfinished jobs: ${rows.map(({ state }) => state).join(', ')}`);
        await delay(POLL_MS);
      }
    },
    [Symbol.asyncDispose]: () => store.close(),
  };
}
