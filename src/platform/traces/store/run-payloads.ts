// The payloads of runs by their keys, which lead to their partitions.
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
  }: {
    readonly workspaceId: string;
    readonly runs: readonly RunKey[];
    readonly fields: readonly PayloadField[];
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
    .select(fields.map((field) => sql<Buffer | null>`${sql.ref(`r.${payloadColumn(field)}`)}`.as(field)))
    .execute();
  return new Map(rows.map(({ id, ...payloads }) => [id, payloads]));
}
