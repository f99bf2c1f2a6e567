// Distinguishes `100-continue`, the only expectation that can be met, from all others (RFC 9110 §10.1.1).
import { type HeadError, headErrors } from './head-error.ts';
import { Field, isFieldNamed } from './field-name.ts';
import { countField, findField, type RequestHead } from './head-parser.ts';

/** True if the client waits for 100 (Continue). Ignored on HTTP/1.0; repeated or other expectations: 417. */
export function expectsContinue(head: RequestHead): boolean | HeadError {
  const i = findField(head, Field.expect);
  if (i === -1) return false;
  const { bytes, fields, minor } = head;
  const isContinue = isFieldNamed(bytes, fields.valueStart(i), fields.valueEnd(i), '100-continue');
  // `Expect: 100-continue` twice, or beside another one: hops differ on which of them responds (Expect desync).
  if (!isContinue || countField(head, Field.expect) > 1) return headErrors.expectationUnknown;
  return minor === 1;
}
