// The partitions of runs, one for each UTC day: made before they are needed, and dropped once each run in them is older than runs are
// kept, with what belongs to those runs.
import { DomainError } from '../../../base/domain-error.ts';
import type { Database, Reader } from '../../store/database.ts';
import { codeOf } from '../../store/database-error.ts';
import { sql } from '../../store/sql.ts';
import type { RunPart } from '../runs/run-part.ts';
import type { ExpiredDays } from '../trace-store.ts';
import { narrowSpans } from './project-spans.ts';

/** Requests make those of other days. */
const DAYS_AHEAD = 3;

export async function prepareDays(db: Database): Promise<void> {
  for (let ahead = 0; ahead <= DAYS_AHEAD; ahead += 1)
    await sql`select trace_make_partition((now() at time zone 'utc')::date + ${ahead}::int)`.execute(db);
}

/** Of one request. Each takes some ten milliseconds, and every process reads the list of partitions again. */
const NEW_DAYS = 100;
const RETRY_MS = 1_000;

/**
 * Each is a statement, and so a transaction, of its own: nobody waits for more than one of them. They belong to no tenant, and stay
 * where the request fails.
 */
export async function prepareRuns(db: Reader, parts: readonly Pick<RunPart, 'start'>[]): Promise<void> {
  const days = new Set(parts.map(({ start }) => start.start_time.slice(0, 10)));
  const missing = await findMissing(db, [...days]);
  for (const day of missing.slice(0, NEW_DAYS))
    await db
      .selectFrom(sql`trace_make_partition(${day}::date)`.as('made'))
      .select(sql`1`.as('one'))
      .execute();
  if (missing.length > NEW_DAYS)
    throw new DomainError(
      'too_many',
      `The runs start on more than ${NEW_DAYS} days on which no run has started before: send the request again, which goes on from there, or send runs of fewer days at once`,
      RETRY_MS,
    );
}

export async function countPartitions(db: Reader): Promise<number> {
  const row = await db
    .selectFrom(sql`pg_inherits`.as('i'))
    .where(sql<boolean>`inhparent = 'public.trace_runs'::regclass`)
    .select(sql<string>`count(*)`.as('partitions'))
    .executeTakeFirst();
  return Number(row?.partitions ?? 0);
}

/** Latest first: most runs are young. */
async function findMissing(db: Reader, days: readonly string[]): Promise<readonly string[]> {
  if (days.length === 0) return [];
  const rows = await db
    .selectFrom(sql<{ day: Date }>`unnest(${days}::date[])`.as<'d'>(sql`d(day)`))
    .where(sql<boolean>`to_regclass('public.trace_runs_' || to_char(d.day, 'YYYYMMDD')) is null`)
    .select(sql<string>`d.day::text`.as('day'))
    .orderBy('d.day', 'desc')
    .execute();
  return rows.map(({ day }) => day);
}

/**
 * A day is dropped when all of it is older, by the clock of the database and by that of this process: one that is ahead by days
 * drops nothing young.
 */
export async function expireRuns(
  db: Database,
  {
    keptDays,
    nowMs,
    signal,
  }: { readonly keptDays: number; readonly nowMs: number; readonly signal: AbortSignal },
): Promise<ExpiredDays> {
  const before = await findCutoff(db, keptDays, nowMs);
  const [dropped, left]: [string[], string[]] = [[], []];
  for (const day of await findDaysBefore(db, before)) {
    if (signal.aborted) break;
    const isDropped = (await dropDay(db, day)) || (await emptyDay(db, day, signal), await dropDay(db, day));
    (isDropped ? dropped : left).push(day);
  }
  await removeRest(db, before, signal);
  await narrowSpans(db, before);
  return { dropped, left };
}

