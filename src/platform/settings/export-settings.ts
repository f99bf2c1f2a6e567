// The settings of bulk exports: which endpoints a destination may have, where its test file is written, and how much is read at once.
import { parseCidr } from '../../base/address.ts';
import { z } from '../../base/schema.ts';
import { asBoolean, asList, asText, type Variable } from '../../base/variable-overlay.ts';

const origin = z
  .string()
  .refine(
    (text) => /^https?:\/\/[^/?#@]+$/.test(text) && URL.canParse(text),
    'must be https://host or http://host, without a path',
  )
  .transform((text) => new URL(text).origin);

/** `aws`: those of AWS. */
const endpoint = z.union([z.literal('aws'), origin]);

const range = z.string().transform((text, context) => {
  const parsed = parseCidr(text);
  if (parsed !== undefined) return parsed;
  context.addIssue({ code: 'custom', message: 'must be a range of addresses such as 10.0.0.0/8' });
  return z.NEVER;
});

export const exportSettings = z
  .strictObject({
    allowed_endpoints: z.array(endpoint).max(100).optional(),
    cleartext_endpoints: z.array(origin).max(100).default([]),
    environment_credentials: z.array(endpoint).max(100).default([]),
    private_addresses: z.array(range).max(100).default([]),
    allow_loopback: z.boolean().default(false),
    test_file: z.enum(['bucket', 'prefix']).default('bucket'),
    max_batch_payload_kb: z.int().min(64).max(65_536).default(8_192),
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
];

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
  };
}
