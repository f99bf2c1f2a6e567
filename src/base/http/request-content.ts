// The content of a request as a stream: its body within limits on bytes and time, and without its content coding. It asks for
// no more than is consumed. What is wrong with the head is thrown before a byte of the body is asked for.
import { BodyError } from './body-error.ts';
import {
  type ContentCoding,
  type DecodedLimits,
  decodeContent,
  readContentCoding,
} from './content-coding.ts';
import type { BodyTimes, RequestBody } from './request-body.ts';
import type { RequestHead } from './request-head.ts';

export type ContentLimits = DecodedLimits &
  BodyTimes & {
    /** Codings that the client may use; none when empty. */
    readonly codings: readonly ContentCoding[];
    /** Of the body as it is sent; without a coding it is the content. */
    readonly maxSentBytes: number;
  };

export type CodedRequest = {
  readonly head: Pick<RequestHead, 'field' | 'hasBody' | 'contentLength'>;
  readonly body: Pick<RequestBody, 'stream'>;
};

/** Bytes of a body as it was sent, so far. */
export type SentCount = { bytes: number };

/** Throws a BodyError; the stream throws one too, or a RequestError. */
export function readContent(
  { head, body }: CodedRequest,
  limits: ContentLimits,
  sentSoFar: SentCount = { bytes: 0 },
): AsyncGenerator<Uint8Array, void, undefined> {
  const coding = readContentCoding(head, limits.codings);
  const maxSentBytes =
    coding === undefined ? Math.min(limits.maxSentBytes, limits.maxBytes) : limits.maxSentBytes;
  if (head.contentLength > maxSentBytes) throw tooLarge(maxSentBytes);
  const sent = limited(body.stream(limits), maxSentBytes, sentSoFar);
  return coding === undefined || !head.hasBody ? sent : decodeContent(sent, coding, limits);
}

async function* limited(
  pieces: AsyncIterable<Uint8Array>,
  maxBytes: number,
  sentSoFar: SentCount,
): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const piece of pieces) {
    sentSoFar.bytes += piece.length;
    if (sentSoFar.bytes > maxBytes) throw tooLarge(maxBytes);
    yield piece;
  }
}

function tooLarge(maxBytes: number): BodyError {
  return new BodyError('too_large', `The body is larger than ${maxBytes} bytes as it is sent`);
}
