// A run as clients see it.
import { withoutPrototype, z } from '../../../base/schema.ts';
import type { Database } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import { MULTITASK_STRATEGIES, RUN_STATUSES, type RunStatus } from './run-rows.ts';

const json = withoutPrototype(z.record(z.string(), z.unknown()));

const fields = {
  run_id: z.guid(),
  thread_id: z.guid(),
  assistant_id: z.guid(),
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime(),
  status: z.enum(RUN_STATUSES),
  metadata: json,
  kwargs: json,
  multitask_strategy: z.enum(MULTITASK_STRATEGIES),
};

export const run = z.strictObject(fields).meta({ id: 'Run' });
/** With the fields that were asked for. JSON whose text is made by the database. */
export const runList = {
  textType: 'application/json',
  schema: z.array(z.strictObject(fields).partial()),
};

export const RUN_FIELDS = Object.keys(fields) as readonly (keyof typeof fields)[];
export type RunField = (typeof RUN_FIELDS)[number];

export type RunRow = {
  readonly run_id: string;
  readonly thread_id: string;
  readonly assistant_id: string;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly status: RunStatus;
  /** JSON text. */
  readonly metadata: string;
  /** JSON text. */
  readonly kwargs: string;
  readonly multitask_strategy: (typeof MULTITASK_STRATEGIES)[number];
};

export type ShownRun = z.output<typeof run>;

/** JSON as text: the driver would parse it to objects, and lose digits of numbers. */
export function selectRuns(db: Pick<Database, 'selectFrom'>) {
  return db
    .selectFrom('agent_runs as r')
    .innerJoin('agent_threads as t', 't.thread_id', 'r.thread_id')
    .select(['r.run_id', 'r.thread_id', 'r.assistant_id', 'r.created_at', 'r.updated_at', 'r.status'])
    .select([
      'r.multitask_strategy',
      sql<string>`r.metadata::text`.as('metadata'),
      sql<string>`r.kwargs::text`.as('kwargs'),
    ]);
}

export function toRun(row: RunRow): ShownRun {
  return {
    run_id: row.run_id,
    thread_id: row.thread_id,
    assistant_id: row.assistant_id,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
    status: row.status,
    metadata: JSON.parse(row.metadata) as Record<string, unknown>,
    kwargs: JSON.parse(row.kwargs) as Record<string, unknown>,
    multitask_strategy: row.multitask_strategy,
  };
}

/** The column `text`: JSON that the database makes of a row, so that what was sent passes through as it is stored. */
export function runText(fields: readonly RunField[]) {
  const members = fields.map((field) => {
    const isTime = field === 'created_at' || field === 'updated_at';
    const column = sql.ref(field);
    const value = isTime
      ? sql`to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
      : column;
    return sql`${sql.lit(field)}, ${value}`;
  });
  return sql<string>`json_build_object(${sql.join(members)})::text`.as('text');
}
