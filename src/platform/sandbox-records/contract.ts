// What other modules need of the records of sandboxes: their schema, storing them and listing them. A sidecar may send exactly the
// fields that it writes, each bounded. Other fields are rejected, because a secret could hide in one. Injected headers are sent as
// names without values, paths without a query.
import { LINE } from '../../base/json/printable-text.ts';
import { z } from '../../base/schema.ts';
import type { Database } from '../store/database.ts';
import { formatCursor, invalidCursor, parseCursor } from '../store/page-cursor.ts';
import { type Fixed, type Json, sql } from '../store/sql.ts';

const MAX_RECORDS = 1_000;
const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z');

export const RANGE = 'From 1970-01-01T00:00:00Z to 9999-12-31T23:59:59.999Z';

/** A time that PostgreSQL can store, which has no year 0, and that RFC 3339 can write, which has no five-digit years. */
export const storableTime = z.iso
  .datetime({ offset: true, error: 'Input must be a time as in RFC 3339' })
  .refine((text) => {
    const ms = Date.parse(text);
    return ms >= 0 && ms <= LAST_MS;
  }, 'Input must be a time from 1970 to 9999')
  .describe(RANGE);

const text = (max: number, pattern: RegExp, message: string) => z.string().max(max).regex(pattern, message);
/** An identifier of Sallyport, an error code, an address. */
const word = (max: number) => text(max, /^[\x20-\x7e]*$/, 'Input must be printable ASCII').min(1);
const token = (max: number) =>
  text(max, /^[!#$%&'*+\-.^_`|~0-9A-Za-z]*$/, 'Input must be a token (RFC 9110 §5.6.2)').min(1);
/** Free text by the author of a rule. */
const line = (max: number) => text(max, LINE, 'Input must have no control characters');
const path = text(513, /^[\x21-\x3e\x40-\x7e]*…?$/, 'Input must be a path without a query');
const count = z.int().min(0);

/** The fields are in the order in which a sidecar writes them. */
const exchangeRecord = z.strictObject({
  number: count.describe('Consecutive number of the record in its source; a gap means lost records'),
  time: storableTime,
  sandbox: word(63).describe('The name of the sandbox in the sidecar'),
  revision: count,
  client: word(64).optional(),
  method: token(32).optional(),
  scheme: z.enum(['http', 'https', 'tunnel']).optional(),
  protocol: z.literal('h2').optional(),
  authority: word(300).optional(),
  path: path.optional(),
  rule: line(160).optional(),
  callback: line(160).optional(),
  callback_cached: z.boolean().optional(),
  injected: z.array(token(256)).max(64).optional(),
  outcome: z.enum(['injected', 'forwarded', 'tunnelled', 'refused', 'failed', 'upgraded', 'served']),
  reason: token(64).optional(),
  cause: line(1_000).optional(),
  status: z.int().min(100).max(999).optional(),
  upstream_reused: z.boolean().optional(),
  unframed: z.boolean().optional(),
  scrubbed: count.optional(),
  bytes_up: count,
  bytes_down: count,
  duration_ms: z.number().min(0),
});

/** A record in a response: with the source of its batch. */
export const storedRecord = exchangeRecord.extend({ source: z.uuid() });

export const recordBatch = z.strictObject({
  source: z
    .uuid()
    .describe('Identifies the process of the sidecar; source and number together identify a record'),
  records: z.array(exchangeRecord).min(1).max(MAX_RECORDS),
});

export type StoredRecord = z.output<typeof storedRecord>;
export type RecordBatch = z.output<typeof recordBatch>;

declare module '../store/tables.ts' {
  interface Tables {
    /** `source` and `number` identify a record, so that a batch that is sent again adds nothing. */
    readonly sandbox_records: {
      readonly workspace_id: string;
      readonly sandbox: string;
      /** The sidecar process that wrote the record. */
      readonly source: string;
      readonly number: string;
      /** From the clock of the sidecar. */
      readonly time: Date;
      /** From the clock of the database. Retention counts from here. */
      readonly received_at: Fixed<Date>;
      readonly record: Json<Readonly<Record<string, unknown>>>;
    };
  }
}

/** A sandbox, by its workspace and its name there. */
export type SandboxScope = { readonly workspaceId: string; readonly sandbox: string };

export type RecordWindow = {
  readonly limit: number;
  /** Inclusive. */
  readonly startTime: Date | undefined;
  /** Exclusive. */
  readonly endTime: Date | undefined;
  /** Of the previous page. */
  readonly cursor: string | undefined;
};

/** The last record of a page. */
const position = z.strictObject({ time: storableTime, source: z.uuid(), number: z.int().min(0) });
type Position = z.output<typeof position>;

/** Returns how many records were new. */
export async function storeRecords(
  db: Database,
  { workspaceId, sandbox }: SandboxScope,
  { source, records }: RecordBatch,
): Promise<number> {
  // In UTC: PostgreSQL rejects some offsets that RFC 3339 allows.
  const rows = records.map(({ number, time, ...record }) => ({
    ...{ number, record },
    time: new Date(time).toISOString(),
  }));
  const { numAffectedRows = 0n } = await sql`
    insert into sandbox_records (workspace_id, sandbox, source, number, time, record)
    select ${workspaceId}::uuid, ${sandbox}, ${source}::uuid, sent.number, sent.time, sent.record
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
      as sent (number bigint, time timestamptz, record jsonb)
    order by sent.number
    on conflict do nothing`.execute(db);
  return Number(numAffectedRows);
}

/**
 * Newest first; records of the same time in descending order of source and number. Throws InvalidInput for a cursor that was
 * not returned for the same sandbox and times.
 */
export async function listRecords(
  db: Database,
  { workspaceId, sandbox }: SandboxScope,
  { limit, startTime, endTime, cursor }: RecordWindow,
): Promise<{ readonly records: readonly StoredRecord[]; readonly cursor: string | null }> {
  const filters = [workspaceId, sandbox, startTime?.getTime() ?? null, endTime?.getTime() ?? null];
  const after = cursor === undefined ? undefined : parseCursor(cursor, position, filters);
  if (cursor !== undefined && after === undefined) throw invalidCursor();
  let query = db
    .selectFrom('sandbox_records')
    .select(['source', 'number', 'time', 'record'])
    // Only batches that fit the schema are stored.
    .$narrowType<{ record: Omit<StoredRecord, keyof Position> }>()
    .where('workspace_id', '=', workspaceId)
    .where('sandbox', '=', sandbox);
  if (startTime !== undefined) query = query.where('time', '>=', startTime);
  if (endTime !== undefined) query = query.where('time', '<', endTime);
  if (after !== undefined)
    query = query.where(
      sql<boolean>`(time, source, number) < (${new Date(after.time)}::timestamptz, ${after.source}::uuid, ${after.number}::bigint)`,
    );
  const rows = await query
    .orderBy('time', 'desc')
    .orderBy('source', 'desc')
    .orderBy('number', 'desc')
    .limit(limit + 1)
    .execute();
  const records = rows.slice(0, limit).map(({ source, number, time, record }) => ({
    source,
    number: Number(number),
    time: time.toISOString(),
    ...record,
  }));
  const last = rows.length > limit ? records.at(-1) : undefined;
  if (last === undefined) return { records, cursor: null };
  const { time, source, number } = last;
  return { records, cursor: formatCursor({ time, source, number }, filters) };
}
