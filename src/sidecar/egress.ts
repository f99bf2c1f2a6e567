// Which addresses may be dialled for the agent and for a callback, and which are the process's own listeners. The address
// guard decides with these rules.
import type { VetHost } from '../callback/resolver.ts';
import { type Address, classifyAddress, embeddedV4, parseAddress } from '../base/address.ts';
import { type EgressRules, refuseAddress } from '../proxy/upstream/address-guard.ts';
import type { Resolver } from '../proxy/upstream/resolver.ts';
import type { Config } from './config.ts';
import { isLoopbackListen } from './listen-address.ts';
import { isLocalAddress } from './local-addresses.ts';

/** An address and a port on which this process listens. */
export type OwnListener = { readonly address: string; readonly port: number };

/** The open listeners: those of the proxy, and those of the admin API and the metrics if they are on ports. */
export class OwnListeners {
  readonly #proxies: Set<OwnListener> = new Set();
  /** Proxy listeners that other machines can reach. */
  #exposed = 0;
  admin: OwnListener | undefined;
  metrics: OwnListener | undefined;

  add(listener: OwnListener): void {
    this.#proxies.add(listener);
    if (!isLoopbackListen({ host: listener.address })) this.#exposed += 1;
  }

  delete(listener: OwnListener): void {
    if (this.#proxies.delete(listener) && !isLoopbackListen({ host: listener.address })) this.#exposed -= 1;
  }

  get isExposed(): boolean {
    return this.#exposed > 0;
  }

  isOwn(address: Address, port: number): boolean {
    const isAt = (one: OwnListener): boolean => one.port === port && listensOn(one.address, address);
    if (this.admin && isAt(this.admin)) return true;
    if (this.metrics && isAt(this.metrics)) return true;
    for (const one of this.#proxies) if (isAt(one)) return true;
    return false;
  }
}

/** What the operator allows to be dialled; `own` is consulted each time. */
export function egressRules(config: Config, own: OwnListeners): EgressRules {
  const { allowAllPrivate, allowLoopback, allowCidrs, privateByRule, ports } = config.egress;
  return {
    allowAllPrivate,
    // A client on the same loopback reaches it without the proxy, so rejecting it would protect nothing. The loopback of a
    // client in a network namespace of its own is another one.
    get allowLoopback() {
      if (allowLoopback !== undefined || config.hasNamespaces) return allowLoopback ?? false;
      return isLoopbackListen(config.listen) && !own.isExposed;
    },
    allowCidrs,
    privateByRule,
    ports: new Set(ports),
    injectCleartext: config.injectCleartext,
    isOwnListener: (address, port) => own.isOwn(address, port),
  };
}

/** Whether a listener bound to `bound` accepts connections to `address`, or to an IPv4 address embedded in it. */
function listensOn(bound: string, address: Address): boolean {
  return [address, ...embeddedV4(address)].some((spelling) => isBoundTo(bound, spelling));
}

/** The address itself or, for a wildcard, any address of this machine. */
function isBoundTo(bound: string, address: Address): boolean {
  const own = parseAddress(bound);
  if (own && classifyAddress(own) !== 'unspecified') return own.text === address.text;
  if (classifyAddress(address) === 'loopback') return true;
  return isLocalAddress(address);
}

/** Resolves and checks a callback's host: the addresses that may be dialled, or why none may. */
export function callbackGuard(config: Config, resolver: Resolver, egress: EgressRules): VetHost {
  return async (host, port) => {
    const family = parseAddress(host)?.family;
    const found = family ? [{ address: host, family }] : await resolver.resolve(host);
    if (typeof found === 'string') return { refused: found };
    for (const { address } of found) {
      const refused = refuseCallbackAddress(address, port, config, egress);
      if (refused !== undefined) return { refused };
    }
    return { addresses: found, onFailed: (address) => resolver.forget(host, address) };
  };
}

/** A callback may be a private service of the operator, but never a metadata service, link-local or our own listener. */
function refuseCallbackAddress(
  text: string,
  port: number,
  config: Config,
  egress: EgressRules,
): string | undefined {
  const address = parseAddress(text);
  if (!address) return 'unreadable address';
  if (config.callback.allowPrivate) {
    if (egress.isOwnListener(address, port)) return 'own listener';
    const found = classifyAddress(address);
    if (found === 'loopback' || found === 'private' || found === 'cgnat') return undefined;
  }
  const authority = {
    host: text,
    port,
    kind: address.family === 4 ? 'ipv4' : 'ipv6',
    text: `${text}:${port}`,
  } as const;
  const strict = config.callback.allowPrivate
    ? egress
    : { ...egress, allowLoopback: false, allowAllPrivate: false };
  return refuseAddress(text, { authority, isProvenRuleHost: false, denies: () => false }, strict)?.cause;
}
