// Feedback in the database. It may come before the run that it is about: its project and its trace are then found by a job.
import { randomUUID } from 'node:crypto';
import { DomainError } from '../../../base/domain-error.ts';
import type { z } from '../../../base/schema.ts';
import type { Database, Reader } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import { storable } from '../runs/run-derivation.ts';
import { startDeadline, withinTime } from '../store/query-time.ts';
import type { TraceStore } from '../trace-store.ts';
import type { feedbackChange, feedbackQuery, NewFeedback } from './feedback-schema.ts';
import { storableJson } from './storable-json.ts';
import '../store/trace-rows.ts';

const COLUMNS = [
  ...(['id', 'run_id', 'trace_id', 'session_id', 'key', 'score', 'value', 'comment', 'correction'] as const),
  ...(['feedback_source', 'created_at', 'modified_at'] as const),
] as const;

export const noFeedback = (): DomainError =>
  new DomainError('not_found', 'There is no such feedback in this workspace');

/**
 * Writes feedback that has passed `newFeedback`, after the runs of the same request. Of several with one id the last counts; what
 * was stored with the id before is replaced, so that a request may be sent again. Returns the ids, in the order of the list.
 */
export async function saveFeedback(
  db: Database,
  workspaceId: string,
  list: readonly NewFeedback[],
  store: Pick<TraceStore, 'locateRuns'>,
): Promise<readonly string[]> {
  if (list.length === 0) return [];
  const ids = list.map(({ id }) => id ?? randomUUID());
  const last = new Map(list.map((one, at) => [ids[at] ?? '', one]));
  const runIds = [...last.values()].map(runOf).filter((id) => id !== null);
  const known = await store.locateRuns(db, { workspaceId, ids: [...new Set(runIds)] });
  // In the order of ids, so that two requests with the same feedback take turns.
  const rows = [...last].toSorted(([one], [other]) => (one < other ? -1 : 1));
  for (let at = 0; at < rows.length; at += ROWS_OF_STATEMENT)
    await db
      .insertInto('trace_feedback')
      .values(
        rows
          .slice(at, at + ROWS_OF_STATEMENT)
          .map(([id, one]) => ({ workspace_id: workspaceId, id, ...toRow(one, known) })),
      )
      .onConflict((conflict) =>
        conflict.columns(['workspace_id', 'id']).doUpdateSet((eb) => ({
          ...Object.fromEntries(REPLACED.map((column) => [column, eb.ref(`excluded.${column}`)])),
          modified_at: sql<string>`now()`,
        })),
      )
      .execute();
  return ids;
}

/** A statement has at most 65,535 parameters. */
const ROWS_OF_STATEMENT = 1_000;

const REPLACED = [
  ...(['run_id', 'trace_id', 'session_id', 'key', 'score', 'value', 'comment', 'correction'] as const),
  'feedback_source',
] as const;

function runOf({ run_id: runId, trace_id: traceId }: NewFeedback): string | null {
  return runId ?? traceId ?? null;
}

function toRow(given: NewFeedback, known: Awaited<ReturnType<TraceStore['locateRuns']>>) {
  const runId = runOf(given);
  const place = runId === null ? undefined : known.get(runId);
  return {
    run_id: runId,
    trace_id: place?.trace_id ?? given.trace_id ?? null,
    session_id: place?.session_id ?? given.session_id ?? null,
    key: storable(given.key),
    score: given.score ?? null,
    value: storableJson(given.value),
    comment: toComment(given.comment),
    correction: storableJson(given.correction),
    feedback_source: storableJson(given.feedback_source),
  };
}

function toComment(given: string | null | undefined): string | null {
  return typeof given === 'string' ? storable(given) : null;
}

/** Feedback of a project that was deleted is removed by a job, and not there before. */
const isKept = sql<boolean>`not exists (
  select from trace_removals r
  where r.workspace_id = trace_feedback.workspace_id and r.session_id = trace_feedback.session_id)`;

