// The only file that uses the S3 client, which is loaded with the first request: objects of one bucket below one prefix,
// created once and never changed. Credentials, region and endpoint come from the usual AWS variables and files.
import { InputError } from '../../base/input-error.ts';

export type Bucket = {
  /** Rejects when the object exists. Names are relative to the prefix. */
  create(name: string, body: string): Promise<void>;
  /** In the order of their names. */
  list(): AsyncIterable<string>;
  read(name: string): Promise<string>;
};

const DEFAULT_REGION = 'us-east-1';

/** Of one request with its retries: the client itself has no time limit. */
const REQUEST_TIMEOUT_MS = 10_000;

/** `s3://bucket/prefix`; `?endpoint=` and `?region=` may follow, for stores of other providers. */
export function openBucket(url: string, timeoutMs: number = REQUEST_TIMEOUT_MS): Bucket {
  const { bucket, prefix, endpoint, region } = parseLocation(url);
  let opened: ReturnType<typeof openClient> | undefined;
  const use = (): NonNullable<typeof opened> => (opened ??= openClient(endpoint, region));
  const limit = () => ({ abortSignal: AbortSignal.timeout(timeoutMs) });
  return {
    async create(name, body) {
      const { s3, client } = await use();
      const object = { Bucket: bucket, Key: `${prefix}${name}`, Body: body, IfNoneMatch: '*' };
      await client.send(new s3.PutObjectCommand({ ...object, ContentType: 'application/jsonl' }), limit());
    },
    async *list() {
      const { s3, client } = await use();
      for (let next: string | undefined; ; ) {
        const from = next === undefined ? {} : { ContinuationToken: next };
        const page = await client.send(
          new s3.ListObjectsV2Command({ Bucket: bucket, Prefix: prefix, ...from }),
          limit(),
        );
        for (const { Key } of page.Contents ?? []) if (Key !== undefined) yield Key.slice(prefix.length);
        next = page.NextContinuationToken;
        if (page.IsTruncated !== true || next === undefined) return;
      }
    },
    async read(name) {
      const { s3, client } = await use();
      const object = new s3.GetObjectCommand({ Bucket: bucket, Key: `${prefix}${name}` });
      const { Body } = await client.send(object, limit());
      return Body === undefined ? '' : Body.transformToString('utf8');
    },
  };
}

function parseLocation(text: string) {
  const url = URL.parse(text);
  if (url?.protocol !== 's3:' || url.hostname === '' || url.username !== '')
    throw new InputError('a location in S3 must have the form s3://bucket/prefix');
  const path = decodeURIComponent(url.pathname).replace(/^\/+|\/+$/g, '');
  return {
    bucket: url.hostname,
    prefix: path === '' ? '' : `${path}/`,
    endpoint: url.searchParams.get('endpoint') ?? undefined,
    region: url.searchParams.get('region') ?? undefined,
  };
}

async function openClient(endpoint: string | undefined, region: string | undefined) {
  const s3 = await import('@aws-sdk/client-s3');
  const { AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_REGION, AWS_DEFAULT_REGION } = process.env;
  const custom = endpoint ?? AWS_ENDPOINT_URL_S3 ?? AWS_ENDPOINT_URL;
  const client = new s3.S3Client({
    region: region ?? AWS_REGION ?? AWS_DEFAULT_REGION ?? DEFAULT_REGION,
    ...(custom === undefined ? {} : { endpoint: custom, forcePathStyle: true }),
    // Stores of other providers reject the trailers that newer clients add.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });
  return { s3, client };
}
