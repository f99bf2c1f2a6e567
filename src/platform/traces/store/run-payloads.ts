// The payloads of runs by their keys, which lead to their partitions: those of many runs at once, or a large one in pieces.
import { DomainError } from '../../../base/domain-error.ts';
import type { Reader } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import type { PayloadField, Payloads, RunKey } from '../trace-store.ts';
import { payloadColumn } from './run-columns.ts';

export async function readPayloads(
  db: Reader,
  {
    workspaceId,
    runs,
    fields,
    maxBytes,
  }: {
    readonly workspaceId: string;
    readonly runs: readonly RunKey[];
    readonly fields: readonly PayloadField[];
    readonly maxBytes: number;
  },
): Promise<ReadonlyMap<string, Payloads>> {
  if (runs.length === 0) return new Map();
  const times = runs.map(({ start_time }) => start_time).toSorted();
  const keys = sql<{ session_id: string; start_time: Date; id: string }>`unnest(
    ${runs.map(({ session_id }) => session_id)}::uuid[],
    ${runs.map(({ start_time }) => start_time)}::timestamptz[],
    ${runs.map(({ id }) => id)}::uuid[])`;
  const rows = await db
    .selectFrom(keys.as<'k'>(sql`k(session_id, start_time, id)`))
    .innerJoin('trace_runs as r', (join) =>
      join
        .onRef('r.session_id', '=', 'k.session_id')
        .onRef('r.start_time', '=', 'k.start_time')
        .onRef('r.id', '=', 'k.id'),
    )
    .where('r.workspace_id', '=', workspaceId)
    .where(sql<boolean>`r.start_time between ${times.at(0)}::timestamptz and ${times.at(-1)}::timestamptz`)
    .select('r.id')
    .select(fields.map((field) => upTo(maxBytes, field)))
    .execute();
  return new Map(rows.map(({ id, ...payloads }) => [id, payloads]));
}

function upTo<F extends PayloadField>(maxBytes: number, field: F) {
  const stored = sql.ref(`r.${payloadColumn(field)}`);
  return sql<Buffer | null>`case when octet_length(${stored}) <= ${sql.lit(maxBytes)} then ${stored} end`.as(
    field,
  );
}

/** The driver holds a piece three times: as its bytes, and twice as hexadecimal digits. */
const PIECE_BYTES = 1024 * 1024;

export async function* readPayload(
  db: Reader,
  {
    workspaceId,
    run,
    field,
  }: { readonly workspaceId: string; readonly run: RunKey; readonly field: PayloadField },
): AsyncGenerator<Buffer> {
  const stored = sql.ref(payloadColumn(field));
  let version: string | undefined;
  for (let at = 0; ; at += PIECE_BYTES) {
    const row = await db
      .selectFrom('trace_runs')
      .where('workspace_id', '=', workspaceId)
      .where('session_id', '=', run.session_id)
      .where('start_time', '=', sql<Date>`${run.start_time}::timestamptz`)
      .where('id', '=', run.id)
      .select([
        sql<Buffer | null>`substring(${stored} from ${at + 1} for ${PIECE_BYTES})`.as('piece'),
        sql<string>`xmin::text || ctid::text`.as('version'),
      ])
      .executeTakeFirst();
    version ??= row?.version;
    // Half of one payload and half of another are no JSON.
    if (row === undefined || row.version !== version)
      throw new DomainError('unavailable', 'The run was changed while it was read: try again', 100);
    if (row.piece !== null && row.piece.length > 0) yield row.piece;
    if (row.piece === null || row.piece.length < PIECE_BYTES) return;
  }
}
