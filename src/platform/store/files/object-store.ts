// Objects of one bucket of S3 below one prefix, created once and not changed. Credentials, region and endpoint come from the usual
// AWS variables and files.
import type { Readable } from 'node:stream';
import { InputError } from '../../../base/input-error.ts';
import { openS3, type S3 } from './s3-client.ts';

export type Bucket = {
  /** Rejects when the object exists. Names are relative to the prefix. */
  create(name: string, body: string): Promise<void>;
  /** In the order of their names. */
  list(): AsyncIterable<string>;
  read(name: string): Promise<string>;
  /** Bytes of a known number, under a new name. */
  put(name: string, content: Readable, size: number): Promise<void>;
  /** Rejects where there is no such object. */
  open(name: string): Promise<Readable>;
  /** Also of an object that is gone. */
  remove(name: string): Promise<void>;
  /** `at`: when it was created. */
  entries(): AsyncIterable<{ readonly name: string; readonly at: Date }>;
};

/** Of one request with its retries: the client itself has no time limit. */
const REQUEST_TIMEOUT_MS = 10_000;

/** `s3://bucket/prefix`; `?endpoint=` and `?region=` may follow, for stores of other providers. */
export function openBucket(url: string, timeoutMs: number = REQUEST_TIMEOUT_MS): Bucket {
  const { bucket, prefix, endpoint, region } = parseLocation(url);
  let opened: Promise<S3> | undefined;
  const use = (): Promise<S3> => (opened ??= openClient(endpoint, region));
  const limit = () => ({ abortSignal: AbortSignal.timeout(timeoutMs) });
  const listEntries = async function* () {
    const { s3, client } = await use();
    for (let next: string | undefined; ; ) {
      const from = next === undefined ? {} : { ContinuationToken: next };
      const page = await client.send(
        new s3.ListObjectsV2Command({ Bucket: bucket, Prefix: prefix, ...from }),
        limit(),
      );
      for (const { Key, LastModified = new Date(0) } of page.Contents ?? [])
        if (Key !== undefined) yield { name: Key.slice(prefix.length), at: LastModified };
      next = page.NextContinuationToken;
      if (page.IsTruncated !== true || next === undefined) return;
    }
  };
  return {
    async create(name, body) {
      const { s3, client } = await use();
      const object = { Bucket: bucket, Key: `${prefix}${name}`, Body: body, IfNoneMatch: '*' };
      await client.send(new s3.PutObjectCommand({ ...object, ContentType: 'application/jsonl' }), limit());
    },
    async *list() {
      for await (const { name } of listEntries()) yield name;
    },
    entries: listEntries,
    async read(name) {
      const { s3, client } = await use();
      const object = new s3.GetObjectCommand({ Bucket: bucket, Key: `${prefix}${name}` });
      const { Body } = await client.send(object, limit());
      return Body === undefined ? '' : Body.transformToString('utf8');
    },
    async put(name, content, size) {
      const { s3, client } = await use();
      const object = { Bucket: bucket, Key: `${prefix}${name}`, Body: content, ContentLength: size };
      await client.send(
        new s3.PutObjectCommand({ ...object, ContentType: 'application/octet-stream' }),
        limit(),
      );
    },
    async open(name) {
      const { s3, client } = await use();
      const object = new s3.GetObjectCommand({ Bucket: bucket, Key: `${prefix}${name}` });
      const { Body } = await client.send(object, limit());
      if (Body === undefined) throw new Error('the object has no content');
      // With Node it is a stream of Node.
      return Body as Readable;
    },
    async remove(name) {
      const { s3, client } = await use();
      const object = { Bucket: bucket, Key: `${prefix}${name}` };
      await client.send(new s3.DeleteObjectCommand(object), limit());
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

function openClient(endpoint: string | undefined, region: string | undefined): Promise<S3> {
  const { AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL } = process.env;
  const custom = endpoint ?? AWS_ENDPOINT_URL_S3 ?? AWS_ENDPOINT_URL;
  return openS3({ region, endpoint: custom, isPathStyle: custom !== undefined });
}
