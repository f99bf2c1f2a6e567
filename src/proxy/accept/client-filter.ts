// Checks the address of a client against allow_clients, and reads the token in Proxy-Authorization. Pure. admission.ts
// finds the sandbox of a token.
import { Secret } from '../../base/secret.ts';
import { Field } from '../../http1/field-name.ts';
import { type RequestHead, fieldValue } from '../../http1/head-parser.ts';
import { type Cidr, cidrContains, parseAddress } from '../../base/address.ts';

/** `address` is what the socket reports; an IPv4-mapped one is checked as IPv4. Without ranges, any address is allowed. */
export function isClientAllowed(
  address: string | undefined,
  allowClients: readonly Cidr[] | undefined,
): boolean {
  if (!allowClients) return true;
  const parsed = address === undefined ? undefined : parseAddress(unmapped(address));
  return parsed !== undefined && allowClients.some((cidr) => cidrContains(cidr, parsed));
}

/** `malformed`: the credentials in Proxy-Authorization cannot be a token. The client is rejected as with an unknown one. */
export type PresentedToken = Secret | 'none' | 'malformed';

/**
 * The token in the head: `Basic` with the token as password (or as user name with an empty password, as
 * `http://TOKEN@proxy` sends it), or `Bearer`. More than one field is malformed.
 */
export function presentedToken(head: RequestHead): PresentedToken {
  let found: string | undefined;
  for (let i = 0; i < head.fields.count; i += 1) {
    if (head.fields.id(i) !== Field.proxyAuthorization) continue;
    if (found !== undefined) return 'malformed';
    found = fieldValue(head, i);
  }
  if (found === undefined) return 'none';
  const token = tokenIn(found);
  return token === undefined || token === '' ? 'malformed' : new Secret(token);
}

function tokenIn(value: string): string | undefined {
  const space = value.indexOf(' ');
  const scheme = value.slice(0, space === -1 ? value.length : space).toLowerCase();
  const rest = space === -1 ? '' : value.slice(space + 1).trim();
  if (scheme === 'bearer') return rest;
  if (scheme !== 'basic') return undefined;
  // Node's decoder ignores bytes that are not base64 and stops at padding, so it would read only the first of two tokens.
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
