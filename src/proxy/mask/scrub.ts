// What `scrub: body` means for the two heads: the request must not ask for a partial or encoded response, and a response
// that is partial or encoded is refused, because secrets in it could not be found. Pure.
import type { Drop } from '../../http1/connection-fields.ts';
import { type NameTest, compileNames } from '../../http1/field-name.ts';
import type { RequestHead, ResponseHead } from '../../http1/head-parser.ts';
import type { Mask } from './mask.ts';
import { MAX_SEARCHED_BYTES } from './needle-set.ts';
import { type Refusal, refuse } from '../refusal.ts';

/**
 * A client that may ask for ranges can read a secret in halves, and one that may ask for codings can read it encoded. The
 * last three request encodings inside a body without a Content-Encoding (RFC 3229, gRPC, Connect).
 */
const isAsking: NameTest = compileNames([
  'range',
  'if-range',
  'accept-encoding',
  'a-im',
  'grpc-accept-encoding',
  'connect-accept-encoding',
]);
const isCoding: NameTest = compileNames(['content-encoding', 'grpc-encoding', 'connect-content-encoding']);

/** Marks in `drop` the fields that ask for a partial or encoded response. */
export function markAsking({ fields, bytes }: RequestHead, drop: Drop): void {
  for (let i = 0; i < fields.count; i += 1) {
    if (isAsking(bytes, fields.nameStart(i), fields.nameEnd(i))) drop[i] = 1;
  }
}

/** Without a number: the client must not learn the length of the values. */
const TOO_MANY_VALUES =
  '`scrub: body` is set for this host, and its rules have too many values for it, or too long ones';

/** Before the request is sent. */
export function refuseUnprepared({ bytes }: Mask): Refusal | undefined {
  if (bytes <= MAX_SEARCHED_BYTES) return undefined;
  return refuse('scrub_impossible', 'too_many_values', TOO_MANY_VALUES);
}

/** For a response with a body. */
export function refuseUnsearchable(head: ResponseHead): Refusal | undefined {
  // A 226 depends on content that the client already has (RFC 3229).
  if (head.status === 206 || head.status === 226) return refuse('scrub_impossible', 'partial');
  const { bytes, fields } = head;
  for (let i = 0; i < fields.count; i += 1) {
    if (!isCoding(bytes, fields.nameStart(i), fields.nameEnd(i))) continue;
    const codings = bytes.toString('latin1', fields.valueStart(i), fields.valueEnd(i)).split(',');
    if (codings.some((coding) => !/^[ \t]*(?:identity)?[ \t]*$/i.test(coding)))
      return refuse('scrub_impossible', 'encoded');
  }
  return undefined;
}
