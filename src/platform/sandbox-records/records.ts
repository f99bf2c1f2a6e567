// The records of sandboxes in the database: each stored once, listed newest first, deleted after the retention period.
import { Buffer } from 'node:buffer';
import { z } from '../../base/schema.ts';
import type { Database, Store } from '../store/database.ts';
import { sql } from '../store/sql.ts';
import { type RecordBatch, storableTime, type StoredRecord } from './record-schema.ts';

/** A sandbox, by its workspace and its name there. */
export type SandboxScope = { readonly workspaceId: string; readonly sandbox: string };

export type RecordWindow = {
  readonly limit: number;
  /** Inclusive. */
  readonly startTime: Date | undefined;
  /** Exclusive. */
  readonly endTime: Date | undefined;
  readonly after: Position | undefined;
};

/** The last record of a page. */
export type Position = { readonly time: string; readonly source: string; readonly number: number };

/** Returns how many records were new. Durable when it resolves: one statement is its own transaction. */
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

/** Newest first; records of the same time in descending order of source and number. */
export async function listRecords(
  db: Database,
  { workspaceId, sandbox }: SandboxScope,
  { limit, startTime, endTime, after }: RecordWindow,
): Promise<{ readonly records: readonly StoredRecord[]; readonly next: Position | undefined }> {
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
  return { records, next: rows.length > limit ? records.at(-1) : undefined };
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

const position = z.tuple([storableTime, z.uuid(), z.int().min(0)]);

/** Opaque to clients. */
export function formatCursor({ time, source, number }: Position): string {
  return Buffer.from(JSON.stringify([time, source, number])).toString('base64url');
}

/** Undefined for a text that formatCursor did not make. */
export function parseCursor(cursor: string): Position | undefined {
  try {
    const json: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'));
    const [time, source, number] = position.parse(json);
    return { time, source, number };
  } catch {
    return undefined;
  }
}
