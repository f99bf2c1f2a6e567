// Pages of runs without their payloads: by the order of the key, from where the page before ended.
import type { Reader } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import type { FoundRun, PayloadField, RunQuery, RunWindow } from '../trace-store.ts';
import { payloadColumn, payloadFields, RUN_COLUMNS, timeOf } from './run-columns.ts';
import { findWindow, selectionOf, shift } from './run-selection.ts';
import { startDeadline, withinTime } from './query-time.ts';
import type { Condition } from './test-sql.ts';

/**
 * Most pages are within the first days of their window: a query of those alone is planned for few partitions, where one of all takes
 * a hundred times as long to plan as to run.
 */
const FIRST_DAYS = 7;

export async function queryRuns(db: Reader, query: RunQuery): Promise<readonly FoundRun[]> {
  const deadlineMs = query.deadlineMs ?? startDeadline();
  const window = 'ids' in query ? await findWindow(db, query) : query.window;
  if (window === undefined) return [];
  const found: FoundRun[] = [];
  for (const part of partsOf(window, query)) {
    if (found.length === query.limit) break;
    const rest = { ...query, limit: query.limit - found.length };
    const rows = await withinTime(db, deadlineMs, (reader) => pageOf(reader, rest, part).execute());
    found.push(...rows.map(toFoundRun));
  }
  return found;
}

/** In the order of the page. */
function partsOf(window: RunWindow, { order, after, ...query }: RunQuery): readonly RunWindow[] {
  const { from, to } = window;
  if ('ids' in query) return [window];
  const now = shift(new Date().toISOString(), 1);
  if (order === 'asc') {
    const cut = shift(after !== undefined && after.start_time > from ? after.start_time : from, FIRST_DAYS);
    return to !== undefined && cut >= to
      ? [window]
      : [
          { from, to: cut },
          { ...window, from: cut },
        ];
  }
  const last = after?.start_time ?? (to !== undefined && to < now ? to : now);
  const cut = shift(last, -FIRST_DAYS);
  // As times: one has milliseconds and the other microseconds.
  return Date.parse(cut) <= Date.parse(from)
    ? [window]
    : [
        { ...window, from: cut },
        { from, to: cut },
      ];
}

export function pageOf(db: Reader, query: RunQuery, window: RunWindow) {
  const { order, limit, after } = query;
  const selected = db.selectFrom('trace_runs as r').where(selectionOf(query, window));
  const rest = after === undefined ? selected : selected.where(behind(order, after));
  return rest
    .select(RUN_COLUMNS.map((column) => `r.${column}` as const))
    .select([timeOf('start_time', 'r'), timeOf('end_time', 'r'), timeOf('first_token_time', 'r')])
    .select([previewOf('inputs'), previewOf('outputs')])
    .select(payloadFields.map(sizeOf))
    .orderBy('r.start_time', order)
    .orderBy('r.id', order)
    .limit(limit);
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
