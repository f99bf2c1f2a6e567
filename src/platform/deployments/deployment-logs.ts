// Stored log lines of deployments: appended in batches, read in pages, and the oldest ones removed by their age and by what all
// lines of a deployment take.
import { brokenReferenceOf, type Database, type Reader } from '../store/database.ts';
import { sql } from '../store/sql.ts';
import './deployment-rows.ts';
import type { LogClock } from './log-clock.ts';
import { type LogKind, type LogLevel, type LogLine, logLevels } from './log-lines.ts';

export const LOG_DAYS = 14;
/** Of a row besides its message. */
const ROW_BYTES = 150;

export type StoredLine = LogLine & {
  readonly workspaceId: string;
  readonly deploymentId: string;
  readonly revisionId?: string | undefined;
  readonly kind: LogKind;
};

/**
 * Of any deployments; lines of one that is gone are left out. Masked and cut before, by a `LineQueue`. Their times are those of this
 * machine; with a `clock` they are stored by that of the database.
 */
export async function appendLogs(
  db: Database,
  printed: readonly StoredLine[],
  clock?: LogClock,
): Promise<void> {
  if (printed.length === 0) return;
  await clock?.compare(db);
  const lines = printed.map((line) => ({ ...line, at: clock?.toStored(line.at) ?? line.at }));
  try {
    await insertLines(db, lines);
  } catch (error) {
    // A deployment of them was deleted at the same moment: the statement finds it no more.
    if (brokenReferenceOf(error) === undefined) throw error;
    await insertLines(db, lines);
  }
}

async function insertLines(db: Database, lines: readonly StoredLine[]): Promise<void> {
  const column = <T>(read: (line: StoredLine) => T): readonly T[] => lines.map(read);
  await sql`
    with given as (
      select * from unnest(
        ${column((one) => one.deploymentId)}::uuid[], ${column((one) => one.revisionId ?? null)}::uuid[],
        ${column((one) => one.kind)}::text[], ${column((one) => one.instance ?? null)}::text[],
        ${column((one) => one.at.toISOString())}::timestamptz[], ${column((one) => one.level)}::text[],
        ${column((one) => one.message)}::text[]
      ) with ordinality as l (deployment_id, revision_id, kind, instance, at, level, message, place)
    ), stored as (
      insert into deployment_logs (workspace_id, deployment_id, revision_id, kind, instance, at, level, message)
      -- A clock that was set since it was compared: no line is in the future, where it would hide those that follow it.
      select d.workspace_id, d.id, r.id, l.kind, l.instance, least(l.at, clock_timestamp()), l.level, l.message
      from given l join deployments d on d.id = l.deployment_id
        left join revisions r on r.id = l.revision_id and r.deployment_id = d.id
      where l.revision_id is null or r.id is not null
      order by l.place
      returning workspace_id, deployment_id, octet_length(message) + ${sql.lit(ROW_BYTES)} as bytes
    )
    insert into deployment_log_sizes as s (deployment_id, workspace_id, bytes)
    select deployment_id, workspace_id, sum(bytes) from stored group by 1, 2 order by 1
    on conflict (deployment_id) do update set bytes = s.bytes + excluded.bytes`.execute(db);
}

export type LogQuery = {
  readonly workspaceId: string;
  readonly deploymentId: string;
  readonly revisionId?: string | undefined;
  readonly kind: LogKind;
  readonly limit: number;
  readonly maxBytes?: number | undefined;
  readonly order: 'asc' | 'desc';
  /** Of the last line of the page before. */
  readonly after?: string | undefined;
  /** This level and those above it. */
  readonly level?: LogLevel | undefined;
  /** A part of the message, in any case. */
  readonly text?: string | undefined;
  readonly from?: Date | undefined;
  readonly to?: Date | undefined;
};

export type LogRow = {
  readonly id: string;
  readonly at: Date;
  readonly level: LogLevel;
  readonly message: string;
};

/** One line more than `limit` where there are more; or no more lines than those with which their messages have `maxBytes`. */
export async function queryLogs(db: Reader, query: LogQuery): Promise<readonly LogRow[]> {
  const { workspaceId, deploymentId, revisionId, kind, limit, order, after, level, text, from, to } = query;
  const { maxBytes = Number.MAX_SAFE_INTEGER } = query;
  let rows = db
    .selectFrom('deployment_logs')
    .select(['id', 'at', 'level', 'message'])
    .where('workspace_id', '=', workspaceId)
    .where('deployment_id', '=', deploymentId)
    .where('kind', '=', kind);
  if (revisionId !== undefined) rows = rows.where('revision_id', '=', revisionId);
  if (after !== undefined) rows = rows.where('id', order === 'asc' ? '>' : '<', after);
  if (level !== undefined) rows = rows.where('level', 'in', logLevels.slice(logLevels.indexOf(level)));
  if (text !== undefined) rows = rows.where(sql<boolean>`strpos(lower(message), lower(${text})) > 0`);
  if (from !== undefined) rows = rows.where('at', '>=', from);
  if (to !== undefined) rows = rows.where('at', '<=', to);
  const page = rows.orderBy('id', order).limit(limit + 1);
  const bytes = sql<string>`octet_length(p.message)`;
  const before = sql<string>`sum(${bytes}) over (order by p.id ${sql.raw(order)}) - ${bytes}`.as('before');
  const sized = db.selectFrom(page.as('p')).selectAll().select(before);
  return db
    .selectFrom(sized.as('s'))
    .select(['id', 'at', 'level', 'message'])
    .where('before', '<', String(maxBytes))
    .orderBy('id', order)
    .execute();
}

/** Of rows that a transaction removes at once. */
const BATCH = 5_000;

/** Lines older than `LOG_DAYS`. True: there may be more. */
export async function removeOldLines(db: Database): Promise<boolean> {
  const old = sql`select id from deployment_logs where at < now() - make_interval(days => ${LOG_DAYS}) order by at limit ${BATCH}`;
  return (await removeLines(db, old)) === BATCH;
}

/** The oldest lines of a deployment whose lines take more than this. True: there may be more. */
export async function removeExcessLines(db: Database, maxBytes: number): Promise<boolean> {
  const { rows } = await sql<{ id: string }>`
    select deployment_id as id from deployment_log_sizes where bytes > ${maxBytes} order by bytes desc limit 1`.execute(
    db,
  );
  const [found] = rows;
  if (found === undefined) return false;
  const oldest = sql`select id from deployment_logs where deployment_id = ${found.id} order by id limit ${BATCH}`;
  if ((await removeLines(db, oldest)) === 0)
    await db.deleteFrom('deployment_log_sizes').where('deployment_id', '=', found.id).execute();
  return true;
}

async function removeLines(db: Database, ids: ReturnType<typeof sql>): Promise<number> {
  const { rows } = await sql<{ count: string }>`
    with gone as (
      delete from deployment_logs where id in (${ids})
      returning deployment_id, octet_length(message) + ${sql.lit(ROW_BYTES)} as bytes
    ), freed as (
      update deployment_log_sizes s set bytes = greatest(0, s.bytes - g.bytes)
      from (select deployment_id, sum(bytes) as bytes from gone group by 1) g where g.deployment_id = s.deployment_id
    )
    select count(*) as count from gone`.execute(db);
  return Number(rows[0]?.count ?? 0);
}
