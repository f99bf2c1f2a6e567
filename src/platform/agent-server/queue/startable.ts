// Which pending runs may start, as SQL: of a thread the first one that is due, while no other runs. What a claim reads is bounded,
// however many runs wait behind others of their threads. Runs that are executed alone are claimed apart from all others.
import { sql } from '../../store/sql.ts';

/** An index has the few pending runs that were executed before. */
const LONE = sql`o.status = 'pending' and o.attempt > 0 and o.is_alone`;

/** Those in which a run runs, and those whose next one is executed alone. */
const TAKEN_THREADS = sql`(
  select o.thread_id from agent_runs o where o.status = 'running'
  union all select o.thread_id from agent_runs o where ${LONE})`;

/** Of the run `r`. One that was executed before comes first, and nothing overtakes it: its thread may be in the middle of it. */
export const MAY_START = sql<boolean>`
  r.status = 'pending' and r.run_after <= now()
  and not exists (select from agent_runs o where o.thread_id = r.thread_id and o.status = 'running')
  and not exists (
    select from agent_runs o
    where o.thread_id = r.thread_id and o.status = 'pending' and o.attempt > 0
      and (r.attempt = 0 or o.position < r.position))
  and (r.attempt > 0 or not exists (
    select from agent_runs o
    where o.thread_id = r.thread_id and o.status = 'pending' and o.run_after <= now() and o.position < r.position))`;

/** The run of a thread that comes next, if it is due. Each branch reads the beginning of an index. */
const nextOf = (thread: ReturnType<typeof sql>) => sql`
  select * from (
    (select 1 as rank, r.run_id, r.party, r.run_after, r.position from agent_runs r
      where r.thread_id = ${thread} and r.status = 'pending' and r.attempt > 0 order by r.position limit 1)
    union all
    (select 2, r.run_id, r.party, r.run_after, r.position from agent_runs r
      where r.thread_id = ${thread} and r.status = 'pending' and r.run_after <= now() and r.attempt = 0
      order by r.position limit 1)
    order by rank limit 1
  ) next where next.run_after <= now()`;

/** Of the party `p`, by the index that has their order. */
const DUE = sql`r.party = p.party and r.status = 'pending' and r.run_after <= now()`;

/** Runs that are looked at one after another without one of a thread that may start. */
const BLOCKED = 200;
/** Of runs that wait behind so many. */
const THREADS = 2000;

/**
 * Runs of the party `p` that may start, at most so many, those that are due for longest first. The recursion goes from thread to
 * thread in the order in which their runs are due, and gives up behind many that wait for others of their threads.
 */
export function startableOf(places: number) {
  const next = (after: ReturnType<typeof sql>) => sql`
    select r.run_after, r.position, r.thread_id from (
      select r.run_after, r.position, r.thread_id from agent_runs r where ${DUE} and ${after}
      order by r.run_after, r.position limit ${sql.lit(BLOCKED)}
    ) r where r.thread_id not in ${TAKEN_THREADS}`;
  return sql`
    with recursive waiting as (
      (select r.run_after, r.position, r.thread_id, array[r.thread_id] as seen from (${next(sql`true`)}) r limit 1)
      union all
      select r.run_after, r.position, r.thread_id, w.seen || r.thread_id
      from waiting w cross join lateral (
        select * from (${next(sql`(r.run_after, r.position) > (w.run_after, w.position)`)}) r
        where r.thread_id <> all (w.seen) limit 1
      ) r
      where cardinality(w.seen) < ${places}
    )
    select h.run_id, h.run_after, h.position
    from waiting w cross join lateral (${nextOf(sql`w.thread_id`)}) h
    where h.party = p.party
    order by h.run_after, h.position`;
}

/** Whether so many runs of the party `p` are due that startable ones may be behind them. */
export const MAY_BE_BEHIND = sql<boolean>`(
  select count(*) = ${sql.lit(BLOCKED)} from (
    select r.position from agent_runs r where ${DUE} order by r.run_after, r.position limit ${sql.lit(BLOCKED)}
  ) first)`;

/** Startable runs of any thread and any party, at most so many, in the order of the threads. */
export function startableBehind(places: number) {
  return sql`
    with recursive threads as (
      (select thread_id, 1 as nth from agent_runs where status = 'pending' order by thread_id limit 1)
      union all
      select (select r.thread_id from agent_runs r
          where r.status = 'pending' and r.thread_id > t.thread_id order by r.thread_id limit 1), nth + 1
      from threads t where t.thread_id is not null and nth < ${sql.lit(THREADS)}
    )
    select h.run_id, h.run_after, h.position, h.party
    from threads cross join lateral (${nextOf(sql`threads.thread_id`)}) h
    where threads.thread_id not in ${TAKEN_THREADS}
    limit ${places}`;
}

/** Whether runs wait that are executed alone. */
export const HAS_LONE = sql<boolean>`exists (select from agent_runs o where ${LONE})`;

/**
 * Runs that are executed alone and may start, at most so many, in the order in which they are due. Those of the given party come after
 * all others: with it the parties take turns.
 */
export function startableAlone(places: number, lastParty: string | null) {
  return sql`
    select h.run_id from (select distinct o.thread_id from agent_runs o where ${LONE}) t
    cross join lateral (${nextOf(sql`t.thread_id`)}) h
    where t.thread_id not in (select o.thread_id from agent_runs o where o.status = 'running')
    order by (h.party is not distinct from ${lastParty}::text), h.run_after, h.position
    limit ${places}`;
}
