// Reads the events of one organization in a time window, newest first, in pages. Reads lock nothing.
import type { Database } from '../store/database.ts';
import { invalidCursor } from '../store/page-cursor.ts';
import { sql } from '../store/sql.ts';
import type { AuditEventRow } from '../store/tables.ts';
import { type Cursor, type EventFilter, formatCursor, parseCursor } from './cursor.ts';
import { toOcsfEvent } from './ocsf-event.ts';
import type { OcsfEvent } from './ocsf-schema.ts';
import type { EventWindow } from './window.ts';

export type EventQuery = EventFilter & {
  /** 1 to 100. */
  readonly limit: number;
  readonly cursor?: string | undefined;
};

export type EventPage = { readonly items: readonly OcsfEvent[]; readonly cursor: string | null };

/** `window` is ignored with a cursor, which contains one. Throws InvalidInput for a cursor of another list. */
export async function listEvents(
  db: Pick<Database, 'selectFrom'>,
  query: EventQuery,
  window: EventWindow,
): Promise<EventPage> {
  const cursor = query.cursor === undefined ? undefined : readCursor(query.cursor, query);
  const { start, end } = cursor ?? window;
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
  if (cursor === undefined) throw invalidCursor();
  return cursor;
}

/** Reads one row more than the page has, to find out whether there is a next page. */
async function readRows(
  db: Pick<Database, 'selectFrom'>,
  { organizationId, workspaceId, operations = [], limit }: EventQuery,
  { start, end, time, seq }: EventWindow & Partial<Cursor>,
): Promise<readonly AuditEventRow[]> {
  let rows = db
    .selectFrom('audit_events')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('time', '>=', new Date(start))
    .where('time', '<=', new Date(end));
  if (workspaceId !== undefined) rows = rows.where('workspace_id', '=', workspaceId);
  if (operations.length > 0) rows = rows.where('operation', 'in', operations);
  if (time !== undefined) rows = rows.where(sql<boolean>`(time, seq) < (${new Date(time)}, ${seq})`);
  return rows
    .orderBy('time', 'desc')
    .orderBy('seq', 'desc')
    .limit(limit + 1)
    .execute();
}
