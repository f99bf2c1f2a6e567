// Destinations as callers write and read them (seed: bulk export). Credentials leave the schema as Secrets.
import { z } from '../../../base/schema.ts';
import { Secret } from '../../../base/secret.ts';
import { type EndpointRules, findEndpointProblem, mayUseEnvironment } from './endpoint.ts';
import { findKeyProblem } from '../files/file-key.ts';
import { findPrefixProblem } from './object-prefix.ts';

const NAME_RULE = "Input must consist of letters, digits, spaces and the characters -_'";
const BUCKET_RULE = 'Input must consist of letters, digits, hyphens, underscores and single dots';

/** The length is checked before a pattern. */
const text = (max: number) => z.string().min(1).max(max, { abort: true });
const printable = (max: number) =>
  text(max).regex(/^[\x21-\x7e]*$/, 'Input must consist of printable ASCII characters without spaces');

const displayName = text(255)
  .regex(/^[a-zA-Z0-9\-_ ']+$/, NAME_RULE)
  .meta({ pattern: "^[a-zA-Z0-9\\-_ ']+$" });
const bucketName = z
  .string()
  .min(3)
  .max(63, { abort: true })
  .regex(/^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$/, BUCKET_RULE);
const region = text(64).regex(/^[A-Za-z0-9-]+$/, 'Input must be the name of a region such as us-east-1');

/** Of what boto3 takes, what has the same effect here. */
const clientOptions = {
  addressing_style: z.enum(['auto', 'virtual', 'path']).optional(),
  use_accelerate_endpoint: z.boolean().optional(),
  us_east_1_regional_endpoint: z.enum(['regional', 'legacy']).optional(),
};

/** Arguments that boto3 passes on with every object. */
const objectOptions = {
  ACL: z.enum(['private', 'bucket-owner-full-control', 'bucket-owner-read']).optional(),
  BucketKeyEnabled: z.boolean().optional(),
  SSEKMSKeyId: printable(2_048).optional(),
  ServerSideEncryption: z.enum(['AES256', 'aws:kms', 'aws:kms:dsse']).optional(),
  StorageClass: z
    .enum(['STANDARD', 'STANDARD_IA', 'ONEZONE_IA', 'INTELLIGENT_TIERING', 'GLACIER_IR'])
    .optional(),
};

const prefix = z
  .string()
  .superRefine((given, context) => {
    const message = findPrefixProblem(given) ?? findKeyProblem(given);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  })
  .describe("Letters, digits and !-_.*'()/=; empty for the root of the bucket");

/** Another field is an option that would be lost: unlike elsewhere in the public API, it is refused. */
export const destinationConfig = z.strictObject({
  bucket_name: bucketName,
  prefix: prefix.default(''),
  region: region.nullish(),
  endpoint_url: text(2_048).nullish().describe('Left out for a bucket of AWS'),
  include_bucket_in_prefix: z
    .boolean()
    .default(true)
    .describe('False where the host of endpoint_url is that of the bucket'),
  config_kwargs_s3: z.strictObject(clientOptions).nullish(),
  s3_additional_kwargs: z.strictObject(objectOptions).nullish(),
});
export type DestinationConfig = z.output<typeof destinationConfig>;

export const credentials = z.object({
  access_key_id: printable(255),
  secret_access_key: printable(2_048).transform((value) => new Secret(value)),
  session_token: printable(2_048)
    .transform((value) => new Secret(value))
    .nullish(),
});
export type Credentials = z.output<typeof credentials>;

const NO_REGION = 'Field required for a bucket of AWS, which has no endpoint_url';
const NOT_IN_ENDPOINT = 'Input must be true where there is no endpoint_url';
const NO_CREDENTIALS =
  'Field required: the operator has not allowed this endpoint to get the credentials of this installation (exports.environment_credentials)';

/** Fields that are not known here are ignored: clients may be newer. */
export function createDestinationSchema(rules: EndpointRules) {
  return z
    .object({
      destination_type: z.literal('s3').default('s3'),
      display_name: displayName,
      config: destinationConfig.superRefine((config, { addIssue }) => {
        const { endpoint_url: endpoint } = config;
        const add = (field: keyof DestinationConfig, message: string): void =>
          addIssue({ code: 'custom', path: [field], message });
        const problem = findEndpointProblem(endpoint ?? undefined, rules);
        if (problem !== undefined) add('endpoint_url', problem);
        if (endpoint) return;
        if (!config.region) add('region', NO_REGION);
        if (!config.include_bucket_in_prefix) add('include_bucket_in_prefix', NOT_IN_ENDPOINT);
      }),
      credentials: credentials.nullish(),
    })
    .superRefine(({ config, credentials: given }, { addIssue }) => {
      if (given || mayUseEnvironment(config.endpoint_url ?? undefined, rules)) return;
      addIssue({ code: 'custom', path: ['credentials'], message: NO_CREDENTIALS });
    });
}

export const destinationChange = z.object({ credentials });

export const destination = z.strictObject({
  id: z.guid(),
  tenant_id: z.guid(),
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime(),
  destination_type: z.literal('s3'),
  display_name: z.string(),
  config: z.strictObject({
    bucket_name: z.string(),
    prefix: z.string(),
    region: z.string().nullish(),
    endpoint_url: z.string().nullish(),
    include_bucket_in_prefix: z.boolean(),
    config_kwargs_s3: z.strictObject(clientOptions).nullish(),
    s3_additional_kwargs: z.strictObject(objectOptions).nullish(),
  }),
  credentials_keys: z.array(z.string()).describe('The names of the stored credentials, without values'),
});
