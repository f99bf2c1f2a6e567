// What `scrub: body` means for the two heads: answers are asked for whole and without a coding, and one that is neither
// is refused, since secrets in it could not be found. Pure.
import { type NameTest, compileNames } from '../../http1/field-name.ts';
import type { RequestHead, ResponseHead } from '../../http1/head-parser.ts';
import type { Mask } from './mask.ts';
import { MAX_SEARCHED_BYTES } from './needle-set.ts';
import { type Refusal, refuse } from '../refusal.ts';

/**
 * Whoever may ask for ranges reads a secret in halves, and whoever may ask for codings reads it in another form. The
 * last ones do so within a body that has no coding itself (RFC 3229, gRPC, Connect).
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

/** Marks in `drop` what would ask for a part of the answer, or for one in another coding. */
export function markAsking({ fields, bytes }: RequestHead, drop: Uint8Array): void {
  for (let i = 0; i < fields.count; i += 1) {
    if (isAsking(bytes, fields.nameStart(i), fields.nameEnd(i))) drop[i] = 1;
  }
}

/** Without a figure: who reads it may not learn how long the values are. */
const TOO_MANY_VALUES =
  '`scrub: body` is set for this host, and its rules have too many values for it, or too long ones';

/** Before a request for an answer that could not be searched leaves. */
export function refuseUnprepared({ bytes }: Mask): Refusal | undefined {
  if (bytes <= MAX_SEARCHED_BYTES) return undefined;
  return refuse('scrub_impossible', 'too_many_values', TOO_MANY_VALUES);
}

/** For an answer that has a body. */
export function refuseUnsearchable(head: ResponseHead): Refusal | undefined {
  // 226 is made of what the client is thought to have (RFC 3229).
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
