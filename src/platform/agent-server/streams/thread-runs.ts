// The runs of a thread in the order in which a reader of the thread gets them: one that has begun before one that waits.
import type { Database } from '../../store/database.ts';

type Reader = Pick<Database, 'selectFrom'>;

export type ThreadRun = {
  readonly runId: string;
  readonly position: number;
  readonly hasBegun: boolean;
};

/** Those after a position, with the smaller ones of them first. */
export async function listRunsAfter(
  db: Reader,
  threadId: string,
  position: number,
): Promise<readonly ThreadRun[]> {
  const rows = await db
    .selectFrom('agent_runs')
    .select(['run_id', 'position', 'status'])
    .where('thread_id', '=', threadId)
    .where('position', '>', String(position))
    .orderBy('position')
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
