// Which process executes which run, in the database and by its clock alone: claims of pending runs, leases of running ones, and
// what becomes of a run whose process or worker was lost. Of a thread one run at a time runs, in the order of their creation.
// What ends an attempt locks its row `for update`, and so waits for the writes of that attempt, which share its key.
import { type Database, isDuplicate } from '../../store/database.ts';
import { type CompiledQuery, sql } from '../../store/sql.ts';
import { defineStatement } from '../../store/statement.ts';
import {
  HAS_LONE,
  MAY_BE_BEHIND,
  MAY_START,
  startableAlone,
  startableBehind,
  startableOf,
} from './startable.ts';
import type { Cancellation } from '../runs/run-rows.ts';

/** A run that this process executes, as its row says. */
export type Claim = {
  readonly run_id: string;
  readonly thread_id: string;
  readonly assistant_id: string;
  readonly graph_id: string;
  /** JSON */
  readonly kwargs: string;
  readonly attempt: number;
  readonly losses: number;
  /** Why it was lost last; null where it never was. */
  readonly loss: string | null;
  /** It is executed apart from others. */
  readonly is_alone: boolean;
  readonly party: string;
  readonly cancellation: Cancellation | null;
  readonly is_resumable: boolean;
  readonly streamed_by: string | null;
  /** Its thread ends with it. */
  readonly is_temporary: boolean;
};

export const LEASE = sql`interval '10 seconds'`;
/** Three renewals of a lease may fail before it has run out. */
export const RENEWAL_MS = 3_000;

/** As an expression, so that no plan reads the whole index of pending runs for a few of them. */
const IS_PENDING = sql<boolean>`r.status || '' = 'pending'`;

/** Starts what `chosen` selects. As an array: the statement then goes from run to run, however large the tables are. */
function claim(db: Database, owner: string, chosen: ReturnType<typeof sql>): CompiledQuery<Claim> {
  return sql<Claim>`
    update agent_runs r
    set status = 'running', attempt = r.attempt + 1, updated_at = now(),
      lease_owner = ${owner}, lease_until = now() + ${LEASE}
    where ${IS_PENDING} and r.run_id = any (array(${chosen}))
    returning r.run_id, r.thread_id, r.assistant_id, r.graph_id, r.kwargs::text as kwargs, r.attempt, r.losses, r.loss,
      r.is_alone, r.party, r.cancellation, r.is_resumable, r.streamed_by,
      (select t.is_temporary from agent_threads t where t.thread_id = r.thread_id) as is_temporary`.compile(
    db,
  );
}

const claimOne = defineStatement(
  'claim-agent-run',
  (db, { owner, runId }: { readonly owner: string; readonly runId: string }) =>
    claim(
      db,
      owner,
      sql`select r.run_id from agent_runs r where r.run_id = ${runId} and ${MAY_START} for update skip locked`,
    ),
);

/** That run, if it may start now. */
export async function claimRun(db: Database, owner: string, runId: string): Promise<Claim | undefined> {
  const [claimed] = await orTaken(claimOne(db, { owner, runId }));
  return claimed;
}

type Fair = { readonly owner: string; readonly places: number; readonly excluded: string };

/**
 * Of each party the runs that may start; the party with the fewest running ones comes first. The walk over the parties reads one
 * row of the index for each.
 */
const claimFairly = defineStatement('claim-agent-runs', (db, { owner, places, excluded }: Fair) =>
  claim(
    db,
    owner,
    sql`
      with recursive parties as (
        (select party from agent_runs where status = 'pending' order by party limit 1)
        union all
        select (select o.party from agent_runs o where o.status = 'pending' and o.party > p.party order by o.party limit 1)
        from parties p where p.party is not null
      ), entitled as (
        select party from parties where party is not null and not party = any (string_to_array(${excluded}, ','))
      ), turns as (
        select h.run_id, h.run_after, h.position,
          row_number() over (partition by p.party order by h.run_after, h.position)
            + (select count(*) from agent_runs o where o.status = 'running' and o.party = p.party) as turn
        from entitled p cross join lateral (${startableOf(places)}) h
      ), chosen as (
        select run_id from (select run_id from turns order by turn, run_after, position limit ${places}) first
        union
        select run_id from (${startableBehind(places)}) behind
        where (select count(*) from turns) < ${places}
          and exists (select from entitled p where ${MAY_BE_BEHIND}) and party in (select party from entitled)
      )
      select r.run_id from agent_runs r
      where ${IS_PENDING} and r.run_id = any (array(select run_id from chosen limit ${places}))
      for update skip locked`,
  ),
);

/** At most so many, of any party but the excluded ones. */
export function claimRuns(
  db: Database,
  owner: string,
  { places, excluded }: { readonly places: number; readonly excluded: readonly string[] },
): Promise<readonly Claim[]> {
  return orTaken(claimFairly(db, { owner, places, excluded: excluded.join(',') }));
}

type Alone = { readonly owner: string; readonly places: number; readonly lastParty: string | null };

