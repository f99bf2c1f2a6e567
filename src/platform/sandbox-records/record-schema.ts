// The records that a sidecar may send: exactly the fields that it writes, each bounded. Other fields are rejected, because
// a secret could hide in one. Injected headers are sent as names without values, paths without a query.
import { LINE } from '../../base/json/printable-text.ts';
import { z } from '../../base/schema.ts';

const MAX_RECORDS = 1_000;
const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z');

export const RANGE = 'From 1970-01-01T00:00:00Z to 9999-12-31T23:59:59.999Z';

/** A time that PostgreSQL can store, which has no year 0, and that RFC 3339 can write, which has no five-digit years. */
export const storableTime = z.iso
  .datetime({ offset: true, error: 'Input must be a time as in RFC 3339' })
  .refine((text) => {
    const ms = Date.parse(text);
    return ms >= 0 && ms <= LAST_MS;
  }, 'Input must be a time from 1970 to 9999')
  .describe(RANGE);

const text = (max: number, pattern: RegExp, message: string) => z.string().max(max).regex(pattern, message);
/** An identifier of Sallyport, an error code, an address. */
const word = (max: number) => text(max, /^[\x20-\x7e]*$/, 'Input must be printable ASCII').min(1);
const token = (max: number) =>
  text(max, /^[!#$%&'*+\-.^_`|~0-9A-Za-z]*$/, 'Input must be a token (RFC 9110 §5.6.2)').min(1);
/** Free text by the author of a rule. */
const line = (max: number) => text(max, LINE, 'Input must have no control characters');
const path = text(513, /^[\x21-\x3e\x40-\x7e]*…?$/, 'Input must be a path without a query');
const count = z.int().min(0);

/** The fields are in the order in which a sidecar writes them. */
const exchangeRecord = z.strictObject({
  number: count.describe('Consecutive number of the record in its source; a gap means lost records'),
  time: storableTime,
  sandbox: word(63).describe('The name of the sandbox in the sidecar'),
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
  outcome: z.enum(['injected', 'forwarded', 'tunnelled', 'refused', 'failed', 'upgraded', 'served']),
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

/** A record in a response: with the source of its batch. */
export const storedRecord = exchangeRecord.extend({ source: z.uuid() });

export const recordBatch = z.strictObject({
  source: z
    .uuid()
    .describe('Identifies the process of the sidecar; source and number together identify a record'),
  records: z.array(exchangeRecord).min(1).max(MAX_RECORDS),
});

export type StoredRecord = z.output<typeof storedRecord>;
export type RecordBatch = z.output<typeof recordBatch>;
