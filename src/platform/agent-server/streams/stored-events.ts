// Events of runs in the database: those that a reader may ask for again, and those that a reader in another process follows.
import { sql } from '../../store/sql.ts';
import type { Database } from '../../store/database.ts';
import type { KeptEvent, RunEvent } from './event-queue.ts';

export type RunAttempt = { readonly runId: string; readonly attempt: number };

/**
 * False, and nothing is stored, when the run is not running by this attempt any more. Whoever takes a run over locks its row
 * `for update` first, so that either this sees the new attempt or that one sees these events. May be repeated.
 */
export async function storeEvents(
  db: Database,
  { runId, attempt }: RunAttempt,
  events: readonly KeptEvent[],
): Promise<boolean> {
  const numbers = events.map(({ number }) => number);
  const names = events.map(({ sent }) => sent.event);
  const texts = events.map(({ sent }) => sent.data);
  const { rows } = await sql<{ readonly held: number }>`
    with held as (
      select run_id from agent_runs
      where run_id = ${runId} and attempt = ${attempt} and status = 'running' for key share
    ), stored as (
      insert into agent_run_events (run_id, id, event, data)
      select held.run_id, event.id, event.event, event.data
      from held, unnest(${numbers}::bigint[], ${names}::text[], ${texts}::text[]) as event (id, event, data)
      on conflict do nothing
    )
    select 1 as held from held`.execute(db);
  return rows.length > 0;
}

export type Range = { readonly runId: string; readonly after: number; readonly before?: number | undefined };

const MAX_ROWS = 1000;
/** Of what is read at once, beside one event that may have any size. */
const MAX_READ_BYTES = 1024 * 1024;

/** The first of these events, in order; none when there are no more. */
export async function readStored(
  db: Pick<Database, 'selectFrom'>,
  { runId, after, before }: Range,
): Promise<readonly RunEvent[]> {
  return db
    .selectFrom((inner) =>
      inner
        .selectFrom('agent_run_events')
        .select(['id', 'event', 'data'])
        .select(
          sql<number>`sum(octet_length(data)) over (order by id) - octet_length(data)`.as('bytes_before'),
        )
        .where('run_id', '=', runId)
        .where('id', '>', String(after))
        .$if(before !== undefined, (some) => some.where('id', '<', String(before)))
        .orderBy('id')
        .limit(MAX_ROWS)
        .as('found'),
    )
    .select(['id', 'event', 'data'])
    .where('bytes_before', '<', MAX_READ_BYTES)
    .orderBy('id')
    .execute();
}

/** The number of the last stored event of a run; -1 where it has none. */
export async function lastStored(db: Pick<Database, 'selectFrom'>, runId: string): Promise<number> {
  const { last } = await db
    .selectFrom('agent_run_events')
    .select(({ fn }) => fn.max('id').as('last'))
    .where('run_id', '=', runId)
    .executeTakeFirstOrThrow();
  return Number(last ?? -1);
}

export type RunFacts = {
  readonly hasEnded: boolean;
  /** It is not to begin yet. */
  readonly isScheduled: boolean;
  readonly attempt: number;
  /** The number of its last stored event; -1 where it has none. */
  readonly lastStored: number;
};

/** By run; one that does not exist has none. */
export async function readRunFacts(
  db: Pick<Database, 'selectFrom'>,
  runIds: readonly string[],
): Promise<ReadonlyMap<string, RunFacts>> {
  const found = await db
    .selectFrom('agent_runs')
    .select(['run_id', 'status', 'attempt'])
    .select(sql<boolean>`status = 'pending' and run_after > now()`.as('is_scheduled'))
    .select(
      sql<
        string | null
      >`(select max(id) from agent_run_events as event where event.run_id = agent_runs.run_id)`.as('last'),
    )
    .where('run_id', '=', sql<string>`any(${runIds}::uuid[])`)
    .execute();
  return new Map(
    found.map(({ run_id, status, is_scheduled: isScheduled, attempt, last }) => {
      const hasEnded = status !== 'pending' && status !== 'running';
      return [run_id, { attempt, isScheduled, hasEnded, lastStored: Number(last ?? -1) }];
    }),
  );
}