const claimThoseAlone = defineStatement('claim-lone-agent-runs', (db, { owner, places, lastParty }: Alone) =>
  claim(
    db,
    owner,
    sql`
      select r.run_id from agent_runs r
      where ${IS_PENDING} and r.run_id = any (array(${startableAlone(places, lastParty)}))
      for update skip locked`,
  ),
);

/** At most so many of those that are executed alone; the party that was served last comes after the others. */
export function claimLoneRuns(
  db: Database,
  owner: string,
  given: { readonly places: number; readonly lastParty: string | undefined },
): Promise<readonly Claim[]> {
  return orTaken(claimThoseAlone(db, { ...given, owner, lastParty: given.lastParty ?? null }));
}

/** Another process has started a run of the same thread between the look and the update: nothing was claimed. */
async function orTaken(claimed: Promise<readonly Claim[]>): Promise<readonly Claim[]> {
  try {
    return await claimed;
  } catch (error) {
    if (isDuplicate(error, 'agent_runs_thread_id_idx')) return [];
    throw error;
  }
}

export type Held = {
  readonly run_id: string;
  readonly attempt: number;
  readonly cancellation: Cancellation | null;
};

const renew = defineStatement(
  'renew-agent-runs',
  (db, { owner, ids }: { readonly owner: string; readonly ids: string }) =>
    sql<Held>`
      update agent_runs set lease_until = now() + ${LEASE}
      where lease_owner = ${owner} and status = 'running' and run_id = any (string_to_array(${ids}, ',')::uuid[])
      returning run_id, attempt, cancellation`.compile(db),
);

/** Those that this process still has. A lease that has run out is renewed too, as long as nobody has taken it. */
export function renewLeases(
  db: Database,
  owner: string,
  runIds: readonly string[],
): Promise<readonly Held[]> {
  return renew(db, { owner, ids: runIds.join(',') });
}

/** Makes the runs pending again whose lease has run out, in any process; returns how many. */
export async function freeLostRuns(db: Database): Promise<number> {
  const { rows } = await sql`
    update agent_runs
    set status = 'pending', lease_owner = null, lease_until = null, losses = losses + 1, updated_at = now(),
      loss = 'its server process ended or did not reach the database'
    where run_id in (
      select run_id from agent_runs where status = 'running' and lease_until < now() for update skip locked)
    returning run_id`.execute(db);
  return rows.length;
}

export type GivenBack = {
  readonly runId: string;
  readonly attempt: number;
  /** Why it was lost: it counts, and waits a moment, so that runs that were lost together are not executed together again. */
  readonly loss: string | null;
  /** It was lost with its worker: from now on it is executed alone, so that no run is lost with another one twice. */
  readonly isAlone: boolean;
  readonly pauseMs: number;
};

const putBack = defineStatement(
  'give-agent-run-back',
  (db, { runId, attempt, loss, isAlone, pauseMs, owner }: GivenBack & { readonly owner: string }) =>
    sql<{ run_id: string }>`
      update agent_runs
      set status = 'pending', lease_owner = null, lease_until = null, updated_at = now(),
        losses = losses + case when ${loss}::text is null then 0 else 1 end, loss = coalesce(${loss}, loss),
        is_alone = is_alone or ${isAlone}::boolean,
        run_after = greatest(run_after, now() + ${pauseMs}::float8 * interval '1 millisecond')
      where run_id = (
        select run_id from agent_runs
        where run_id = ${runId} and attempt = ${attempt} and lease_owner = ${owner} and status = 'running'
        for update)
      returning run_id`.compile(db),
);

/** Pending again, for any process. False: this process did not have it any more. */
export async function giveBack(db: Database, owner: string, given: GivenBack): Promise<boolean> {
  return (await putBack(db, { ...given, owner })).length > 0;
}

export type Pending = {
  /** Milliseconds until the next pending run is due; undefined where none is. */
  readonly dueMs: number | undefined;
  /** How long the one has been due that has waited longest; undefined where none is. */
  readonly oldestMs: number | undefined;
  /** Whether runs wait that are executed alone. */
  readonly hasLone: boolean;
  /** How many wait, those that are due later among them; counted up to a limit. */
  readonly count: number;
};

export async function lookAtPending(db: Database, limit: number): Promise<Pending> {
  const { rows } = await sql<{
    ms: number | null;
    oldest: number | null;
    has_lone: boolean;
    waiting: number;
  }>`
    select (extract(epoch from min(run_after) - now()) * 1000)::float8 as ms, ${HAS_LONE} as has_lone,
      (select (extract(epoch from now() - min(run_after)) * 1000)::float8 from agent_runs
        where status = 'pending' and run_after <= now()) as oldest,
      (select count(*)::int from (
        select from agent_runs where status = 'pending' limit ${limit}::int) counted) as waiting
    from agent_runs where status = 'pending' and run_after > now()`.execute(db);
  const { ms, oldest, has_lone: hasLone = false, waiting: count = 0 } = rows[0] ?? {};
  return { dueMs: ms ?? undefined, oldestMs: oldest ?? undefined, hasLone, count };
}
