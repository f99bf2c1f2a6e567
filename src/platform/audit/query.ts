// Reads the events of one organization in a time window, newest first, in pages. Adjacent windows return each event once:
// before a window is read, audit_settle() sets its end so that no event can be added to the window afterwards.
import { InvalidInput } from '../../base/domain-error.ts';
import type { Database } from '../store/database.ts';
import { sql } from '../store/sql.ts';
import type { AuditEventRow } from '../store/tables.ts';
import { type Cursor, type EventFilter, formatCursor, parseCursor } from './cursor.ts';
import { toOcsfEvent } from './ocsf-event.ts';
import type { OcsfEvent } from './ocsf-schema.ts';

export type EventQuery = EventFilter & {
  /** 1 to 100. */
  readonly limit: number;
  readonly cursor?: string | undefined;
};

export type EventPage = { readonly items: readonly OcsfEvent[]; readonly cursor: string | null };

const DAY_MS = 24 * 60 * 60 * 1000;
/** The last millisecond of the year 9999. The database can store all times up to it. */
const MAX_MS = Date.UTC(10_000, 0) - 1;

/** Throws InvalidInput for a cursor that was not returned for the same parameters. */
export async function listEvents(db: Database, query: EventQuery): Promise<EventPage> {
  const cursor = query.cursor === undefined ? undefined : readCursor(query.cursor, query);
  const { start, end } = cursor ?? (await settleWindow(db, query));
  const found = await readRows(db, query, cursor ?? { start, end });
  const rows = found.slice(0, query.limit);
  const last = rows.at(-1);
  const hasMore = found.length > rows.length && last !== undefined;
  const next = hasMore ? { start, end, time: last.time.getTime(), seq: last.seq } : undefined;
  return {
    items: rows.map(toOcsfEvent),
    cursor: next === undefined ? null : formatCursor(next, query),
  };
}

function readCursor(text: string, query: EventQuery): Cursor {
  const cursor = parseCursor(text, query);
  if (cursor !== undefined) return cursor;
  const msg = 'Invalid cursor: use the one from the previous page, with the same parameters';
  throw new InvalidInput([{ loc: ['query', 'cursor'], msg, type: 'value_error' }]);
}

/** Milliseconds since 1970; `start` is included, `end` is not. */
type Window = Pick<Cursor, 'start' | 'end'>;

async function settleWindow(db: Database, { organizationId, startTime, endTime }: EventQuery) {
  const until = new Date(clamp(endTime?.getTime() ?? MAX_MS));
  const settle = sql<{ readonly settled: Date }>`
    select public.audit_settle(${organizationId}, ${until}) as settled`;
  const [row] = (await settle.execute(db)).rows;
  const end = row?.settled.getTime() ?? 0;
  return { start: clamp(startTime?.getTime() ?? end - DAY_MS), end };
}

function clamp(ms: number): number {
  return Math.min(Math.max(ms, 0), MAX_MS);
}

/** Reads one row more than the page has, to find out whether there is a next page. */
async function readRows(
  db: Database,
  { organizationId, workspaceId, operations = [], limit }: EventQuery,
  { start, end, time, seq }: Window & Partial<Cursor>,
): Promise<readonly AuditEventRow[]> {
  let rows = db
    .selectFrom('audit_events')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('time', '>=', new Date(start))
    .where('time', '<', new Date(end));
  if (workspaceId !== undefined) rows = rows.where('workspace_id', '=', workspaceId);
  if (operations.length > 0) rows = rows.where('operation', 'in', operations);
  if (time !== undefined) rows = rows.where(sql<boolean>`(time, seq) < (${new Date(time)}, ${seq})`);
  return rows
    .orderBy('time', 'desc')
    .orderBy('seq', 'desc')
    .limit(limit + 1)
    .execute();
}
