// What callers may ask of runs, by the public API: filters in their language, times, and what of a run they want.
import { z } from '../../../base/schema.ts';
import type { Filter } from '../filter/filter.ts';
import { parseFilter } from '../filter/parser.ts';
import { MAX_FILTER_LENGTH } from '../filter/syntax.ts';
import { MAX_SEARCHED } from '../filter/value-test.ts';
import { toMicroseconds } from '../runs/run-time.ts';

/** An id that clients have chosen. */
const id = z
  .string()
  .regex(/^[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$/, 'Input must be a UUID')
  .transform((text) => text.toLowerCase());

const moment = z
  .string()
  .max(64)
  .refine(
    (text) => toMicroseconds(text) !== undefined,
    'Input must be a time from 1970 to 9999, as in RFC 3339',
  )
  .transform((text) => toMicroseconds(text) ?? '')
  .meta({ format: 'date-time' });

/** Each issue has its position as the last part of its place. */
const filter = z
  .string()
  .max(MAX_FILTER_LENGTH, { abort: true })
  .transform((text, context): Filter => {
    const parsed = parseFilter(text);
    if (parsed.ok) return parsed.filter;
    for (const { at, msg } of parsed.issues)
      context.addIssue({ code: 'custom', path: [at], message: `At character ${at}: ${msg}` });
    return z.NEVER;
  })
  .meta({ description: 'In the filter language' });

export const runSelection = z
  .object({
    id: z.array(id).max(1_000).nullish().describe('Ids of runs: all other filters are ignored'),
    session: z.array(z.guid()).max(100).nullish().describe('Ids of projects; all when absent'),
    trace: id.nullish(),
    parent_run: id.nullish(),
    run_type: z.enum(['tool', 'chain', 'llm', 'retriever', 'embedding', 'prompt', 'parser']).nullish(),
    reference_example: z.array(id).max(1_000).nullish(),
    start_time: moment
      .nullish()
      .describe('Runs that start then or later; 400 days before end_time when absent'),
    end_time: moment.nullish().describe('Runs that start before'),
    error: z.boolean().nullish(),
    query: z.string().max(MAX_SEARCHED).nullish().describe('A text that one of the searched fields contains'),
    filter: filter.nullish(),
    trace_filter: filter.nullish().describe('Of the root of the trace'),
    tree_filter: filter.nullish().describe('Of any run of the trace'),
    search_filter: filter.nullish(),
    is_root: z.boolean().nullish(),
    data_source_type: z.string().max(100).nullish().describe('There is one'),
    execution_order: z.literal(1).nullish().describe('The root of each trace'),
  })
  .meta({ id: 'RunSelection' });

export const runQuery = runSelection
  .extend({
    select: z.array(z.string().max(100)).max(100).nullish().describe('Fields; all when absent'),
    order: z.enum(['asc', 'desc']).nullish().describe('By their start; desc when absent'),
    limit: z.int().min(1).max(100).nullish().describe('100 when absent'),
    cursor: z.string().max(512).nullish().describe('cursors.next of the page before'),
    skip_pagination: z
      .boolean()
      .nullish()
      .describe('cursors.next is null, unless the response would be too large'),
    skip_prev_cursor: z.boolean().nullish().describe('There is none'),
  })
  .meta({ id: 'RunQuery' });

export type GivenSelection = z.output<typeof runSelection>;
export type GivenQuery = z.output<typeof runQuery>;
