// Tracing projects as callers write and read them. The public API names them sessions.
import { isObject } from '../../../base/json/json-document.ts';
import { NAME, NAME_PATTERN } from '../../../base/json/printable-text.ts';
import { z } from '../../../base/schema.ts';

// The length is checked before the pattern, which would block the event loop on a megabyte of text.
export const projectName = z
  .string()
  .max(512, { abort: true })
  .min(1)
  .regex(NAME, 'Input must have no control characters')
  .meta({ pattern: NAME_PATTERN });
/** An object as it was sent: a schema of records would leave a member named __proto__ out. */
const extra = z.unknown().refine(isObject, 'Input must be an object').meta({ type: 'object' });
const description = z.string().max(10_000);

/** A time without an offset is in UTC. Read in milliseconds. */
const moment = z
  .string()
  .max(40)
  .refine(
    (text) => toMilliseconds(text) !== undefined,
    'Input must be a time from 1970 to 9999, as in RFC 3339',
  )
  .transform((text) => new Date(toMilliseconds(text) ?? 0).toISOString())
  .meta({ format: 'date-time' });

function toMilliseconds(text: string): number | undefined {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?$/i.test(text))
    return undefined;
  const ms = Date.parse(/(?:Z|[+-]\d\d:?\d\d)$/i.test(text) ? text : `${text}Z`);
  return ms >= 0 && ms <= LAST_MS ? ms : undefined;
}

const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** An id that clients choose, or one of another service: it names nothing here. */
export const freeId = z
  .string()
  .regex(
    /^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$/,
    'Input must be a UUID',
  )
  .transform((id) => id.toLowerCase());

/** As clients in several languages write it. */
export const flag = z
  .enum(['true', 'false', 'True', 'False', '1', '0'])
  .transform((text) => /^[tT1]/.test(text));

export const newProject = z.object({
  id: freeId.nullish(),
  name: projectName,
  description: description.nullish(),
  extra: extra.nullish(),
  start_time: moment.nullish(),
  end_time: moment.nullish(),
  default_dataset_id: freeId.nullish(),
  reference_dataset_id: freeId.nullish(),
});

/** Fields that are left out are not changed. */
export const projectChange = z.object({
  name: projectName.nullish(),
  description: description.nullish(),
  extra: extra.nullish(),
  end_time: moment.nullish(),
  default_dataset_id: freeId.nullish(),
});

const number = z.number().nullable().optional();
const money = z.string().nullable().optional();

export const project = z
  .strictObject({
    id: z.guid(),
    tenant_id: z.guid(),
    name: z.string(),
    description: z.string().nullable(),
    extra: z.unknown().meta({ type: 'object' }).nullable(),
    start_time: z.iso.datetime(),
    end_time: z.iso.datetime().nullable(),
    default_dataset_id: z.guid().nullable(),
    reference_dataset_id: z.guid().nullable(),
    trace_tier: z.literal('longlived'),
    last_run_start_time_live: z.iso.datetime().nullable(),
    run_count: z.int().optional().describe('Of traces, as the other statistics, where they were asked for'),
    latency_p50: number.describe('Seconds'),
    latency_p99: number,
    first_token_p50: number,
    first_token_p99: number,
    total_tokens: number,
    prompt_tokens: number,
    completion_tokens: number,
    total_cost: money,
    prompt_cost: money,
    completion_cost: money,
    last_run_start_time: z.iso.datetime().nullable().optional(),
    error_rate: number,
    streaming_rate: number,
    feedback_stats: z.record(z.string(), z.unknown()).nullable().optional(),
    run_facets: z.array(z.unknown()).optional(),
  })
  .meta({ id: 'TracingProject' });

/** `metadata` is the text of a JSON object. */
export const projectQuery = z.strictObject({
  id: z.array(z.guid()).max(100).optional(),
  name: z.string().max(512).optional(),
  name_contains: z.string().max(512).optional(),
  metadata: z
    .string()
    .max(4_096)
    .optional()
    .describe('A JSON object that the metadata in `extra` contains; any other text finds none'),
  reference_free: flag.optional(),
  reference_dataset: z.array(freeId).max(100).optional(),
  sort_by: z.enum(['start_time', 'name', 'last_run_start_time']).default('start_time'),
  sort_by_desc: flag.default(true),
  include_stats: flag.default(false),
  offset: z.int().min(0).max(10_000).default(0),
  limit: z.int().min(1).max(100).default(100),
});
