// NTLM and Negotiate authenticate a connection, not a request: every later request on it has the rights of the client that
// logged in. Such connections are never shared. Pure.
import { lowerAt } from '../../http1/byte-class.ts';
import { Field } from '../../http1/field-name.ts';
import type { RequestHead, ResponseHead } from '../../http1/head-parser.ts';

/** True if the client's credentials, or the upstream's challenge, are of a scheme that authenticates the connection. */
export function bindsConnection(head: RequestHead | ResponseHead): boolean {
  const { bytes, fields } = head;
  const name = 'method' in head ? Field.authorization : Field.wwwAuthenticate;
  if (!fields.hasAny(1 << name)) return false;
  for (let i = 0; i < fields.count; i += 1) {
    if (fields.id(i) !== name) continue;
    const start = fields.valueStart(i);
    // A string for each credential would cost more than all other checks. Both schemes begin with N, and few others do.
    if (lowerAt(bytes, start) !== LOWER_N) continue;
    if (isBinding(bytes.toString('latin1', start, Math.min(start + LONGEST, fields.valueEnd(i)))))
      return true;
  }
  return false;
}

/** True if an injected credential is of such a scheme: it would otherwise authenticate requests to other paths too. */
export function isBinding(credential: string): boolean {
  const scheme = credential.slice(0, LONGEST).toLowerCase();
  return schemes.some((one) => scheme.startsWith(one));
}

const schemes: readonly string[] = ['ntlm', 'negotiate'];
const LONGEST = 9;
const LOWER_N = 0x6e;
