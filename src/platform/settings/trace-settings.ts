// The settings of traces: how much one request may bring, where attachments are, and how long runs are kept.
import { join, resolve } from 'node:path';
import { z } from '../../base/schema.ts';
import { asText, type Variable } from '../../base/variable-overlay.ts';
import { file, limit } from '../setting-schemas.ts';

const MIB = 1024 ** 2;
const PLACE = /^(?:s3:\/\/[a-z0-9][a-z0-9.-]+(?:\/.*)?|(?!s3:|[A-Za-z][A-Za-z0-9+.-]*:\/\/).+)$/s;

export const traceSettings = z
  .strictObject({
    max_sent_bytes: limit.default(20 * MIB),
    max_content_bytes: limit.default(200 * MIB),
    max_ratio: limit.default(100),
    max_parts: limit.default(10_000),
    max_attachments: limit.default(1_000),
    large_bodies: limit.default(2),
    spool_directory: file.optional(),
    artifacts: z.string().regex(PLACE, 'must be the path of a directory or s3://bucket/prefix').optional(),
    retention_days: z.int().min(1).max(36_500).default(400),
  })
  .prefault({});

const PREFIX = 'SALLYPORT_PLATFORM_TRACES_';

export const traceVariables: readonly (readonly [name: string, key: string, read: Variable['read']])[] = [
  [`${PREFIX}MAX_SENT_BYTES`, 'traces.max_sent_bytes', Number],
  [`${PREFIX}MAX_CONTENT_BYTES`, 'traces.max_content_bytes', Number],
  [`${PREFIX}MAX_RATIO`, 'traces.max_ratio', Number],
  [`${PREFIX}MAX_PARTS`, 'traces.max_parts', Number],
  [`${PREFIX}MAX_ATTACHMENTS`, 'traces.max_attachments', Number],
  [`${PREFIX}LARGE_BODIES`, 'traces.large_bodies', Number],
  [`${PREFIX}SPOOL_DIRECTORY`, 'traces.spool_directory', asText],
  [`${PREFIX}ARTIFACTS`, 'traces.artifacts', asText],
  [`${PREFIX}RETENTION_DAYS`, 'traces.retention_days', Number],
];

export function toTraceConfig(given: z.output<typeof traceSettings>, dataDirectory: string) {
  return {
    /** Of the body of one request, as it is sent. */
    maxSentBytes: given.max_sent_bytes,
    /** Without its coding. */
    maxContentBytes: given.max_content_bytes,
    /** How many bytes of content one sent byte may stand for. */
    maxRatio: given.max_ratio,
    /** Parts of a multipart body, and runs of any body. */
    maxParts: given.max_parts,
    /** Of one multipart body. */
    maxAttachments: given.max_attachments,
    /** Bodies of more than a mebibyte that are received and stored at once, of one organization. */
    largeBodies: given.large_bodies,
    /** Where bytes of requests are that are too many for memory, until they are in the database. */
    spoolDirectory: resolve(given.spool_directory ?? join(dataDirectory, 'spool')),
    /** The path of a directory, or `s3://bucket/prefix`; undefined: a directory in the data directory. */
    artifacts: given.artifacts,
    /** After the start of a run. */
    retentionDays: given.retention_days,
  };
}
