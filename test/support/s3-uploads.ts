// Uploads in parts, as far as the S3 server of tests needs them: begun, filled, listed, completed and aborted.
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';

type Upload = {
  readonly key: string;
  readonly metadata: Record<string, string>;
  readonly parts: Map<number, Buffer>;
};

/** The object of a completed upload. */
type Keep = (content: Buffer, metadata: Record<string, string>) => void;

export function metadataOf({ headers }: IncomingMessage): Record<string, string> {
  const own = Object.entries(headers).filter(([name]) => name.startsWith('x-amz-meta-'));
  return Object.fromEntries(own) as Record<string, string>;
}

export class S3Uploads {
  readonly #open = new Map<string, Upload>();

  /** Keys as `/bucket/key`. */
  get keys(): readonly string[] {
    return [...this.#open.values()].map(({ key }) => key);
  }

  /** False for a request that is about no upload. */
  async serve(
    request: IncomingMessage,
    response: ServerResponse,
    { url, key, keep }: { readonly url: URL; readonly key: string; readonly keep: Keep },
  ): Promise<boolean> {
    const query = url.searchParams;
    const id = query.get('uploadId') ?? '';
    const send = (xml: string): true => {
      response.setHeader('content-type', 'application/xml');
      response.end(`<?xml version="1.0"?>${xml}`);
      return true;
    };
    if (request.method === 'POST' && query.has('uploads')) {
      const created = randomUUID();
      this.#open.set(created, { key, metadata: metadataOf(request), parts: new Map() });
      return send(
        `<InitiateMultipartUploadResult><UploadId>${created}</UploadId></InitiateMultipartUploadResult>`,
      );
    }
    if (request.method === 'GET' && query.has('uploads'))
      return send(this.#list(key, query.get('prefix') ?? ''));
    if (id === '') return false;
    const upload = this.#open.get(id);
    const body = await buffer(request);
    if (upload === undefined) {
      response.writeHead(404, { 'content-type': 'application/xml' });
      response.end('<Error><Code>NoSuchUpload</Code><Message>internal</Message></Error>');
      return true;
    }
    if (request.method === 'PUT') {
      upload.parts.set(Number(query.get('partNumber')), body);
      response.writeHead(200, { etag: `"${query.get('partNumber')}"` }).end();
      return true;
    }
    this.#open.delete(id);
    if (request.method === 'DELETE') {
      response.writeHead(204).end();
      return true;
    }
    const parts = [...upload.parts].toSorted(([a], [b]) => a - b).map(([, part]) => part);
    keep(Buffer.concat(parts), upload.metadata);
    return send(
      `<CompleteMultipartUploadResult><Key>${key}</Key><ETag>"whole"</ETag></CompleteMultipartUploadResult>`,
    );
  }

  #list(bucket: string, prefix: string): string {
    const start = `${bucket.replace(/\/?$/, '/')}${prefix}`;
    const uploads = [...this.#open].filter(([, { key }]) => key.startsWith(start));
    const listed = uploads.map(([id, { key }]) => {
      const name = key.split('/').slice(2).join('/');
      return `<Upload><Key>${name}</Key><UploadId>${id}</UploadId></Upload>`;
    });
    return `<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>${listed.join('')}</ListMultipartUploadsResult>`;
  }
}
