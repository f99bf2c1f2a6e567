// The settings of bulk exports: which endpoints a destination may have, how many exports and runs there are at once, how long they may take
// and how much is read at once, and the process that executes runs.
import { availableParallelism } from 'node:os';
import { parseCidr } from '../../base/address.ts';
import { z } from '../../base/schema.ts';
import { asBoolean, asList, asText, type Variable } from '../../base/variable-overlay.ts';
import { listenAddress } from '../setting-schemas.ts';

const isOrigin = (text: string): boolean => /^https?:\/\/[^/?#@]+$/.test(text) && URL.canParse(text);

const origin = z
  .string()
  .refine(isOrigin, 'must be https://host or http://host, without a path')
  .transform((text) => new URL(text).origin);

/** `aws`: those of AWS. */
const endpoint = z
  .string()
  .refine(
    (text) => text === 'aws' || isOrigin(text),
    'must be aws, https://host or http://host, without a path',
  )
  .transform((text) => (text === 'aws' ? text : new URL(text).origin));

const range = z.string().transform((text, context) => {
  const parsed = parseCidr(text);
  if (parsed !== undefined) return parsed;
  context.addIssue({ code: 'custom', message: 'must be a range of addresses such as 10.0.0.0/8' });
  return z.NEVER;
});

const count = z.int().min(1).max(100_000);
const compression = z.enum(['none', 'gzip', 'snappy', 'zstandard']);

export const exportSettings = z
  .strictObject({
    allowed_endpoints: z.array(endpoint).max(100).optional(),
    cleartext_endpoints: z.array(origin).max(100).default([]),
    environment_credentials: z.array(endpoint).max(100).default([]),
    private_addresses: z.array(range).max(100).default([]),
    allow_loopback: z.boolean().default(false),
    test_file: z.enum(['bucket', 'prefix']).default('bucket'),
    max_batch_payload_kb: z.int().min(64).max(65_536).default(8_192),
    status_case: z.enum(['upper', 'title']).default('upper'),
    default_compression: compression.default('gzip'),
    max_exports: count.default(15),
    max_runs: count.default(45),
    timeout_hours: z.int().min(1).max(720).default(72),
    run_timeout_ms: z.int().min(1_000).max(86_400_000).default(14_400_000),
    max_retries: z.int().min(0).max(1_000).default(20),
    retry_delay_ms: z.int().min(0).max(3_600_000).default(30_000),
    creations_per_hour: count.default(250),
    max_schedules: count.default(200),
    worker: z
      .strictObject({
        start: z.boolean().default(true),
        runs: z.int().min(1).max(1_000).optional(),
        metrics_listen: listenAddress.optional(),
      })
      .prefault({}),
  })
  .prefault({});

const PREFIX = 'SALLYPORT_PLATFORM_EXPORTS_';

export const exportVariables: readonly (readonly [name: string, key: string, read: Variable['read']])[] = [
  [`${PREFIX}ALLOWED_ENDPOINTS`, 'exports.allowed_endpoints', asList],
  [`${PREFIX}CLEARTEXT_ENDPOINTS`, 'exports.cleartext_endpoints', asList],
  [`${PREFIX}ENVIRONMENT_CREDENTIALS`, 'exports.environment_credentials', asList],
  [`${PREFIX}PRIVATE_ADDRESSES`, 'exports.private_addresses', asList],
  [`${PREFIX}ALLOW_LOOPBACK`, 'exports.allow_loopback', asBoolean],
  [`${PREFIX}TEST_FILE`, 'exports.test_file', asText],
  ['DATA_EXPORT_MAX_BATCH_PAYLOAD_SIZE_KB', 'exports.max_batch_payload_kb', Number],
  [`${PREFIX}STATUS_CASE`, 'exports.status_case', asText],
  // By the names of the public product.
  ['FF_BULK_EXPORT_DEFAULT_COMPRESSION', 'exports.default_compression', asText],
  ['DATA_EXPORT_RUN_LIMIT', 'exports.max_exports', Number],
  ['BULK_EXPORT_MAX_CONCURRENT_RUNS', 'exports.max_runs', Number],
  [`${PREFIX}TIMEOUT_HOURS`, 'exports.timeout_hours', Number],
  [`${PREFIX}RUN_TIMEOUT_MS`, 'exports.run_timeout_ms', Number],
  [`${PREFIX}MAX_RETRIES`, 'exports.max_retries', Number],
  [`${PREFIX}RETRY_DELAY_MS`, 'exports.retry_delay_ms', Number],
  [`${PREFIX}CREATIONS_PER_HOUR`, 'exports.creations_per_hour', Number],
  [`${PREFIX}MAX_SCHEDULES`, 'exports.max_schedules', Number],
  [`${PREFIX}WORKER_START`, 'exports.worker.start', asBoolean],
  [`${PREFIX}WORKER_RUNS`, 'exports.worker.runs', Number],
  [`${PREFIX}WORKER_METRICS_LISTEN`, 'exports.worker.metrics_listen', asText],
];

/** Of a worker besides one for each run that it executes: states, leases and notifications. */
export const WORKER_CONNECTIONS = 4;

/** What an embedded server has for the worker. */
export function exportConnectionsOf({ worker }: z.output<typeof exportSettings>): number {
  return worker.start ? WORKER_CONNECTIONS + 1 + runsOf(worker.runs) : 0;
}

/** Compression takes a core of each. */
function runsOf(given: number | undefined): number {
  return given ?? availableParallelism();
}

export function toExportConfig(given: z.output<typeof exportSettings>) {
  return {
    endpoints: {
      allowed: given.allowed_endpoints && new Set<string>(given.allowed_endpoints),
      cleartext: new Set(given.cleartext_endpoints),
      environmentCredentials: new Set<string>(given.environment_credentials),
    },
    addresses: {
      allowAllPrivate: false,
      allowLoopback: given.allow_loopback,
      allowCidrs: given.private_addresses,
      isOwnListener: () => false,
    },
    /** `bucket`: below `tmp/` of the bucket; `prefix`: below `tmp/` of the prefix. */
    testFile: given.test_file,
    /** Of the stored payloads of the runs that are read at once. */
    pageBytes: given.max_batch_payload_kb * 1_024,
    /** How states are written in responses. */
    statusCase: given.status_case,
    defaultCompression: given.default_compression,
    /** That run at once: exports of a workspace, and runs of an export. */
    limits: { maxExports: given.max_exports, maxRuns: given.max_runs },
    quotas: { creationsPerHour: given.creations_per_hour, schedules: given.max_schedules },
    rules: {
      maxRetries: given.max_retries,
      retryDelayMs: given.retry_delay_ms,
      /** Of one attempt of a run. */
      runTimeoutMs: given.run_timeout_ms,
      /** Of an export, from the beginning of its first run. */
      exportTimeoutMs: given.timeout_hours * 3_600_000,
    },
    worker: {
      /** The platform starts it, as soon as there is something to export. */
      isStarted: given.worker.start,
      /** That one process executes at once. */
      runs: runsOf(given.worker.runs),
      metricsListen: given.worker.metrics_listen,
    },
  };
}
