// One page of a list of events, as the route reads it: the window first, unless a cursor contains it.
import { type EventPage, type EventQuery, listEvents } from '../../../src/platform/audit/query.ts';
import { settleWindow } from '../../../src/platform/audit/window.ts';
import type { Database } from '../../../src/platform/store/database.ts';

export async function readEvents(
  db: Database,
  query: EventQuery,
  signal = new AbortController().signal,
): Promise<EventPage> {
  const isFirst = query.cursor === undefined;
  const window = isFirst ? await settleWindow(db, query, signal) : { start: 0, end: 0 };
  return listEvents(db, query, window);
}
