// What a sidecar may say of an exchange: the fields that it writes, each bounded, and no other, since a value could hide
// in one. Of injected headers there are names alone; a path has no query. It must not know who sends.
import { z } from '../../base/schema.ts';
import { pointInTime } from './point-in-time.ts';

export type RecordBatch = { readonly source: string; readonly records: readonly ReportedRecord[] };

export type ReportedRecord = {
  readonly number: number;
  readonly time: string;
  /** What else there is of it, as it was checked. */
  readonly [field: string]: unknown;
};

const MAX_RECORDS = 1_000;

/** A word of ours, an error code, an address: printable ASCII. */
const word = (max: number): z.ZodString =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[\x20-\x7e]*$/, 'Input should be printable ASCII');
const token = (max: number): z.ZodString =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[!#$%&'*+\-.^_`|~0-9A-Za-z]*$/, 'Input should be a token (RFC 9110 §5.6.2)');
/** As an author wrote it. */
const line = (max: number): z.ZodString =>
  z
    .string()
    .max(max)
    .regex(/^[^\p{Cc}\p{Zl}\p{Zp}]*$/u, 'Input should hold no control character');
const path = z
  .string()
  .max(513)
  .regex(/^[\x21-\x3e\x40-\x7e]*…?$/, 'Input should be a path without a query');
const count = z.int().min(0);

/** The members are in the order in which a sidecar writes them. */
const exchangeRecord = z.strictObject({
  number: count.describe('Counts the records of a source; what is missing in between was lost'),
  time: pointInTime,
  sandbox: word(63).describe('As the sidecar calls it'),
  revision: count,
  client: word(64).optional(),
  method: token(32).optional(),
  scheme: z.enum(['http', 'https', 'tunnel']).optional(),
  protocol: z.literal('h2').optional(),
  authority: word(300).optional(),
  path: path.optional(),
  rule: line(160).optional(),
  callback: line(160).optional(),
  callback_cached: z.boolean().optional(),
  injected: z.array(token(256)).max(64).optional(),
  outcome: z.enum(['injected', 'forwarded', 'tunnelled', 'refused', 'failed', 'upgraded']),
  reason: token(64).optional(),
  cause: line(1_000).optional(),
  status: z.int().min(100).max(999).optional(),
  upstream_reused: z.boolean().optional(),
  unframed: z.boolean().optional(),
  scrubbed: count.optional(),
  bytes_up: count,
  bytes_down: count,
  duration_ms: z.number().min(0),
});

/** As it is told again. */
export const keptRecord: z.ZodType = exchangeRecord.extend({ source: z.uuid() });

export const recordBatch: z.ZodType<RecordBatch> = z.strictObject({
  source: z.uuid().describe('The process of the sidecar; with the number it tells a record that came before'),
  records: z.array(exchangeRecord).min(1).max(MAX_RECORDS),
});
