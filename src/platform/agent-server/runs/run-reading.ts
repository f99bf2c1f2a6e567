// Finds runs that a caller may see, also those whose temporary thread has ended with them and left their result alone.
import type { Reader } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import { DomainError } from '../../../base/domain-error.ts';
import { type Filter, whereVisible } from '../access/filters.ts';
import { requireSmallPage } from '../page-size.ts';
import type { RunPlace } from './run-parts.ts';
import type { RunStatus } from './run-rows.ts';
import { type RunField, type RunRow, runText, selectRuns } from './run-shape.ts';
import { noThread } from './thread-for-run.ts';

export function noRun(): DomainError {
  return new DomainError('not_found', 'Run not found');
}

/** Throws `not_found`. */
export async function readRun(
  db: Reader,
  { threadId, runId }: RunPlace,
  filter: Filter | undefined,
): Promise<RunRow> {
  const row = await selectRuns(db)
    .where('r.run_id', '=', runId)
    .where('r.thread_id', '=', threadId)
    .where(whereVisible(filter, 't.metadata'))
    .executeTakeFirst();
  if (row === undefined) throw noRun();
  return row;
}

export type Page = {
  readonly limit: number;
  readonly offset: number;
  readonly status?: RunStatus | undefined;
  readonly fields: readonly RunField[];
};

const LARGE: readonly RunField[] = ['metadata', 'kwargs'];

/** The JSON text of each, the newest first. Throws `not_found` for the thread, and `unusable` for too large a page. */
export async function listRuns(
  db: Reader,
  threadId: string,
  { limit, offset, status, fields }: Page,
  filters: readonly (Filter | undefined)[],
): Promise<readonly string[]> {
  const thread = db.selectFrom('agent_threads').select('thread_id').where('thread_id', '=', threadId);
  const visible = filters.map((filter) => whereVisible(filter));
  const isThere = await thread.where(sql<boolean>`${sql.join(visible, sql` and `)}`).executeTakeFirst();
  if (isThere === undefined) throw noThread();
  const found = await db
    .selectFrom('agent_runs')
    .select('run_id')
    .where('thread_id', '=', threadId)
    .$if(status !== undefined, (query) => query.where('status', '=', status ?? 'pending'))
    .orderBy('position', 'desc')
    .limit(limit)
    .offset(offset)
    .execute();
  const where = sql<boolean>`run_id = any(${found.map(({ run_id: id }) => id)}::uuid[])`;
  const columns = LARGE.filter((field) => fields.includes(field));
  await requireSmallPage(db, { table: 'agent_runs', where, columns });
  const shown = db.selectFrom('agent_runs').select(runText(fields)).where(where);
  return (await shown.orderBy('position', 'desc').execute()).map(({ text }) => text);
}

/** Where the run is, or was until its end; undefined where there is none that is visible. */
export async function findRunPlace(
  db: Reader,
  { threadId, runId }: { readonly threadId?: string | undefined; readonly runId: string },
  filter: Filter | undefined,
): Promise<RunPlace | undefined> {
  const running = db
    .selectFrom('agent_runs as r')
    .innerJoin('agent_threads as t', 't.thread_id', 'r.thread_id')
    .select('r.thread_id')
    .where('r.run_id', '=', runId)
    .where(whereVisible(filter, 't.metadata'));
  const ended = db
    .selectFrom('agent_run_results')
    .select('thread_id')
    .where('run_id', '=', runId)
    .where(whereVisible(filter));
  const row = (await running.executeTakeFirst()) ?? (await ended.executeTakeFirst());
  if (row === undefined || (threadId !== undefined && row.thread_id !== threadId)) return undefined;
  return { threadId: row.thread_id, runId };
}
