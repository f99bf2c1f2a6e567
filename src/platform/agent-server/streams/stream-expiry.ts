// Removes stored events a while after their run has ended, and threads that existed for such a run alone. Every process tries,
// and one at a time does it, in small transactions.
import { describeBug, type Log } from '../../../base/log.ts';
import type { Store, Transaction } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';

export type ExpiryParts = {
  readonly store: Pick<Store, 'write'>;
  readonly log: Log;
  /** After the end of its run. */
  readonly ttlSeconds: number;
  readonly everyMs?: number;
};

const EVERY_MS = 30_000;
/** Of the advisory lock: any number that nothing else uses. */
const LOCK = 7_412_180_018;
const RUNS = 100;
const EVENTS = 5_000;
const THREADS = 200;

export function startStreamExpiry(parts: ExpiryParts): { close(): Promise<void> } {
  let running: Promise<void> | undefined;
  const expire = async (): Promise<void> => {
    try {
      await expireStreams(parts);
    } catch (error) {
      parts.log.warn(describeBug(error), 'stored events of runs could not be removed');
    }
    running = undefined;
  };
  const timer = setInterval(() => (running ??= expire()), parts.everyMs ?? EVERY_MS).unref();
  return {
    async close() {
      clearInterval(timer);
      await running;
    },
  };
}

/** Returns how many events and threads were removed. */
export async function expireStreams({
  store,
  ttlSeconds,
}: Pick<ExpiryParts, 'store' | 'ttlSeconds'>): Promise<{
  readonly events: number;
  readonly threads: number;
}> {
  const total = { events: 0, threads: 0 };
  for (;;) {
    const removed = await store.write((trx) => removeSome(trx, ttlSeconds));
    total.events += removed.events;
    total.threads += removed.threads;
    if (removed.events + removed.threads === 0) return total;
  }
}

async function removeSome(
  trx: Transaction,
  ttlSeconds: number,
): Promise<{ events: number; threads: number }> {
  const lock = sql<{ free: boolean }>`select pg_try_advisory_xact_lock(${sql.lit(LOCK)}) as free`;
  const { rows } = await lock.execute(trx);
  if (rows[0]?.free !== true) return { events: 0, threads: 0 };
  return { events: await removeEvents(trx, ttlSeconds), threads: await removeThreads(trx, ttlSeconds) };
}

/** The recursion steps from run to run in the index: there may be many events of each. */
async function removeEvents(trx: Transaction, ttlSeconds: number): Promise<number> {
  const removed = await sql`
    with recursive stored as (
      (select run_id from agent_run_events order by run_id limit 1)
      union all
      select (select event.run_id from agent_run_events event where event.run_id > stored.run_id order by run_id limit 1)
      from stored where stored.run_id is not null
    ), expired as (
      select stored.run_id from stored left join agent_runs run on run.run_id = stored.run_id
      where stored.run_id is not null
        -- Without a run: of one that was deleted, or an update of a state that other processes are about to read.
        and (run.run_id is null and not exists (
            select from agent_run_events recent
            where recent.run_id = stored.run_id and recent.id = 0 and recent.event = 'state_update'
              and recent.created_at > now() - interval '60 seconds')
          or run.ended_at < now() - ${ttlSeconds}::int * interval '1 second')
      limit ${RUNS}
    )
    delete from agent_run_events where ctid = any(array(
      select event.ctid from agent_run_events event join expired on expired.run_id = event.run_id limit ${EVENTS}
    ))`.execute(trx);
  return Number(removed.numAffectedRows ?? 0);
}

async function removeThreads(trx: Transaction, ttlSeconds: number): Promise<number> {
  const removed = await sql`
    delete from agent_threads where thread_id in (
      select thread_id from agent_threads thread
      where is_temporary and not exists (
        select from agent_runs run where run.thread_id = thread.thread_id
          and (run.ended_at is null or run.ended_at >= now() - ${ttlSeconds}::int * interval '1 second')
      )
      limit ${THREADS}
    )`.execute(trx);
  return Number(removed.numAffectedRows ?? 0);
}
