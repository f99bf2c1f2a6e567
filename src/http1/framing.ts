// Decides from the head alone how long the body of a message is (RFC 9112 §6.3). Whatever two hops could read differently
// is an error; no reading is preferred.
import { byteAt, decimalAt, HTAB } from './byte-class.ts';
import { type HeadError, headErrors, isHeadError } from './head-error.ts';
import { Field, idSet, isFieldNamed } from './field-name.ts';
import type { RequestHead, ResponseHead } from './head-parser.ts';

export type Framing =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly length: number }
  | { readonly kind: 'chunked' }
  | { readonly kind: 'until_close' };

type Claim = Framing | HeadError | undefined;

const none: Framing = Object.freeze({ kind: 'none' });
const chunked: Framing = Object.freeze({ kind: 'chunked' });
const untilClose: Framing = Object.freeze({ kind: 'until_close' });

const FRAMING = idSet([Field.contentLength, Field.transferEncoding]);
const ZERO = 0x30;
const MAX_LENGTH_DIGITS = 16;

/** A request's framing; without a framing field it has no body. A length of zero is `none`. */
export function requestFraming(head: RequestHead): Framing | HeadError {
  const claim = claimedFraming(head);
  if (claim === undefined || isHeadError(claim)) return claim ?? none;
  // RFC 9110 §9.3.6: bytes after CONNECT are the tunnel's; a body there is read by one hop only. A length of zero, which
  // some clients send, announces none.
  return head.method === 'CONNECT' && claim !== none ? unexpected(claim) : claim;
}

/**
 * A response's framing (RFC 9112 §6.3). HEAD and 304 may have any valid length; 204 and 101 may have zero; any other 1xx
 * must have no framing field. A length of zero is `none`.
 */
export function responseFraming(head: ResponseHead, requestMethod: string): Framing | HeadError {
  const claim = claimedFraming(head);
  if (claim !== undefined && isHeadError(claim)) return claim;
  const { status } = head;
  // RFC 9110 §8.6 forbids it, but many servers send it in their 101: a length of zero hides nothing.
  if (status === 101 && claim === none) return none;
  if (status < 200 || (status === 204 && claim !== none))
    return claim === undefined ? none : unexpected(claim);
  if (status === 204 || status === 304 || requestMethod === 'HEAD') return none;
  if (requestMethod === 'CONNECT' && status < 300) return none;
  return claim ?? untilClose;
}

function unexpected(claim: Framing): HeadError {
  return claim.kind === 'chunked'
    ? headErrors.transferEncodingUnexpected
    : headErrors.contentLengthUnexpected;
}

/** What Content-Length or Transfer-Encoding says; undefined without either. */
function claimedFraming(head: RequestHead | ResponseHead): Claim {
  const { fields } = head;
  if (!fields.hasAny(FRAMING)) return undefined;
  let length = -1;
  let encoding = -1;
  for (let i = 0; i < fields.count; i++) {
    const id = fields.id(i);
    if (id === Field.contentLength) {
      // Two equal lengths as well (RFC 9112 §6.3 would allow them): hops differ on which they remove.
      if (length !== -1) return headErrors.contentLengthRepeated;
      length = i;
    } else if (id === Field.transferEncoding) {
      if (encoding !== -1) return headErrors.transferEncodingRepeated;
      encoding = i;
    }
  }
  if (encoding === -1) return length === -1 ? undefined : lengthClaim(head, length);
  // CL.TE and TE.CL: the classic pair of request smuggling.
  if (length !== -1) return headErrors.lengthAndEncoding;
  return encodingClaim(head, encoding);
}

// HTAB is whitespace (RFC 9110 §5.6.3), but llhttp reads one after `chunked` as part of the coding and then reads until
// close, so only spaces are allowed around a framing value.
function isBesideTab(head: RequestHead | ResponseHead, i: number): boolean {
  const { bytes, fields } = head;
  for (let at = fields.nameEnd(i); at < fields.lineEnd(i); at++) {
    if (at === fields.valueStart(i)) at = fields.valueEnd(i);
    if (byteAt(bytes, at) === HTAB) return true;
  }
  return false;
}

function encodingClaim(head: RequestHead | ResponseHead, i: number): Claim {
  // RFC 9112 §6.1: HTTP/1.0 hops do not support chunked and would read the chunks as a body until close.
  if (head.minor === 0) return headErrors.transferEncodingUnexpected;
  const { bytes, fields } = head;
  // `xchunked`, `chunked,`, `,chunked`, `gzip, chunked`: one hop sees chunked where another does not.
  const isChunked = isFieldNamed(bytes, fields.valueStart(i), fields.valueEnd(i), 'chunked');
  return isChunked && !isBesideTab(head, i) ? chunked : headErrors.transferEncodingUnsupported;
}

/** `0` or a digit 1 to 9 and up to 15 more: no sign, list, base prefix or leading zero, at most 2^53 - 1. */
function lengthClaim(head: RequestHead | ResponseHead, i: number): Claim {
  const { bytes, fields } = head;
  const start = fields.valueStart(i);
  const end = fields.valueEnd(i);
  const length = decimalAt(bytes, start, end, MAX_LENGTH_DIGITS);
  const isMalformed =
    length === undefined ||
    length > Number.MAX_SAFE_INTEGER ||
    (end - start > 1 && byteAt(bytes, start) === ZERO) ||
    isBesideTab(head, i);
  if (isMalformed) return headErrors.contentLengthMalformed;
  return length === 0 ? none : { kind: 'length', length };
}
