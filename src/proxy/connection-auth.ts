// NTLM and Negotiate authenticate a connection, not a request: whoever reuses it speaks as the one who logged in.
// Such connections are never shared. Pure.
import { isFieldNamed } from '../http1/field-name.ts';
import type { RequestHead, ResponseHead } from '../http1/head-parser.ts';
import type { Injection } from './inject.ts';

/** True if the client's credentials, or the host's challenge, are of a scheme that binds to the connection. */
export function bindsConnection(head: RequestHead | ResponseHead): boolean {
  const { bytes, fields } = head;
  const name = 'method' in head ? 'authorization' : 'www-authenticate';
  for (let i = 0; i < fields.count; i += 1) {
    if (!isFieldNamed(bytes, fields.nameStart(i), fields.nameEnd(i), name)) continue;
    const start = fields.valueStart(i);
    const scheme = bytes
      .toString('latin1', start, Math.min(start + LONGEST, fields.valueEnd(i)))
      .toLowerCase();
    if (isBinding(scheme)) return true;
  }
  return false;
}

/** The same of what is injected: else a path that no rule covers would be asked for in the name of one that is covered. */
export function injectsBinding(injection: Injection | undefined): boolean {
  const at = injection?.listed.indexOf('authorization') ?? -1;
  return at !== -1 && isBinding((injection?.list[2 * at + 1] ?? '').slice(0, LONGEST).toLowerCase());
}

function isBinding(scheme: string): boolean {
  return schemes.some((one) => scheme.startsWith(one));
}

const schemes: readonly string[] = ['ntlm', 'negotiate'];
const LONGEST = 9;
