// The cursor of a list of events: the window that the first page settled, and the last event that was returned. Opaque to
// clients. It grants nothing: whatever it contains, events are read from the caller's organization only. Pure.
import { createHash } from 'node:crypto';
import { z } from '../../base/schema.ts';
import { readJson } from './json-text.ts';

/** The filters of a list. A cursor is valid only for the list that created it. */
export type Scope = {
  readonly organizationId: string;
  readonly workspaceId?: string | undefined;
  readonly operations?: readonly string[] | undefined;
  readonly startTime?: Date | undefined;
  readonly endTime?: Date | undefined;
};

const MAX_LENGTH = 512;

/** What RFC 3339 can express in any time zone: the API accepts nothing else, and not much more fits the database. */
const moment = z
  .int()
  .min(Date.parse('0000-01-01T00:00:00+23:59'))
  .max(Date.parse('9999-12-31T23:59:59.999-23:59'));

const content = z.strictObject({
  /** The fingerprint of the scope. */
  scope: z.string(),
  start: moment,
  end: moment,
  time: moment,
  seq: z.string().regex(/^[1-9]\d{0,17}$/),
});

/** The window [start, end) and the last event, by time and number. Times are in milliseconds. */
export type Cursor = Omit<z.infer<typeof content>, 'scope'>;

export function formatCursor({ start, end, time, seq }: Cursor, scope: Scope): string {
  const json = JSON.stringify({ scope: fingerprintOf(scope), start, end, time, seq });
  return Buffer.from(json).toString('base64url');
}

/** Undefined for a text that formatCursor did not create for this scope. */
export function parseCursor(text: string, scope: Scope): Cursor | undefined {
  if (text.length > MAX_LENGTH) return undefined;
  const json = readJson(Buffer.from(text, 'base64url').toString('utf8'));
  const cursor = content.safeParse(json).data;
  if (cursor === undefined || !(cursor.start <= cursor.time && cursor.time < cursor.end)) return undefined;
  return formatCursor(cursor, scope) === text ? cursor : undefined;
}

function fingerprintOf({ organizationId, workspaceId, operations, startTime, endTime }: Scope): string {
  const parts = [
    organizationId,
    workspaceId ?? null,
    operations?.toSorted() ?? null,
    startTime?.getTime() ?? null,
    endTime?.getTime() ?? null,
  ];
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 22);
}
