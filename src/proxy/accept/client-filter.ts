// What a client of a listener shows: its address, judged by allow_clients, and the token in Proxy-Authorization. Pure.
// Which sandbox a token stands for is asked in admission.ts.
import { Secret } from '../../base/secret.ts';
import { Field } from '../../http1/field-name.ts';
import { type RequestHead, fieldValue } from '../../http1/head-parser.ts';
import { type Cidr, cidrContains, parseAddress } from '../../policy/authority/address.ts';

/** `address` as the socket reports it; v4-mapped addresses are judged as v4. No ranges: any address. */
export function isClientAllowed(
  address: string | undefined,
  allowClients: readonly Cidr[] | undefined,
): boolean {
  if (!allowClients) return true;
  const parsed = address === undefined ? undefined : parseAddress(unmapped(address));
  return parsed !== undefined && allowClients.some((cidr) => cidrContains(cidr, parsed));
}

/** `unreadable`: something was shown, and it is no token, so it is nobody's. */
export type ShownToken = Secret | 'none' | 'unreadable';

/**
 * The token that the head carries: `Basic` with the token as password (or as user name with an empty password, as
 * `http://TOKEN@proxy` sends it), or `Bearer`. Exactly one field may speak.
 */
export function shownToken(head: RequestHead): ShownToken {
  let found: string | undefined;
  for (let i = 0; i < head.fields.count; i += 1) {
    if (head.fields.id(i) !== Field.proxyAuthorization) continue;
    if (found !== undefined) return 'unreadable';
    found = fieldValue(head, i);
  }
  if (found === undefined) return 'none';
  const token = tokenIn(found);
  return token === undefined || token === '' ? 'unreadable' : new Secret(token);
}

function tokenIn(value: string): string | undefined {
  const space = value.indexOf(' ');
  const scheme = value.slice(0, space === -1 ? value.length : space).toLowerCase();
  const rest = space === -1 ? '' : value.slice(space + 1).trim();
  if (scheme === 'bearer') return rest;
  if (scheme !== 'basic') return undefined;
  // Node's decoder passes over what is no base64 and stops at padding: of two credentials it would read one.
  if (!BASE64.test(rest)) return undefined;
  const decoded = Buffer.from(rest, 'base64').toString('utf8');
  const colon = decoded.indexOf(':');
  if (colon === -1) return undefined;
  const password = decoded.slice(colon + 1);
  return password === '' ? decoded.slice(0, colon) : password;
}

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

function unmapped(address: string): string {
  const zone = address.indexOf('%');
  const bare = zone === -1 ? address : address.slice(0, zone);
  return bare.startsWith('::ffff:') && bare.includes('.') ? bare.slice(7) : bare;
}
