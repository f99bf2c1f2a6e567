// Bodies that a route consumes as a stream, in the phase before its transaction: files and multipart bodies, which may be
// larger than memory. What is wrong with the head is rejected before a byte of the body is asked for.
import { BodyError } from '../../../base/http/body-error.ts';
import type { Exchange } from '../../../base/http/http-server.ts';
import { type MultipartLimits, type Part, readMultipart } from '../../../base/http/multipart.ts';
import { readBoundary } from '../../../base/http/multipart-header.ts';
import type { z } from '../../../base/schema.ts';
import { type ContentLimits, readContent, type SentCount } from '../../../base/http/request-content.ts';

export type { Part };

export type Upload<Content = unknown> = {
  /** For the documentation. */
  readonly mediaTypes: readonly string[];
  /** Likewise; absent where what a part or a file holds is up to the route. */
  readonly schema?: z.ZodType;
  /** How much of it the route holds in memory at once; a mebibyte when absent. */
  readonly heldBytes?: number;
  /** Throws a BodyError; the content throws one too, or a RequestError. */
  open(request: Pick<Exchange, 'head' | 'body'>): Content;
};

/** How many bytes of its body were sent, so far, and how many its head announces: 0 where it does not. */
type Counted = { readonly sent: Readonly<SentCount> & { readonly announced: number } };

const MIB = 1024 * 1024;

const LIMITS: ContentLimits = {
  codings: ['gzip', 'zstd'],
  maxSentBytes: 20 * MIB,
  maxBytes: 200 * MIB,
  maxRatio: 100,
  idleMs: 30_000,
  totalMs: 600_000,
};

const PARTS: MultipartLimits = { parts: 10_000, headerBytes: 8 * 1024, nameChars: 1000 };

/** The bytes of a body of one of these types. */
export function byteUpload(
  mediaTypes: readonly string[],
  { heldBytes, schema, ...limits }: Partial<ContentLimits> & Pick<Upload, 'heldBytes' | 'schema'> = {},
): Upload<AsyncIterable<Uint8Array> & Counted> {
  return {
    mediaTypes,
    ...(schema === undefined ? {} : { schema }),
    ...(heldBytes === undefined ? {} : { heldBytes }),
    open(request) {
      const [type = ''] = (request.head.field('content-type') ?? '').split(';');
      if (!mediaTypes.includes(type.trim().toLowerCase()))
        throw new BodyError('content_type', `Send a body with Content-Type: ${mediaTypes.join(' or ')}`);
      const sent = { bytes: 0, announced: request.head.contentLength };
      return Object.assign(readContent(request, { ...LIMITS, ...limits }, sent), { sent });
    },
  };
}

/** The parts of a multipart/form-data body; a part that is not consumed is discarded. */
export function multipartUpload({
  heldBytes,
  ...limits
}: Partial<ContentLimits & MultipartLimits> & Pick<Upload, 'heldBytes'> = {}): Upload<
  AsyncIterable<Part> & Counted
> {
  const all = { ...LIMITS, ...PARTS, ...limits };
  return {
    mediaTypes: ['multipart/form-data'],
    ...(heldBytes === undefined ? {} : { heldBytes }),
    open(request) {
      const boundary = readBoundary(request.head.field('content-type'));
      const sent = { bytes: 0, announced: request.head.contentLength };
      return Object.assign(readMultipart(readContent(request, all, sent), boundary, all), { sent });
    },
  };
}
