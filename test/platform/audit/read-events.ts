// One page of a list of events, as the route reads it: the window first, unless a cursor contains it.
import { toOcsfEvent } from '../../../src/platform/audit/ocsf-event.ts';
import type { OcsfEvent } from '../../../src/platform/audit/ocsf-schema.ts';
import { type EventQuery, listEvents } from '../../../src/platform/audit/query.ts';
import { settleWindow } from '../../../src/platform/audit/window.ts';
import type { Database } from '../../../src/platform/store/database.ts';

export async function readEvents(
  db: Database,
  query: EventQuery,
  signal = new AbortController().signal,
): Promise<{ readonly items: readonly OcsfEvent[]; readonly cursor: string | null }> {
  const isFirst = query.cursor === undefined;
  const window = isFirst ? await settleWindow(db, query, signal) : { start: 0, end: 0 };
  const { rows, cursor } = await listEvents(db, query, window);
  return { items: rows.map(toOcsfEvent), cursor };
}
