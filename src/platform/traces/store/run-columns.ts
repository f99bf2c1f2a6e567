// The columns of a run that readers of it get.
import { sql } from '../../store/sql.ts';
import type { PayloadField } from '../trace-store.ts';

type TimeColumn = 'start_time' | 'end_time' | 'first_token_time';

/** A time with its microseconds, which a Date would cut off. */
export function timeOf<C extends TimeColumn>(column: C, table?: string) {
  return toText(sql.ref(table === undefined ? column : `${table}.${column}`)).as(column);
}

/** The first or the last start; null where there is none. */
export function endOf(end: 'min' | 'max') {
  return sql<string | null>`${toText(sql`${sql.raw(end)}(start_time)`)}`;
}

function toText(time: unknown) {
  return sql<string>`to_char(${time} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
}

/** Those that are no times and no payloads. */
export const RUN_COLUMNS = [
  ...(['id', 'session_id', 'trace_id', 'parent_run_id', 'parent_run_ids', 'dotted_order'] as const),
  ...(['name', 'run_type', 'status', 'tags', 'reference_example_id', 'thread_id', 'is_root'] as const),
  ...(['prompt_tokens', 'completion_tokens', 'total_tokens'] as const),
  ...(['prompt_cost', 'completion_cost', 'total_cost'] as const),
] as const;

export const payloadFields = [
  'inputs',
  'outputs',
  'extra',
  'events',
  'serialized',
  'error',
] as const satisfies readonly PayloadField[];

export function payloadColumn<F extends PayloadField>(field: F): `${F}_json` {
  return `${field}_json`;
}
