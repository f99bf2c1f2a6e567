// Exports and their runs as callers write and read them, by the public API.
import { z } from '../../../base/schema.ts';
import { parseFilter } from '../../traces/filter/parser.ts';
import { MAX_FILTER_LENGTH } from '../../traces/filter/syntax.ts';
import { type ExportField, exportFields } from '../files/export-columns.ts';
import type { Compression } from './export-rows.ts';
import { exportStatuses } from './export-states.ts';
import { toCanonicalTime } from './export-time.ts';
import { isTooLong, MAX_WINDOW_DAYS } from './export-window.ts';

export const MAX_INTERVAL_HOURS = 168;

const moment = z
  .string()
  .max(64, { abort: true })
  .refine(
    (text) => toCanonicalTime(text) !== undefined,
    'Input must be a time from 1970 to 9998, as in RFC 3339',
  )
  .transform((text) => toCanonicalTime(text) ?? '')
  .meta({ format: 'date-time' });

/** Each issue has its position as the last part of its place. */
const filter = z
  .string()
  .max(MAX_FILTER_LENGTH, { abort: true })
  .superRefine((text, context) => {
    const parsed = parseFilter(text);
    for (const { at, msg } of parsed.ok ? [] : parsed.issues)
      context.addIssue({ code: 'custom', path: [at], message: `At character ${at}: ${msg}` });
  })
  .describe('In the filter language of traces');

const fields = z
  .array(z.enum(exportFields as [ExportField, ...ExportField[]]))
  .min(1)
  .max(exportFields.length)
  .superRefine((names, context) => {
    for (const [at, name] of names.entries())
      if (names.indexOf(name) !== at)
        context.addIssue({ code: 'custom', path: [at], message: 'Input must name each column once' });
  })
  .describe('Columns; all when absent');

const NO_END = 'Field required without interval_hours';
const NOT_WITH_INTERVAL = 'Input must be absent with interval_hours: a schedule has no end';
const EMPTY = 'Input must be after start_time';
const TOO_LONG = `The window must have at most ${MAX_WINDOW_DAYS} days`;
const NOT_SUPPORTED = 'Input is not supported: name the project by session_id';

/** Fields that are not known here are ignored: clients may be newer. */
export function createExportSchema(defaultCompression: Compression) {
  return z
    .object({
      bulk_export_destination_id: z.guid(),
      session_id: z.guid().describe('The tracing project'),
      start_time: moment.describe('Runs that start then or later'),
      end_time: moment.nullish().describe('Runs that start before; absent with interval_hours'),
      filter: filter.nullish(),
      format: z.literal('Parquet').default('Parquet'),
      format_version: z
        .enum(['v1', 'v2_beta'])
        .default('v1')
        .describe('v1: times without a time zone; v2_beta: times in UTC'),
      compression: z.enum(['none', 'gzip', 'snappy', 'zstandard']).default(defaultCompression),
      interval_hours: z
        .int()
        .min(1)
        .max(MAX_INTERVAL_HOURS)
        .nullish()
        .describe('A schedule: an export of each interval, made 10 minutes after its end'),
      export_fields: fields.nullish(),
      all_experiments: z.literal(false, NOT_SUPPORTED).nullish(),
    })
    .superRefine(({ start_time: from, end_time: to, interval_hours: interval }, { addIssue }) => {
      const add = (message: string): void => addIssue({ code: 'custom', path: ['end_time'], message });
      if (!to) return interval ? undefined : add(NO_END);
      if (interval) return add(NOT_WITH_INTERVAL);
      // Times of equal length: their order is that of their texts.
      if (to <= from) return add(EMPTY);
      if (isTooLong({ from, to })) add(TOO_LONG);
    });
}
export type NewExport = z.output<ReturnType<typeof createExportSchema>>;

export const exportChange = z.object({
  status: z
    .string()
    .max(16, { abort: true })
    .regex(
      /^[Cc][Aa][Nn][Cc][Ee][Ll][Ll][Ee][Dd]$/,
      'Input must be Cancelled, which is all that an export can be set to',
    )
    .default('Cancelled'),
});

/** `upper`: as the documents of the public API write states; `title`: as its OpenAPI description does. */
export type StatusCase = 'upper' | 'title';

const TITLES: Readonly<Record<string, string>> = {
  CREATED: 'Created',
  RUNNING: 'Running',
  COMPLETED: 'Completed',
  FAILED: 'Failed',
  CANCELLED: 'Cancelled',
  TIMEDOUT: 'TimedOut',
  INTERVALSCHEDULED: 'IntervalScheduled',
};

export function formatStatus(status: string, as: StatusCase): string {
  return as === 'title' ? (TITLES[status] ?? status) : status;
}

const time = z.iso.datetime();

export function createRecordSchemas(as: StatusCase) {
  const status = z.enum(exportStatuses.map((one) => formatStatus(one, as)) as [string, ...string[]]);
  const exported = z.strictObject({
    id: z.guid(),
    tenant_id: z.guid(),
    bulk_export_destination_id: z.guid(),
    session_id: z.guid(),
    status,
    start_time: time,
    end_time: time.nullable(),
    filter: z.string().nullable(),
    format: z.literal('Parquet'),
    format_version: z.enum(['v1', 'v2_beta']),
    compression: z.enum(['none', 'gzip', 'snappy', 'zstandard']),
    interval_hours: z.int().nullable(),
    export_fields: z.array(z.string()).nullable(),
    source_bulk_export_id: z.guid().nullable().describe('The schedule that has made it'),
    created_at: time,
    updated_at: time,
    finished_at: time.nullable(),
  });
  const pending = z.strictObject({ target_cursor: z.string(), file_path: z.string(), rows_count: z.int() });
  const result = z.strictObject({
    rows_written: z.int(),
    exported_files: z.array(z.string()),
    export_path: z.string(),
    latest_cursor: z.string().nullable(),
    pending_upload: pending.nullable().describe('An upload under way, or one to be verified'),
  });
  const run = z.strictObject({
    id: z.guid(),
    bulk_export_id: z.guid(),
    status,
    retry_number: z.int(),
    errors: z.record(z.string(), z.string()).nullable().describe('By attempt: retry_0, retry_1, …'),
    start_time: time,
    end_time: time,
    created_at: time,
    updated_at: time,
    finished_at: time.nullable(),
    metadata: z.strictObject({
      prefix: z.string(),
      start_time: time,
      end_time: time,
      execution_backend: z.null(),
      result: result.nullable(),
    }),
  });
  return { export: exported.meta({ id: 'BulkExport' }), run: run.meta({ id: 'BulkExportRun' }) };
}