/** Newest first. Throws `timeout`: nothing but `run` and `session` leads to few rows. */
export async function listFeedback(
  db: Reader,
  workspaceId: string,
  query: z.output<typeof feedbackQuery>,
  deadlineMs: number = startDeadline(),
) {
  const cure = 'name runs or projects in `run` or `session`';
  const rows = await withinTime(
    db,
    deadlineMs,
    (reader) => selectFeedback(reader, workspaceId, query).execute(),
    cure,
  );
  return rows.map(toFeedback);
}

/** Of a text of feedback. */
const BRIEF_CHARS = 2_000;

/** The newest feedback about a run, of whose texts no more than the beginnings are read; `bytes` are those of the whole. */
export function listBriefFeedback(db: Reader, workspaceId: string, runId: string, limit: number) {
  const value = sql`value #>> '{}'`;
  const brief = (text: typeof value) => sql<string | null>`left(${text}, ${sql.lit(BRIEF_CHARS)})`;
  const bytes = (text: typeof value) => sql<number | null>`octet_length(${text})`;
  return db
    .selectFrom('trace_feedback')
    .select(['key', 'score', brief(value).as('value'), bytes(value).as('value_bytes')])
    .select([brief(sql`comment`).as('comment'), bytes(sql`comment`).as('comment_bytes')])
    .where('workspace_id', '=', workspaceId)
    .where('run_id', '=', runId)
    .where(isKept)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute();
}

function selectFeedback(db: Reader, workspaceId: string, query: z.output<typeof feedbackQuery>) {
  let list = db
    .selectFrom('trace_feedback')
    .select(COLUMNS)
    .where('workspace_id', '=', workspaceId)
    .where(isKept);
  if (query.run !== undefined) list = list.where('run_id', 'in', query.run);
  if (query.session !== undefined) list = list.where('session_id', 'in', query.session);
  if (query.key !== undefined) list = list.where('key', 'in', query.key.map(storable));
  if (query.source !== undefined)
    list = list.where(sql<string>`feedback_source ->> 'type'`, 'in', query.source.map(storable));
  if (query.level !== undefined) list = list.where('run_id', query.level === 'run' ? 'is not' : 'is', null);
  if (query.has_comment !== undefined)
    list = list.where('comment', query.has_comment ? 'is not' : 'is', null);
  if (query.has_score !== undefined) list = list.where('score', query.has_score ? 'is not' : 'is', null);
  return list.orderBy('created_at', 'desc').orderBy('id', 'desc').limit(query.limit).offset(query.offset);
}

/** Throws `not_found`, also for feedback of another workspace. */
export async function findFeedback(db: Reader, workspaceId: string, id: string) {
  const rows = db
    .selectFrom('trace_feedback')
    .select(COLUMNS)
    .where('workspace_id', '=', workspaceId)
    .where(isKept);
  return toFeedback(await rows.where('id', '=', id).executeTakeFirstOrThrow(noFeedback));
}

/** Throws `not_found`. */
export async function changeFeedback(
  db: Database,
  { workspaceId, id }: { readonly workspaceId: string; readonly id: string },
  { score, value, comment, correction }: z.output<typeof feedbackChange>,
) {
  const changed = await db
    .updateTable('trace_feedback')
    .set({
      modified_at: sql<string>`now()`,
      ...(score === undefined ? {} : { score }),
      ...(value === undefined ? {} : { value: storableJson(value) }),
      ...(comment === undefined ? {} : { comment: toComment(comment) }),
      ...(correction === undefined ? {} : { correction: storableJson(correction) }),
    })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .where(isKept)
    .returning(COLUMNS)
    .executeTakeFirstOrThrow(noFeedback);
  return toFeedback(changed);
}

/** Throws `not_found`. */
export async function deleteFeedback(db: Database, workspaceId: string, id: string): Promise<void> {
  const rows = db
    .deleteFrom('trace_feedback')
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .where(isKept);
  await rows.returning('id').executeTakeFirstOrThrow(noFeedback);
}

type Row = Readonly<Record<(typeof COLUMNS)[number], unknown>> & {
  readonly created_at: Date;
  readonly modified_at: Date;
};

function toFeedback<R extends Row>(row: R) {
  return {
    ...row,
    created_at: row.created_at.toISOString(),
    modified_at: row.modified_at.toISOString(),
  };
}
