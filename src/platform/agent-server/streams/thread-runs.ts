// The runs of a thread in the order in which a reader of the thread gets them: one that has begun before one that waits.
import type { Database } from '../../store/database.ts';
import { type Filter, whereVisible } from '../access/filters.ts';

type Reader = Pick<Database, 'selectFrom'>;

export type ThreadRun = {
  readonly runId: string;
  readonly position: number;
  readonly hasBegun: boolean;
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

/** Those after a position, with the smaller ones of them first; of a thread that the filter hides, none. */
export async function listRunsAfter(
  db: Reader,
  { threadId, filter }: { readonly threadId: string; readonly filter: Filter | undefined },
  position: number,
): Promise<readonly ThreadRun[]> {
  const rows = await db
    .selectFrom('agent_runs as r')
    .innerJoin('agent_threads as t', 't.thread_id', 'r.thread_id')
    .select(['r.run_id', 'r.position', 'r.status'])
    .where('r.thread_id', '=', threadId)
    .where('r.position', '>', String(position))
    .where(whereVisible(filter, 't.metadata'))
    .orderBy('r.position')
    .limit(MAX_RUNS)
    .execute();
  return rows.map((row) => ({
    runId: row.run_id,
    position: Number(row.position),
    hasBegun: row.status !== 'pending',
  }));
}

/** More wait until some of these have ended. */
const MAX_RUNS = 1000;

/** Where a reader begins who wants what comes from now on: before the first run that has not ended. */
export async function findThreadStart(
  db: Reader,
  threadId: string,
): Promise<{ readonly position: number; readonly ended: readonly string[] }> {
  const { first, last } = await db
    .selectFrom('agent_runs')
    .select(({ fn }) => [
      fn.min<string | null>('position').filterWhere('ended_at', 'is', null).as('first'),
      fn.max<string | null>('position').as('last'),
    ])
    .where('thread_id', '=', threadId)
    .executeTakeFirstOrThrow();
  if (first === null) return { position: Number(last ?? -1), ended: [] };
  const ended = await db
    .selectFrom('agent_runs')
    .select('run_id')
    .where('thread_id', '=', threadId)
    .where('position', '>', first)
    .where('ended_at', 'is not', null)
    .execute();
  return { position: Number(first) - 1, ended: ended.map(({ run_id }) => run_id) };
}

export type ThreadPlace = {
  /** Runs after this one come. */
  readonly position: number;
  /** The first of them is read after this event. */
  readonly inRun?: { readonly position: number; readonly number: number };
};

/** After an event of a run of the thread, or after all of the run; after what was before a run that is gone. */
export async function findThreadPlace(
  db: Reader,
  threadId: string,
  { runId, number }: { readonly runId: string; readonly number: number | undefined },
): Promise<ThreadPlace> {
  const runs = db.selectFrom('agent_runs').where('thread_id', '=', threadId);
  const found = await runs.select('position').where('run_id', '=', runId).executeTakeFirst();
  if (found !== undefined) {
    const position = Number(found.position);
    return number === undefined ? { position } : { position: position - 1, inRun: { position, number } };
  }
  // Ids of runs are in the order in which they are created.
  const earlier = runs.select(({ fn }) => fn.max<string | null>('position').as('last'));
  const { last } = await earlier.where('run_id', '<', runId).executeTakeFirstOrThrow();
  return { position: Number(last ?? -1) };
}
