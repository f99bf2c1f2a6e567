// The records of sandboxes in the database: taken in once each, read back newest first, forgotten in time. It must not
// know who may.
import { Buffer } from 'node:buffer';
import { z } from '../../base/schema.ts';
import type { Database, Store } from '../store/database.ts';
import { sql } from '../store/sql.ts';
import { pointInTime } from './point-in-time.ts';
import type { ReportedRecord } from './record-schema.ts';

/** Whose records: a sandbox of a workspace. */
export type Place = { readonly workspaceId: string; readonly sandbox: string };

export type KeptRecord = Readonly<Record<string, unknown>>;

export type RecordWindow = {
  readonly limit: number;
  /** Included. */
  readonly startTime: Date | undefined;
  /** Excluded. */
  readonly endTime: Date | undefined;
  readonly after: Position | undefined;
};

/** The last record of a page. */
export type Position = { readonly time: string; readonly source: string; readonly number: number };

/** Answers how many were not there yet. Durable when it resolves: one statement is its own transaction. */
export async function keepRecords(
  db: Database,
  { workspaceId, sandbox }: Place,
  batch: { readonly source: string; readonly records: readonly ReportedRecord[] },
): Promise<number> {
  // In UTC: PostgreSQL refuses offsets that RFC 3339 allows.
  const rows = batch.records.map(({ number, time, ...record }) => ({
    ...{ number, record },
    time: new Date(time).toISOString(),
  }));
  const { numAffectedRows = 0n } = await sql`
    insert into sandbox_records (workspace_id, sandbox, source, number, time, record)
    select ${workspaceId}::uuid, ${sandbox}, ${batch.source}::uuid, sent.number, sent.time, sent.record
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
      as sent (number bigint, time timestamptz, record jsonb)
    order by sent.number
    on conflict do nothing`.execute(db);
  return Number(numAffectedRows);
}

/** Newest first; of one time in the order of sources and numbers, backwards. */
export async function readRecords(
  db: Database,
  { workspaceId, sandbox }: Place,
  { limit, startTime, endTime, after }: RecordWindow,
): Promise<{ readonly records: readonly KeptRecord[]; readonly next: Position | undefined }> {
  let query = db
    .selectFrom('sandbox_records')
    .select(['source', 'number', 'time', 'record'])
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
  const found = rows.slice(0, limit).map(({ source, number, time, record }) => ({
    source,
    number: Number(number),
    time: time.toISOString(),
    ...record,
  }));
  return { records: found, next: rows.length > limit ? found.at(-1) : undefined };
}

/** A piece at a time: a long transaction would hold up what cleans the tables. */
const PIECE = 10_000;

/** Forgets what came before `olderThan`; answers how many. */
export async function expireRecords({ db }: Pick<Store, 'db'>, olderThan: Date): Promise<number> {
  for (let expired = 0; ; ) {
    const { numAffectedRows = 0n } = await sql`
      delete from sandbox_records where ctid = any (array(
        select ctid from sandbox_records where received_at < ${olderThan} limit ${PIECE}))`.execute(db);
    expired += Number(numAffectedRows);
    if (numAffectedRows < PIECE) return expired;
  }
}

/** How long records are kept. */
export const RECORDS_KEPT_MS: number = 30 * 24 * 60 * 60 * 1000;

const position = z.tuple([pointInTime, z.uuid(), z.int().min(0)]);

/** A place in the list as a text that means nothing to its holder. */
export function formatCursor({ time, source, number }: Position): string {
  return Buffer.from(JSON.stringify([time, source, number])).toString('base64url');
}

/** Undefined: it was not made here. */
export function parseCursor(text: string): Position | undefined {
  try {
    const [time, source, number] = position.parse(
      JSON.parse(Buffer.from(text, 'base64url').toString('utf8')),
    );
    return { time, source, number };
  } catch {
    return undefined;
  }
}
