// The runs of a thread in the order in which a reader of the thread gets them: one that has begun before one that waits.
import type { Database } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import { type Filter, whereVisible } from '../access/filters.ts';

type Reader = Pick<Database, 'selectFrom'>;

export type ThreadRun = { readonly runId: string; readonly position: number };

/** How far a reader is: all runs up to a position have come, except for those that wait there, such as scheduled ones. */
export type ThreadPlace = {
  readonly position: number;
  readonly waiting: readonly string[];
  /** The run of this position is read after this event. */
  readonly inRun?: { readonly position: number; readonly number: number };
};

/** Temporary threads are those of one run, which is streamed by itself. */
export async function isThreadVisible(
  db: Reader,
  threadId: string,
  filter: Filter | undefined,
): Promise<boolean> {
  const thread = await db
    .selectFrom('agent_threads')
    .select('thread_id')
    .where('thread_id', '=', threadId)
    .where('is_temporary', '=', false)
    .where(whereVisible(filter))
    .executeTakeFirst();
  return thread !== undefined;
}

type Visible = { readonly threadId: string; readonly filter: Filter | undefined };

export type NextRun = {
  /** Undefined: none has begun yet, unless `isPartial`. */
  readonly run: ThreadRun | undefined;
  /** After that run. */
  readonly place: ThreadPlace;
  /** There are more runs to look at. */
  readonly isPartial: boolean;
};

/** The first that has begun of those that have not come; of a thread that the filter hides, none. */
export async function findNextRun(db: Reader, thread: Visible, place: ThreadPlace): Promise<NextRun> {
  const late = place.waiting.length === 0 ? [] : await listWaiting(db, thread, place.waiting);
  const begun = late.find(hasBegun);
  const waiting = late.flatMap((one) => (one === begun ? [] : [one.run_id]));
  if (begun !== undefined) return { run: toThreadRun(begun), place: { ...place, waiting }, isPartial: false };
  const rows = await selectVisible(db, thread)
    .where('r.position', '>', String(place.position))
    .orderBy('r.position')
    .limit(PAGE)
    .execute();
  const at = rows.findIndex(hasBegun);
  const isPartial = at === -1 && rows.length === PAGE;
  if (at === -1 && !isPartial) return { run: undefined, place: { ...place, waiting }, isPartial };
  const run = rows[at];
  const passed = (at === -1 ? rows : rows.slice(0, at)).map(({ run_id: id }) => id);
  const position = Number((run ?? rows.at(-1))?.position);
  return {
    run: run && toThreadRun(run),
    place: { ...place, position, waiting: [...waiting, ...passed] },
    isPartial,
  };
}

const PAGE = 1000;

type Row = { readonly run_id: string; readonly position: string; readonly status: string };

/** Without those that are gone. */
function listWaiting(db: Reader, thread: Visible, waiting: readonly string[]): Promise<readonly Row[]> {
  return selectVisible(db, thread)
    .where('r.run_id', '=', sql<string>`any(${waiting}::uuid[])`)
    .orderBy('r.position')
    .execute();
}

function selectVisible(db: Reader, { threadId, filter }: Visible) {
  return db
    .selectFrom('agent_runs as r')
    .innerJoin('agent_threads as t', 't.thread_id', 'r.thread_id')
    .select(['r.run_id', 'r.position', 'r.status'])
    .where('r.thread_id', '=', threadId)
    .where(whereVisible(filter, 't.metadata'));
}

function hasBegun({ status }: Row): boolean {
  return status !== 'pending';
}

function toThreadRun({ run_id: runId, position }: Row): ThreadRun {
  return { runId, position: Number(position) };
}

/** Where a reader begins who wants what comes from now on: with the runs that have not ended. */
export async function findThreadStart(db: Reader, threadId: string): Promise<ThreadPlace> {
  const row = await db
    .selectFrom('agent_threads as t')
    .select([
      sql<string | null>`(select max(position) from agent_runs r where r.thread_id = t.thread_id)`.as(
        'position',
      ),
      unendedUpTo(Number.MAX_SAFE_INTEGER).as('waiting'),
    ])
    .where('t.thread_id', '=', threadId)
    .executeTakeFirst();
  return { position: Number(row?.position ?? -1), waiting: row?.waiting ?? [] };
}

/** After an event of a run of the thread, or after all of the run; after what was before a run that is gone. */
export async function findThreadPlace(
  db: Reader,
  threadId: string,
  { runId, number }: { readonly runId: string; readonly number: number | undefined },
): Promise<ThreadPlace> {
  const runs = db.selectFrom('agent_runs').where('thread_id', '=', threadId);
  const found = await runs.select('position').where('run_id', '=', runId).executeTakeFirst();
  // Ids of runs are in the order in which they are created.
  const earlier = runs.select(({ fn }) => fn.max<string | null>('position').as('position'));
  const last = found ?? (await earlier.where('run_id', '<', runId).executeTakeFirstOrThrow());
  const position = Number(last.position ?? -1);
  const isWithin = found !== undefined && number !== undefined;
  const at = isWithin ? position - 1 : position;
  const thread = db.selectFrom('agent_threads as t').select(unendedUpTo(at).as('waiting'));
  const row = await thread.where('t.thread_id', '=', threadId).executeTakeFirst();
  const place = { position: at, waiting: row?.waiting ?? [] };
  return isWithin ? { ...place, inRun: { position, number } } : place;
}

/** Of the thread `t`. */
function unendedUpTo(position: number) {
  return sql<readonly string[]>`array(
    select run_id from agent_runs r
    where r.thread_id = t.thread_id and r.status in ('pending', 'running') and r.position <= ${position})`;
}
