// The cursor of a list of events: the window that the first page settled, and the last event that was returned. Opaque to
// clients. It grants nothing: whatever it contains, events are read from the caller's organization only. Pure.
import { z } from '../../base/schema.ts';
import * as pages from '../store/page-cursor.ts';
import type { Operation } from './operations.ts';

/** The filters of a list. A cursor is valid only for the list that created it. */
export type EventFilter = {
  readonly organizationId: string;
  readonly workspaceId?: string | undefined;
  /** All operations when absent or empty. */
  readonly operations?: readonly Operation[] | undefined;
  /** Inclusive; a day before the end when absent. */
  readonly startTime?: Date | undefined;
  /** Inclusive; now when absent, and at most a little later. */
  readonly endTime?: Date | undefined;
};

/** What RFC 3339 can express in any time zone. No cursor of ours has another time, and the database would reject it. */
const moment = z
  .int()
  .min(Date.parse('0000-01-01T00:00:00+23:59'))
  .max(Date.parse('9999-12-31T23:59:59.999-23:59'));

const content = z.strictObject({
  start: moment,
  end: moment,
  time: moment,
  seq: z.string().regex(/^[1-9]\d{0,17}$/),
});

/** The window, with both its ends, and the last event, by time and number. Times are in milliseconds. */
export type Cursor = z.infer<typeof content>;

export function formatCursor({ start, end, time, seq }: Cursor, filter: EventFilter): string {
  return pages.formatCursor({ start, end, time, seq }, partsOf(filter));
}

/** Undefined for a text that formatCursor did not create for this filter. */
export function parseCursor(text: string, filter: EventFilter): Cursor | undefined {
  const cursor = pages.parseCursor(text, content, partsOf(filter));
  if (cursor === undefined || !(cursor.start <= cursor.time && cursor.time <= cursor.end)) return undefined;
  return cursor;
}

function partsOf({ organizationId, workspaceId, operations, startTime, endTime }: EventFilter) {
  return [
    organizationId,
    workspaceId ?? null,
    operations?.toSorted() ?? null,
    startTime?.getTime() ?? null,
    endTime?.getTime() ?? null,
  ];
}
