// The bucket of a destination: a client that connects to allowed addresses only, names the bucket as the destination has it and
// follows no redirect.
import type { AddressRules } from '../../../base/address-guard.ts';
import { createGuardedAgents } from '../../../base/http/guarded-agent.ts';
import { openS3, type S3, type S3Credentials } from '../../store/files/s3-client.ts';
import type { DestinationConfig } from './destination-schema.ts';
import { decideAddressing } from './endpoint.ts';

export type DestinationBucket = AsyncDisposable & {
  readonly s3: S3['s3'];
  readonly client: S3['client'];
  /** The bucket and the options of every object. */
  readonly object: { readonly Bucket: string } & NonNullable<DestinationConfig['s3_additional_kwargs']>;
};

export type DestinationAccess = {
  readonly config: DestinationConfig;
  /** Undefined: those of this machine. */
  readonly credentials: S3Credentials | undefined;
  readonly addresses: AddressRules;
  /** Of one request, its first included. */
  readonly attempts: number;
  /** For a connection, and without a byte of a request or of its response; no limit when absent. */
  readonly silenceMs?: number;
};

/** No object is read: what services send are short documents. */
const MAX_RESPONSE_BYTES = 1024 * 1024;

export async function openDestination(access: DestinationAccess): Promise<DestinationBucket> {
  const { config, credentials, addresses, attempts, silenceMs } = access;
  const agents = createGuardedAgents(addresses, { keepAlive: true });
  const endpoint = config.endpoint_url ?? undefined;
  const addressing = decideAddressing(config);
  const options = config.config_kwargs_s3 ?? {};
  const { s3, client } = await openS3({
    ...{ endpoint, credentials, agents, attempts, silenceMs },
    ...{ ignoresConfiguredEndpoints: true, maxResponseBytes: MAX_RESPONSE_BYTES },
    region: config.region ?? undefined,
    isPathStyle: addressing === 'path',
    isBucketEndpoint: addressing === 'in_endpoint',
    useAccelerateEndpoint: options.use_accelerate_endpoint,
    useGlobalEndpoint: options.us_east_1_regional_endpoint === 'legacy',
  });
  const bucket = addressing === 'in_endpoint' && endpoint !== undefined ? endpoint : config.bucket_name;
  return {
    ...{ s3, client },
    object: { ...config.s3_additional_kwargs, Bucket: bucket },
    async [Symbol.asyncDispose]() {
      client.destroy();
      agents[Symbol.dispose]();
    },
  };
}