/** The first day that is kept. */
async function findCutoff(db: Database, keptDays: number, nowMs: number): Promise<string> {
  const now = new Date(nowMs).toISOString();
  const { rows } = await sql<{ day: string }>`
    select ((least(now(), ${now}::timestamptz) at time zone 'utc')::date - ${keptDays}::int)::text as day`.execute(
    db,
  );
  return rows[0]?.day ?? '';
}

async function findDaysBefore(db: Database, day: string): Promise<readonly string[]> {
  const { rows } = await sql<{ day: string }>`
    select to_date(right(c.relname, 8), 'YYYYMMDD')::text as day
    from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'public.trace_runs'::regclass and c.relname ~ '^trace_runs_[0-9]{8}$'
      and to_date(right(c.relname, 8), 'YYYYMMDD') < ${day}::date
    order by 1`.execute(db);
  return rows.map((row) => row.day);
}

/** lock_not_available: queries read it. Those that come meanwhile wait behind the drop, half a second at most. */
const LOCKED = '55P03';

async function dropDay(db: Database, day: string): Promise<boolean> {
  try {
    await sql`select trace_drop_partition(${day}::date)`.execute(db);
    return true;
  } catch (error) {
    if (error instanceof DomainError && codeOf(error.cause) === LOCKED) return false;
    throw error;
  }
}

/** Rows of one statement: long ones would delay the vacuum of the tables. */
const ROWS = 10_000;

/** Queries keep the table, for which they may follow each other without an end, and keep none of its rows. */
async function emptyDay(db: Database, day: string, signal: AbortSignal): Promise<void> {
  const isOfDay = sql`start_time >= (${day}::timestamp at time zone 'utc')
    and start_time < ((${day}::date + 1)::timestamp at time zone 'utc')`;
  await repeat(signal, async () => {
    const { rows } = await sql<{ removed: string }>`
      with gone as (
        delete from trace_runs where ${isOfDay} and ctid = any(array(
          select ctid from trace_runs where ${isOfDay} limit ${ROWS} for update skip locked))
        returning 1
      ) select count(*) as removed from gone`.execute(db);
    return Number(rows[0]?.removed);
  });
}

/** Places without a run, with the feedback and the attachments of it; and those of runs that never came. */
async function removeRest(db: Database, day: string, signal: AbortSignal): Promise<void> {
  const time = sql`(${day}::timestamp at time zone 'utc')`;
  const places = sql<{ removed: string }>`
    with chosen as (
      select workspace_id, id from trace_run_places p
      where start_time < ${time} and not exists (
        select from trace_runs r
        where r.workspace_id = p.workspace_id and r.session_id = p.session_id and r.start_time = p.start_time
          and r.id = p.id and r.start_time < ${time})
      limit ${ROWS} for update skip locked
    ), gone as (
      delete from trace_run_places p using chosen c where p.workspace_id = c.workspace_id and p.id = c.id
      returning p.workspace_id, p.id
    ), feedback as (
      delete from trace_feedback f using gone where f.workspace_id = gone.workspace_id and f.run_id = gone.id
    ), attachments as (
      delete from trace_attachments a using gone where a.workspace_id = gone.workspace_id and a.run_id = gone.id
    )
    select count(*) as removed from gone`;
  await repeat(signal, async () => Number((await places.execute(db)).rows[0]?.removed));
  for (const table of ['trace_feedback', 'trace_attachments'] as const)
    await repeat(signal, async () => {
      const { rows } = await sql<{ removed: string }>`
        with gone as (
          delete from ${sql.table(table)} where ctid = any(array(
            select ctid from ${sql.table(table)} t
            where created_at < ${time} and run_id is not null and not exists (
              select from trace_run_places p where p.workspace_id = t.workspace_id and p.id = t.run_id)
            limit ${ROWS} for update skip locked))
          returning 1
        ) select count(*) as removed from gone`.execute(db);
      return Number(rows[0]?.removed);
    });
}

async function repeat(signal: AbortSignal, remove: () => Promise<number>): Promise<void> {
  while (!signal.aborted && (await remove()) === ROWS);
}
