// Which addresses and ports the proxy may dial, and where a credential may be sent in plaintext.
import {
  type Address,
  type Cidr,
  cidrContains,
  classifyAddress,
  parseAddress,
  parseCidr,
} from '../../base/address.ts';
import { type AddressRules, denyAddress, isLocalhostName } from '../../base/address-guard.ts';
import { type Authority, parseAuthority, parsePort } from '../../policy/authority/authority.ts';
import { type Refusal, refuse } from '../refusal.ts';

export type EgressRules = AddressRules & {
  /** `tls`: an exact-name rule host may be private if it proves its name by certificate. */
  readonly privateByRule: 'tls' | 'never';
  /** Ports of hosts that no rule or callback names. */
  readonly ports: ReadonlySet<number>;
  readonly injectCleartext: readonly CleartextDestination[];
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
  const { authority, isProvenRuleHost, denies } = purpose;
  const mayBePrivate = egress.privateByRule === 'tls' && isProvenRuleHost;
  const denial = denyAddress(text, { port: authority.port, mayBePrivate, denies }, egress);
  return denial && refuse(denial.code, denial.cause);
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
