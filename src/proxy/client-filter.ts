// Who may use a listener: by address (allow_clients) and by token (Proxy-Authorization). Pure.
import type { Secret } from '../base/secret.ts';
import { type RequestHead, fieldValue } from '../http1/head-parser.ts';
import { Field } from '../http1/field-name.ts';
import { type Cidr, cidrContains, parseAddress } from '../policy/address.ts';

export type ClientFilter = {
  readonly token: Secret | undefined;
  /** Undefined: any address. */
  readonly allowClients: readonly Cidr[] | undefined;
};

/** `address` as the socket reports it; v4-mapped addresses are judged as v4. */
export function isClientAllowed(address: string | undefined, filter: ClientFilter): boolean {
  if (!filter.allowClients) return true;
  const parsed = address === undefined ? undefined : parseAddress(unmapped(address));
  return parsed !== undefined && filter.allowClients.some((cidr) => cidrContains(cidr, parsed));
}

/**
 * Whether the head carries the token: `Basic` with the token as password (or as user name with an empty
 * password, as `http://TOKEN@proxy` sends it), or `Bearer`. Exactly one field may speak.
 */
export function isAuthorized(head: RequestHead, filter: ClientFilter): boolean {
  if (!filter.token) return true;
  let found: string | undefined;
  for (let i = 0; i < head.fields.count; i += 1) {
    if (head.fields.id(i) !== Field.proxyAuthorization) continue;
    if (found !== undefined) return false;
    found = fieldValue(head, i);
  }
  return found !== undefined && carriesToken(found, filter.token);
}

function carriesToken(value: string, token: Secret): boolean {
  const space = value.indexOf(' ');
  const scheme = value.slice(0, space === -1 ? value.length : space).toLowerCase();
  const rest = space === -1 ? '' : value.slice(space + 1).trim();
  if (scheme === 'bearer') return token.equals(rest);
  if (scheme !== 'basic') return false;
  const decoded = Buffer.from(rest, 'base64').toString('utf8');
  const colon = decoded.indexOf(':');
  if (colon === -1) return false;
  const password = decoded.slice(colon + 1);
  return token.equals(password === '' ? decoded.slice(0, colon) : password);
}

function unmapped(address: string): string {
  const zone = address.indexOf('%');
  const bare = zone === -1 ? address : address.slice(0, zone);
  return bare.startsWith('::ffff:') && bare.includes('.') ? bare.slice(7) : bare;
}
