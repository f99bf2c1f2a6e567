// Enough of S3 for a client: objects in memory that are put, at once or in parts, read, listed one on a page, and deleted.
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { metadataOf, S3Uploads } from './s3-uploads.ts';

export type S3Server = AsyncDisposable & {
  readonly server: Server;
  readonly endpoint: string;
  /** Every request, in order. */
  readonly seen: readonly IncomingMessage[];
  /** By `/bucket/key`. */
  readonly objects: ReadonlyMap<string, Buffer>;
  /** That have begun and not ended. */
  readonly uploads: S3Uploads;
};

/** A client needs any credentials. */
export const s3Credentials = { AWS_ACCESS_KEY_ID: 'AKIAEXAMPLE', AWS_SECRET_ACCESS_KEY: 'not-a-secret' };

/** In place of what the server does. */
export type S3Response = { readonly status: number; readonly type?: string; readonly body: string };

export type S3ServerOptions = {
  /** Undefined: the request is served. */
  override?(request: IncomingMessage): S3Response | undefined;
};

/** An error as S3 services send it. */
export function s3Error(status: number, code: string): S3Response {
  return {
    status,
    type: 'application/xml',
    body: `<Error><Code>${code}</Code><Message>internal</Message></Error>`,
  };
}

export async function openS3Server({ override }: S3ServerOptions = {}): Promise<S3Server> {
  const objects = new Map<string, Buffer>();
  const uploads = new S3Uploads();
  /** The field `x-amz-meta-…` of each object. */
  const metadata = new Map<string, Record<string, string>>();
  const seen: IncomingMessage[] = [];
  const server = createServer(async (request, response) => {
    seen.push(request);
    const given = override?.(request);
    if (given !== undefined) {
      request.resume();
      response.writeHead(given.status, { 'content-type': given.type ?? 'text/html' });
      return void response.end(given.body);
    }
    const url = new URL(request.url ?? '', 'http://s3');
    const key = decodeURIComponent(url.pathname);
    const keep = (content: Buffer, fields: Record<string, string>): void => {
      objects.set(key, content);
      metadata.set(key, fields);
    };
    if (await uploads.serve(request, response, { url, key, keep })) return;
    if (request.method === 'PUT') {
      const body = await buffer(request);
      if (objects.has(key) && request.headers['if-none-match'] === '*')
        return void response.writeHead(412).end();
      keep(body, metadataOf(request));
      response.setHeader('etag', '"content"');
      return void response.end();
    }
    if (request.method === 'DELETE') {
      objects.delete(key);
      return void response.writeHead(204).end();
    }
    if (url.searchParams.get('list-type') === '2') {
      response.setHeader('content-type', 'application/xml');
      return void response.end(listing([...objects.keys()], key, url.searchParams));
    }
    const body = objects.get(key);
    if (body === undefined) {
      response.writeHead(404, { 'content-type': 'application/xml' });
      return void response.end('<Error><Code>NoSuchKey</Code><Message>no such key</Message></Error>');
    }
    response.writeHead(200, { ...metadata.get(key), 'content-length': body.length });
    response.end(request.method === 'HEAD' ? undefined : body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ...{ server, seen, objects, uploads },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => void server.close(resolve));
    },
  };
}

/** One object a page, so that the client must join the pages. */
function listing(all: readonly string[], bucket: string, query: URLSearchParams): string {
  const prefix = `${bucket.replace(/\/?$/, '/')}${query.get('prefix') ?? ''}`;
  const keys = all.filter((name) => name.startsWith(prefix)).toSorted();
  const at = Number(query.get('continuation-token') ?? 0);
  const more = at + 1 < keys.length;
  const next = more ? `<NextContinuationToken>${at + 1}</NextContinuationToken>` : '';
  const name = keys[at]?.split('/').slice(2).join('/');
  const modified = '<LastModified>2026-01-01T00:00:00.000Z</LastModified>';
  const contents = name === undefined ? '' : `<Contents><Key>${name}</Key>${modified}</Contents>`;
  return `<?xml version="1.0"?><ListBucketResult><IsTruncated>${more}</IsTruncated>${next}${contents}</ListBucketResult>`;
}
