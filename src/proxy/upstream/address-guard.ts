// Which resolved addresses and which ports may be dialled. Pure: it sees addresses, never sockets. Every address of a lookup
// is checked and the connection goes to a checked address, so that DNS rebinding between check and use gains nothing.
import {
  type Address,
  type Cidr,
  cidrContains,
  classifyAddress,
  embeddedV4,
  isBroadcast,
  isUsableReserved,
  parseAddress,
  parseCidr,
} from '../../policy/authority/address.ts';
import { type Authority, parseAuthority, parsePort } from '../../policy/authority/authority.ts';
import { type Refusal, refuse } from '../refusal.ts';

export type EgressRules = {
  readonly allowAllPrivate: boolean;
  readonly allowLoopback: boolean;
  readonly allowCidrs: readonly Cidr[];
  /** `tls`: an exact-name rule host may be private if it proves its name by certificate. */
  readonly privateByRule: 'tls' | 'never';
  /** Ports of hosts that no rule or callback names. */
  readonly ports: ReadonlySet<number>;
  readonly injectCleartext: readonly CleartextDestination[];
  /** True for an address and port on which this process listens. */
  isOwnListener(address: Address, port: number): boolean;
};

export type CleartextDestination = { readonly to: Cidr | string; readonly port: number };

/** `host:port` or `CIDR:port`; a v6 address or range in brackets. */
export function parseCleartextDestination(text: string): CleartextDestination | undefined {
  const [, bracketed, bare = '', written = ''] = /^(?:\[([^\]]*)\]|([^:[]*)):([^:]*)$/.exec(text) ?? [];
  const to = parseCidr(bracketed ?? bare);
  if (to === undefined) {
    const named = parseAuthority(text);
    return typeof named === 'string' ? undefined : { to: named.host, port: named.port };
  }
  const port = parsePort(written);
  const isPlain = (to.family === 6) === (bracketed !== undefined);
  return isPlain && typeof port === 'number' ? { to, port } : undefined;
}

export type DialPurpose = {
  readonly authority: Authority;
  /** An exact-name rule or callback host, over TLS that will be verified. */
  readonly isProvenRuleHost: boolean;
  /** The tenant's deny_list, checked for every address. */
  readonly denies: (address: Address) => boolean;
};

/** Why an address may not be dialled; undefined if it may. */
export function refuseAddress(text: string, purpose: DialPurpose, egress: EgressRules): Refusal | undefined {
  const address = parseAddress(text);
  if (!address) return refuse('address_denied', 'unreadable address');
  const { port } = purpose.authority;
  if (egress.isOwnListener(address, port)) return refuse('address_denied', 'own listener');
  if (purpose.denies(address)) return refuse('access_denied', 'deny_list address');
  const found = classifyAddress(address);
  switch (found) {
    case 'public':
      return undefined;
    case 'loopback':
      return egress.allowLoopback || isListed(address, egress) ? undefined : refuse('address_private', found);
    case 'private':
    case 'cgnat':
      if (egress.privateByRule === 'tls' && purpose.isProvenRuleHost) return undefined;
      return isListed(address, egress) ? undefined : refuse('address_private', found);
    case 'embedded_v4':
      if (leadsToReserved(address)) return refuse('address_denied', 'reserved');
      return isListed(address, egress) ? undefined : refuse('address_private', found);
    case 'reserved':
      return isNamed(address, egress) ? undefined : refuse('address_denied', found);
    default:
      return refuse('address_denied', found);
  }
}

function isListed(address: Address, egress: EgressRules): boolean {
  return egress.allowAllPrivate || egress.allowCidrs.some((cidr) => cidrContains(cidr, address));
}

/** Reserved ranges must be listed by themselves: `all` and `0.0.0.0/0` do not mean them. */
function isNamed(address: Address, egress: EgressRules): boolean {
  if (isBroadcast(address)) return false;
  return egress.allowCidrs.some((cidr) => isUsableReserved(cidr) && cidrContains(cidr, address));
}

/** A reading as an unspecified address is mostly padding. */
function leadsToReserved(address: Address): boolean {
  return embeddedV4(address)
    .map(classifyAddress)
    .every((name) => name === 'reserved' || name === 'unspecified');
}

/** Whether a port may be used on a host that no rule names, whatever the host resolves to. */
export function isPortOpen(port: number, isPortListed: boolean, egress: EgressRules): boolean {
  return isPortListed || egress.ports.has(port);
}

/**
 * Whether a credential may be sent to this authority over http://: a destination that the operator listed, or, where
 * loopback is allowed, a host that is loopback by its spelling. A name that only resolves to loopback proves nothing: its
 * DNS server would choose where the credential goes.
 */
export function mayInjectCleartext(authority: Authority, egress: EgressRules): boolean {
  const { host, kind, port } = authority;
  const address = kind === 'name' ? undefined : parseAddress(host);
  const isLoopback = address ? classifyAddress(address) === 'loopback' : isLocalhostName(host);
  if (isLoopback && egress.allowLoopback) return true;
  return egress.injectCleartext.some((listed) => {
    if (listed.port !== port) return false;
    if (typeof listed.to === 'string') return listed.to === host;
    return address !== undefined && cidrContains(listed.to, address);
  });
}

/** RFC 6761 §6.3: these names are loopback, whatever a lookup returns. */
export function isLocalhostName(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost');
}
