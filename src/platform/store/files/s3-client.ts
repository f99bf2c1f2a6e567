// The only file that imports the S3 client, which is loaded with the first request. Credentials, region and endpoint come from the
// usual AWS variables and files unless they are given.
import type { Agent as HttpAgent } from 'node:http';
import type { Agent as HttpsAgent } from 'node:https';
import { pipeline, Readable, Transform } from 'node:stream';
import type { Secret } from '../../../base/secret.ts';

export type S3Options = {
  readonly endpoint?: string | undefined;
  readonly region?: string | undefined;
  /** False where the bucket is in the host name. */
  readonly isPathStyle?: boolean | undefined;
  /** The bucket of each request is the URL of the bucket. */
  readonly isBucketEndpoint?: boolean | undefined;
  readonly credentials?: S3Credentials | undefined;
  readonly agents?: { readonly http: HttpAgent; readonly https: HttpsAgent } | undefined;
  /** Of one request, its first included. */
  readonly attempts?: number | undefined;
  /** For a connection, and without a byte of a request or of its response. */
  readonly silenceMs?: number | undefined;
  /** Of a response, which the client holds whole; no limit when absent. */
  readonly maxResponseBytes?: number | undefined;
  /** Without an endpoint that of AWS, also where the AWS variables and files of this machine name another one. */
  readonly ignoresConfiguredEndpoints?: boolean | undefined;
  readonly useAccelerateEndpoint?: boolean | undefined;
  readonly useGlobalEndpoint?: boolean | undefined;
};

export type S3Credentials = {
  readonly accessKeyId: string;
  readonly secretAccessKey: Secret;
  readonly sessionToken?: Secret | undefined;
};

const DEFAULT_REGION = 'us-east-1';

/** The client, and the commands of its package. */
export type S3 = Awaited<ReturnType<typeof openS3>>;

export async function openS3(options: S3Options) {
  const s3 = await loadPackage();
  const { AWS_REGION, AWS_DEFAULT_REGION } = process.env;
  const { endpoint, credentials, agents } = options;
  const client = new s3.S3Client({
    region: options.region ?? AWS_REGION ?? AWS_DEFAULT_REGION ?? DEFAULT_REGION,
    forcePathStyle: options.isPathStyle ?? false,
    bucketEndpoint: options.isBucketEndpoint ?? false,
    useAccelerateEndpoint: options.useAccelerateEndpoint ?? false,
    useGlobalEndpoint: options.useGlobalEndpoint ?? false,
    ...(endpoint === undefined ? {} : { endpoint }),
    ignoreConfiguredEndpointUrls: options.ignoresConfiguredEndpoints ?? false,
    ...(credentials === undefined ? {} : { credentials: reveal(credentials) }),
    ...(options.attempts === undefined ? {} : { maxAttempts: options.attempts }),
    ...(agents === undefined ? {} : { requestHandler: toHandler(agents, options.silenceMs) }),
    // Some services do not know it, and bodies are sent to them seconds later.
    expectContinueHeader: false,
    // Stores of other providers reject the trailers that newer clients add.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });
  if (options.maxResponseBytes !== undefined) limitResponses(client, options.maxResponseBytes);
  return { s3, client };
}

type Client = InstanceType<Awaited<ReturnType<typeof loadPackage>>['S3Client']>;

function limitResponses(client: Client, maxBytes: number): void {
  client.middlewareStack.add(
    (next) => async (args) => {
      const result = await next(args);
      const response = result.response as { body?: unknown };
      if (response.body instanceof Readable) response.body = cutAt(response.body, maxBytes);
      return result;
    },
    // Before anything reads it.
    { name: 'responseLimit', step: 'deserialize', priority: 'low' },
  );
}

function cutAt(body: Readable, maxBytes: number): Readable {
  let bytes = 0;
  const counted = new Transform({
    transform(chunk: Buffer, _, done) {
      bytes += chunk.length;
      if (bytes > maxBytes) done(new Error(`the response has more than ${maxBytes} bytes`));
      else done(null, chunk);
    },
  });
  // Whoever reads it gets the error; the connection is closed.
  return pipeline(body, counted, () => undefined);
}

function toHandler({ http, https }: NonNullable<S3Options['agents']>, silenceMs: number | undefined) {
  const limits = silenceMs === undefined ? {} : { connectionTimeout: silenceMs, socketTimeout: silenceMs };
  return { httpAgent: http, httpsAgent: https, ...limits };
}

function reveal({ accessKeyId, secretAccessKey, sessionToken }: S3Credentials) {
  const token = sessionToken === undefined ? {} : { sessionToken: sessionToken.reveal() };
  return { accessKeyId, secretAccessKey: secretAccessKey.reveal(), ...token };
}

/** In a bundle the package, which is CommonJS, is the default export of its chunk and has no other one. */
async function loadPackage() {
  const loaded = await import('@aws-sdk/client-s3');
  return 'S3Client' in loaded ? loaded : (loaded as { readonly default: typeof loaded }).default;
}
