// Reads the events of one organization in a time window, newest first, in pages. Reads lock nothing.
import type { Database } from '../store/database.ts';
import { invalidCursor } from '../store/page-cursor.ts';
import { sql } from '../store/sql.ts';
import { type Cursor, type EventFilter, formatCursor, parseCursor } from './cursor.ts';
import { LISTED_COLUMNS, type ListedEventRow } from './ocsf-event.ts';
import type { EventWindow } from './window.ts';

export type EventQuery = EventFilter & {
  /** 1 to 100. */
  readonly limit: number;
  readonly cursor?: string | undefined;
};

export type EventPage = { readonly rows: readonly ListedEventRow[]; readonly cursor: string | null };

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
    rows,
    cursor: next === undefined ? null : formatCursor(next, query),
  };
}

function readCursor(text: string, query: EventQuery): Cursor {
  const cursor = parseCursor(text, query);
  if (cursor === undefined) throw invalidCursor();
  return cursor;
}

type Reader = Pick<Database, 'selectFrom'>;
type Selection = Omit<EventQuery, 'operations' | 'cursor'> & EventWindow & Partial<Cursor>;

/** So many lists of one operation each are read and merged; more operations are a filter. */
const MAX_LISTS = 16;

/** Reads one row more than the page has, to find out whether there is a next page. */
function readRows(
  db: Reader,
  { operations = [], ...query }: EventQuery,
  window: EventWindow & Partial<Cursor>,
): Promise<readonly ListedEventRow[]> {
  const selection = { ...query, ...window };
  const wanted = [...new Set(operations)];
  if (wanted.length > 1 && wanted.length <= MAX_LISTS) return mergeLists(db, selection, wanted);
  const rows = selectRows(db, selection);
  return (wanted.length === 0 ? rows : rows.where('operation', 'in', wanted)).execute();
}

// The index has the events of one operation in their order. For several, PostgreSQL would walk all events of the organization
// when it takes them for frequent, as they may be elsewhere.
function mergeLists(
  db: Reader,
  selection: Selection,
  operations: readonly string[],
): Promise<readonly ListedEventRow[]> {
  const names = sql<{ readonly name: string }>`unnest(${operations}::text[])`;
  return db
    .selectFrom(names.as<'wanted'>(sql`wanted(name)`))
    .innerJoinLateral(
      selectRows(db, selection).where('operation', '=', sql<string>`wanted.name`).as('event'),
      (join) => join.onTrue(),
    )
    .select(LISTED_COLUMNS)
    .orderBy('event.time', 'desc')
    .orderBy('event.seq', 'desc')
    .limit(selection.limit + 1)
    .execute();
}

function selectRows(db: Reader, { organizationId, workspaceId, start, end, time, seq, limit }: Selection) {
  let rows = db
    .selectFrom('audit_events')
    .select(LISTED_COLUMNS)
    .where('organization_id', '=', organizationId)
    .where('time', '>=', new Date(start))
    .where('time', '<=', new Date(end));
  if (workspaceId !== undefined) rows = rows.where('workspace_id', '=', workspaceId);
  if (time !== undefined) rows = rows.where(sql<boolean>`(time, seq) < (${new Date(time)}, ${seq})`);
  return rows
    .orderBy('time', 'desc')
    .orderBy('seq', 'desc')
    .limit(limit + 1);
}
