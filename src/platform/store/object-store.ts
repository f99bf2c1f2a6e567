// The door to S3: objects of one bucket below one prefix, made once and never changed. The client is loaded with the first
// request. Credentials, region and endpoint come from where every S3 client looks for them.
import type { S3Client } from '@aws-sdk/client-s3';
import type * as S3 from '@aws-sdk/client-s3';
import { InputError } from '../../base/input-error.ts';

export type Bucket = {
  /** Fails where there is such an object. Names are below the prefix. */
  create(name: string, body: string): Promise<void>;
  /** In the order of their names. */
  list(): AsyncIterable<string>;
  read(name: string): Promise<string>;
};

const DEFAULT_REGION = 'us-east-1';

/** Of one request with its repetitions: the client itself waits for ever. */
const REQUEST_TIMEOUT_MS = 10_000;

/** `s3://bucket/prefix`; `?endpoint=` and `?region=` may follow, for stores that are not the provider's own. */
export function openBucket(place: string, timeoutMs: number = REQUEST_TIMEOUT_MS): Bucket {
  const { bucket, prefix, endpoint, region } = parsePlace(place);
  let opened: Promise<{ readonly s3: typeof S3; readonly client: S3Client }> | undefined;
  const use = (): NonNullable<typeof opened> => (opened ??= openClient(endpoint, region));
  const bound = (): { readonly abortSignal: AbortSignal } => ({
    abortSignal: AbortSignal.timeout(timeoutMs),
  });
  return {
    async create(name, body) {
      const { s3, client } = await use();
      const object = { Bucket: bucket, Key: `${prefix}${name}`, Body: body, IfNoneMatch: '*' };
      await client.send(new s3.PutObjectCommand({ ...object, ContentType: 'application/jsonl' }), bound());
    },
    async *list() {
      const { s3, client } = await use();
      for (let next: string | undefined; ; ) {
        const page = await client.send(
          new s3.ListObjectsV2Command({
            Bucket: bucket,
            Prefix: prefix,
            ...(next === undefined ? {} : { ContinuationToken: next }),
          }),
          bound(),
        );
        for (const { Key } of page.Contents ?? []) if (Key !== undefined) yield Key.slice(prefix.length);
        next = page.NextContinuationToken;
        if (page.IsTruncated !== true || next === undefined) return;
      }
    },
    async read(name) {
      const { s3, client } = await use();
      const { Body } = await client.send(
        new s3.GetObjectCommand({ Bucket: bucket, Key: `${prefix}${name}` }),
        bound(),
      );
      return Body === undefined ? '' : Body.transformToString('utf8');
    },
  };
}

type Place = {
  readonly bucket: string;
  readonly prefix: string;
  readonly endpoint: string | undefined;
  readonly region: string | undefined;
};

function parsePlace(place: string): Place {
  const url = URL.parse(place);
  if (url?.protocol !== 's3:' || url.hostname === '' || url.username !== '')
    throw new InputError('a place in S3 is written s3://bucket/prefix');
  const path = decodeURIComponent(url.pathname).replace(/^\/+|\/+$/g, '');
  return {
    bucket: url.hostname,
    prefix: path === '' ? '' : `${path}/`,
    endpoint: url.searchParams.get('endpoint') ?? undefined,
    region: url.searchParams.get('region') ?? undefined,
  };
}

async function openClient(
  endpoint: string | undefined,
  region: string | undefined,
): Promise<{ readonly s3: typeof S3; readonly client: S3Client }> {
  const s3 = await import('@aws-sdk/client-s3');
  const { AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_REGION, AWS_DEFAULT_REGION } = process.env;
  const custom = endpoint ?? AWS_ENDPOINT_URL_S3 ?? AWS_ENDPOINT_URL;
  const client = new s3.S3Client({
    region: region ?? AWS_REGION ?? AWS_DEFAULT_REGION ?? DEFAULT_REGION,
    ...(custom === undefined ? {} : { endpoint: custom, forcePathStyle: true }),
    // Stores of other makers refuse the trailers that newer clients add.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });
  return { s3, client };
}
