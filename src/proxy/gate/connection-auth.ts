// NTLM and Negotiate authenticate a connection, not a request: whoever reuses it speaks as the one who logged in.
// Such connections are never shared. Pure.
import { lowerAt } from '../../http1/byte-class.ts';
import { Field } from '../../http1/field-name.ts';
import type { RequestHead, ResponseHead } from '../../http1/head-parser.ts';

/** True if the client's credentials, or the host's challenge, are of a scheme that binds to the connection. */
export function bindsConnection(head: RequestHead | ResponseHead): boolean {
  const { bytes, fields } = head;
  const name = 'method' in head ? Field.authorization : Field.wwwAuthenticate;
  for (let i = 0; i < fields.count; i += 1) {
    if (fields.id(i) !== name) continue;
    const start = fields.valueStart(i);
    // A text of each credential would cost more than all other checks: nearly none begins as both schemes do.
    if (lowerAt(bytes, start) !== LOWER_N) continue;
    if (isBinding(bytes.toString('latin1', start, Math.min(start + LONGEST, fields.valueEnd(i)))))
      return true;
  }
  return false;
}

/** The same of a credential: what is injected for one path would else speak for others. */
export function isBinding(credential: string): boolean {
  const scheme = credential.slice(0, LONGEST).toLowerCase();
  return schemes.some((one) => scheme.startsWith(one));
}

const schemes: readonly string[] = ['ntlm', 'negotiate'];
const LONGEST = 9;
const LOWER_N = 0x6e;
