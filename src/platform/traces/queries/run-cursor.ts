// The cursor of a list of runs: the place of the last one. It is not signed: whatever it holds must be a place that the database can
// have. Pure.
import { z } from '../../../base/schema.ts';
import { formatCursor, parseCursor } from '../../store/page-cursor.ts';
import { toMicroseconds } from '../runs/run-time.ts';
import type { RunPlace } from '../trace-store.ts';

const place = z.strictObject({
  start_time: z.string().refine((text) => toMicroseconds(text) === text),
  id: z.guid(),
});

/** `filters` is whatever JSON tells one list from another. */
export function formatRunCursor({ start_time, id }: RunPlace, filters: unknown): string {
  return formatCursor({ start_time, id }, filters);
}

/** Undefined for a text that is no cursor of this list. */
export function parseRunCursor(text: string, filters: unknown): RunPlace | undefined {
  return parseCursor(text, place, filters);
}
