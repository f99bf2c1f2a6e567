// Where a list of events goes on: the window that its first page settled, and the last event given out. Opaque to those
// who carry it. It is no key: whatever it holds, events are looked up in the caller's organization alone. Pure.
import { createHash } from 'node:crypto';
import { z } from '../../base/schema.ts';

/** Times in milliseconds; the window is [startMs, endMs). */
export type Cursor = {
  readonly startMs: number;
  readonly endMs: number;
  readonly timeMs: number;
  readonly seq: string;
};

/** What a list asks for: a cursor serves no other list. */
export type Scope = {
  readonly organizationId: string;
  readonly workspaceId?: string | undefined;
  readonly operations?: readonly string[] | undefined;
  readonly startTime?: Date | undefined;
  readonly endTime?: Date | undefined;
};

const MAX_LENGTH = 512;

/** What RFC 3339 can write, anywhere on earth: more is neither of a list of ours, nor a time to the database. */
const moment = z
  .int()
  .min(Date.parse('0000-01-01T00:00:00+23:59'))
  .max(Date.parse('9999-12-31T23:59:59.999-23:59'));

const content = z.strictObject({
  scope: z.string(),
  start: moment,
  end: moment,
  time: moment,
  seq: z.string().regex(/^[1-9]\d{0,17}$/),
});

export function formatCursor({ startMs, endMs, timeMs, seq }: Cursor, scope: Scope): string {
  const held: z.output<typeof content> = {
    scope: fingerprintOf(scope),
    start: startMs,
    end: endMs,
    time: timeMs,
    seq,
  };
  return Buffer.from(JSON.stringify(held)).toString('base64url');
}

/** Undefined for what formatCursor has not made for this very list. */
export function parseCursor(cursor: string, scope: Scope): Cursor | undefined {
  if (cursor.length > MAX_LENGTH) return undefined;
  const held = content.safeParse(readJson(cursor)).data;
  if (held === undefined || held.scope !== fingerprintOf(scope)) return undefined;
  const { start, end, time, seq } = held;
  const read = { startMs: start, endMs: end, timeMs: time, seq };
  const isMade = start <= time && time < end && formatCursor(read, scope) === cursor;
  return isMade ? read : undefined;
}

function readJson(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'));
  } catch {
    return undefined;
  }
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
