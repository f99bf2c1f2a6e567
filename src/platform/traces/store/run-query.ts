// Pages of runs without their payloads: by the order of the key, from where the page before ended.
import type { Reader } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import type { FoundRun, PayloadField, RunQuery } from '../trace-store.ts';
import { payloadColumn, payloadFields, RUN_COLUMNS, timeOf } from './run-columns.ts';
import { selectionOf } from './run-selection.ts';
import { withinTime } from './query-time.ts';
import type { Condition } from './test-sql.ts';

export async function queryRuns(db: Reader, query: RunQuery): Promise<readonly FoundRun[]> {
  const { order, limit, after } = query;
  const selected = db.selectFrom('trace_runs as r').where(selectionOf(query));
  const rest = after === undefined ? selected : selected.where(behind(order, after));
  const rows = await withinTime(() =>
    rest
      .select(RUN_COLUMNS.map((column) => `r.${column}` as const))
      .select([timeOf('start_time', 'r'), timeOf('end_time', 'r'), timeOf('first_token_time', 'r')])
      .select([previewOf('inputs'), previewOf('outputs')])
      .select(payloadFields.map(sizeOf))
      .orderBy('r.start_time', order)
      .orderBy('r.id', order)
      .limit(limit)
      .execute(),
  );
  return rows.map(toFoundRun);
}

/** The bound of the start alone leaves partitions out. */
function behind(order: RunQuery['order'], { start_time, id }: NonNullable<RunQuery['after']>): Condition {
  const place = sql`(${start_time}::timestamptz, ${id}::uuid)`;
  return order === 'desc'
    ? sql<boolean>`r.start_time <= ${start_time}::timestamptz and (r.start_time, r.id) < ${place}`
    : sql<boolean>`r.start_time >= ${start_time}::timestamptz and (r.start_time, r.id) > ${place}`;
}

const PREVIEW_CHARS = 250;

function previewOf<F extends 'inputs' | 'outputs'>(field: F) {
  return sql<string>`left(${sql.ref(`r.${field}_text`)}, ${sql.lit(PREVIEW_CHARS)})`.as(
    `${field}_preview` as const,
  );
}

/** Known without reading them. */
function sizeOf<F extends PayloadField>(field: F) {
  return sql<number | null>`octet_length(${sql.ref(`r.${payloadColumn(field)}`)})`.as(
    `${field}_size` as const,
  );
}

type Row = Omit<FoundRun, 'sizes'> & Readonly<Record<`${PayloadField}_size`, number | null>>;

function toFoundRun(row: unknown): FoundRun {
  const { inputs_size, outputs_size, extra_size, events_size, serialized_size, error_size, ...run } =
    row as Row;
  const sizes = {
    ...{ inputs: inputs_size, outputs: outputs_size, extra: extra_size },
    ...{ events: events_size, serialized: serialized_size, error: error_size },
  };
  return { ...run, sizes };
}
