// The events of one organization in a window of time, newest first, by pages. Windows that touch give each event once:
// the end of one is settled before it is read, so that nothing can come to stand before it afterwards.
import { InvalidInput } from '../../base/domain-error.ts';
import type { Database } from '../store/database.ts';
import { sql } from '../store/sql.ts';
import type { AuditEventRow } from '../store/tables.ts';
import { type Cursor, formatCursor, parseCursor } from './cursor.ts';
import { type OcsfEvent, toOcsfEvent } from './ocsf-event.ts';
import type { Operation } from './operations.ts';

export type EventQuery = {
  readonly organizationId: string;
  readonly workspaceId?: string | undefined;
  /** All of them when absent or empty. */
  readonly operations?: readonly Operation[] | undefined;
  /** Inclusive; a day before the end when absent. */
  readonly startTime?: Date | undefined;
  /** Exclusive; now when absent, and never later. */
  readonly endTime?: Date | undefined;
  /** 1 to 100. */
  readonly limit: number;
  readonly cursor?: string | undefined;
};

export type EventPage = { readonly items: readonly OcsfEvent[]; readonly cursor: string | null };

const DAY_MS = 24 * 60 * 60 * 1000;
/** What the database can hold as well: the years 1970 to 9999. */
const MAX_MS = Date.UTC(10_000, 0) - 1;

/** Throws InvalidInput for a cursor that belongs to another list, or to none. */
export async function listEvents(db: Database, query: EventQuery): Promise<EventPage> {
  const at = query.cursor === undefined ? undefined : readCursor(query.cursor, query);
  const { startMs, endMs } = at ?? (await settleWindow(db, query));
  const found = await readRows(db, query, at ?? { startMs, endMs });
  const rows = found.slice(0, query.limit);
  const last = rows.at(-1);
  const hasMore = found.length > rows.length && last !== undefined;
  const next = hasMore ? { startMs, endMs, timeMs: last.time.getTime(), seq: last.seq } : undefined;
  return {
    items: rows.map(toOcsfEvent),
    cursor: next === undefined ? null : formatCursor(next, query),
  };
}

function readCursor(cursor: string, query: EventQuery): Cursor {
  const read = parseCursor(cursor, query);
  if (read !== undefined) return read;
  const msg =
    'This cursor is not of this list: take the one of its last page, and the same parameters with it';
  throw new InvalidInput([{ loc: ['query', 'cursor'], msg, type: 'value_error' }]);
}

type Window = { readonly startMs: number; readonly endMs: number };

async function settleWindow(
  db: Database,
  { organizationId, startTime, endTime }: EventQuery,
): Promise<Window> {
  const until = new Date(clamp(endTime?.getTime() ?? MAX_MS));
  const settle = sql<{ readonly settled: Date }>`
    select public.audit_settle(${organizationId}, ${until}) as settled`;
  const [row] = (await settle.execute(db)).rows;
  const endMs = row?.settled.getTime() ?? 0;
  return { startMs: clamp(startTime?.getTime() ?? endMs - DAY_MS), endMs };
}

function clamp(ms: number): number {
  return Math.min(Math.max(ms, 0), MAX_MS);
}

/** One more than the page holds, to tell whether there is another page. */
async function readRows(
  db: Database,
  { organizationId, workspaceId, operations = [], limit }: EventQuery,
  { startMs, endMs, timeMs, seq }: Window & Partial<Cursor>,
): Promise<readonly AuditEventRow[]> {
  let rows = db
    .selectFrom('audit_events')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('time', '>=', new Date(startMs))
    .where('time', '<', new Date(endMs));
  if (workspaceId !== undefined) rows = rows.where('workspace_id', '=', workspaceId);
  if (operations.length > 0) rows = rows.where('operation', 'in', operations);
  if (timeMs !== undefined) rows = rows.where(sql<boolean>`(time, seq) < (${new Date(timeMs)}, ${seq})`);
  return rows
    .orderBy('time', 'desc')
    .orderBy('seq', 'desc')
    .limit(limit + 1)
    .execute();
}
