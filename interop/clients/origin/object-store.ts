// As much of S3 as its clients need to list, write and read a few small objects. Signatures are not checked: the credential of
// the rule is another header.
import { createHash } from 'node:crypto';
import { type OriginRequest, type OriginResponse, readBody, send, writeHead } from './origin-response.ts';

const XML = { 'content-type': 'application/xml' };
const MODIFIED = 'Wed, 01 Jan 2025 00:00:00 GMT';

export function createObjectStore() {
  const objects = new Map<string, Buffer>();
  return async (request: OriginRequest, response: OriginResponse): Promise<void> => {
    const { pathname } = new URL(request.url ?? '/', 'https://s3.test');
    const body = await readBody(request);
    if (request.method === 'PUT') {
      objects.set(pathname, contentOf(request, body));
      return send(response, 200, '', { etag: etagOf(body) });
    }
    if (pathname === '/') return send(response, 200, BUCKETS, XML);
    if (/^\/bucket\/?$/.test(pathname)) return send(response, 200, listOf(objects), XML);
    const object = objects.get(pathname);
    if (object === undefined) return send(response, 404, '<Error><Code>NoSuchKey</Code></Error>', XML);
    const headers = { etag: etagOf(object), 'last-modified': MODIFIED };
    if (request.method !== 'HEAD') return send(response, 200, object, headers);
    writeHead(response, 200, { ...headers, 'content-length': String(object.length) });
    response.end();
  };
}

const etagOf = (bytes: Buffer): string => `"${createHash('md5').update(bytes).digest('hex')}"`;

const BUCKETS =
  '<?xml version="1.0"?><ListAllMyBucketsResult><Owner><ID>1</ID></Owner><Buckets><Bucket><Name>bucket</Name><CreationDate>2025-01-01T00:00:00.000Z</CreationDate></Bucket></Buckets></ListAllMyBucketsResult>';

function listOf(objects: ReadonlyMap<string, Buffer>): string {
  const contents = [...objects].map(
    ([path, bytes]) =>
      `<Contents><Key>${path.replace('/bucket/', '')}</Key><LastModified>2025-01-01T00:00:00.000Z</LastModified><ETag>${etagOf(bytes)}</ETag><Size>${bytes.length}</Size></Contents>`,
  );
  return `<?xml version="1.0"?><ListBucketResult><Name>bucket</Name><KeyCount>${contents.length}</KeyCount><IsTruncated>false</IsTruncated>${contents.join('')}</ListBucketResult>`;
}

/** Without the chunks in which SDKs sign a body: `SIZE[;signature]\r\nBYTES\r\n ... 0\r\ntrailers`. */
function contentOf(request: OriginRequest, body: Buffer): Buffer {
  if (!String(request.headers['content-encoding'] ?? '').includes('aws-chunked')) return body;
  const pieces: Buffer[] = [];
  let at = 0;
  while (at < body.length) {
    const end = body.indexOf('\r\n', at);
    const size = Number.parseInt(body.toString('latin1', at, end), 16);
    if (end === -1 || !(size > 0)) break;
    pieces.push(body.subarray(end + 2, end + 2 + size));
    at = end + 2 + size + 2;
  }
  return Buffer.concat(pieces);
}
