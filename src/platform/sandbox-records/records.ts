// The records of sandboxes in the database: each stored once, listed newest first, deleted after the retention period.
import { z } from '../../base/schema.ts';
import type { Database, Store } from '../store/database.ts';
import { formatCursor, invalidCursor, parseCursor } from '../store/page-cursor.ts';
import { type Fixed, type Json, sql } from '../store/sql.ts';
import { type RecordBatch, storableTime, type StoredRecord } from './record-schema.ts';

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

/** Rows of one delete statement: a long transaction would delay the vacuum of the table. */
const BATCH = 10_000;

/** Deletes the records received before `olderThan`; returns how many. */
export async function expireRecords({ db }: Pick<Store, 'db'>, olderThan: Date): Promise<number> {
  for (let expired = 0; ; ) {
    const { numAffectedRows = 0n } = await sql`
      delete from sandbox_records where ctid = any (array(
        select ctid from sandbox_records where received_at < ${olderThan} limit ${BATCH}))`.execute(db);
    expired += Number(numAffectedRows);
    if (numAffectedRows < BATCH) return expired;
  }
}

export const RECORD_RETENTION_MS = 30 * 24 * 60 * 60 * 1000;
