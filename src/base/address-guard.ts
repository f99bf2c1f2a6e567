// Which resolved addresses may be connected to. Pure: it sees addresses, never sockets. Every address of a lookup is checked and
// the connection goes to a checked address, so that DNS rebinding between check and use gains nothing.
import {
  type Address,
  type Cidr,
  cidrContains,
  classifyAddress,
  embeddedV4,
  isBroadcast,
  isUsableReserved,
  parseAddress,
} from './address.ts';

export type AddressRules = {
  readonly allowAllPrivate: boolean;
  readonly allowLoopback: boolean;
  readonly allowCidrs: readonly Cidr[];
  /** True for an address and port on which this process listens. */
  isOwnListener(address: Address, port: number): boolean;
};

export type AddressUse = {
  readonly port: number;
  /** The peer may be private, because it will prove its name before anything is sent. */
  readonly mayBePrivate: boolean;
  /** A tenant's list of what is denied, checked for every address. */
  readonly denies: (address: Address) => boolean;
};

export type AddressDenial = {
  /** `address_private` can be allowed by a setting, `address_denied` cannot; `access_denied` is the tenant's list. */
  readonly code: 'address_denied' | 'address_private' | 'access_denied';
  /** For records and logs. */
  readonly cause: string;
};

/** Why an address may not be connected to; undefined if it may. */
export function denyAddress(text: string, use: AddressUse, rules: AddressRules): AddressDenial | undefined {
  const address = parseAddress(text);
  if (!address) return deny('address_denied', 'unreadable address');
  if (rules.isOwnListener(address, use.port)) return deny('address_denied', 'own listener');
  if (use.denies(address)) return deny('access_denied', 'deny_list address');
  const found = classifyAddress(address);
  switch (found) {
    case 'public':
      return undefined;
    case 'loopback':
      return rules.allowLoopback || isListed(address, rules) ? undefined : deny('address_private', found);
    case 'private':
    case 'cgnat':
      if (use.mayBePrivate) return undefined;
      return isListed(address, rules) ? undefined : deny('address_private', found);
    case 'embedded_v4':
      if (leadsToReserved(address)) return deny('address_denied', 'reserved');
      return isListed(address, rules) ? undefined : deny('address_private', found);
    case 'reserved':
      return isNamed(address, rules) ? undefined : deny('address_denied', found);
    default:
      return deny('address_denied', found);
  }
}

function deny(code: AddressDenial['code'], cause: string): AddressDenial {
  return { code, cause };
}

function isListed(address: Address, rules: AddressRules): boolean {
  return rules.allowAllPrivate || rules.allowCidrs.some((cidr) => cidrContains(cidr, address));
}

/** Reserved ranges must be listed by themselves: `all` and `0.0.0.0/0` do not mean them. */
function isNamed(address: Address, rules: AddressRules): boolean {
  if (isBroadcast(address)) return false;
  return rules.allowCidrs.some((cidr) => isUsableReserved(cidr) && cidrContains(cidr, address));
}

/** A reading as an unspecified address is mostly padding. */
function leadsToReserved(address: Address): boolean {
  return embeddedV4(address)
    .map(classifyAddress)
    .every((name) => name === 'reserved' || name === 'unspecified');
}

/** RFC 6761 §6.3: these names are loopback, whatever a lookup returns. */
export function isLocalhostName(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost');
}
