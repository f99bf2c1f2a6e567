// Opens a connection to a host: policy first, then the lookup, then every address judged, then a connection to a
// judged address, then (https) a handshake that proves the very name. It sends no byte of a request.
import type { X509Certificate } from 'node:crypto';
import { type LookupFunction, type Socket, connect as connectTcp } from 'node:net';
import { type ConnectionOptions, type TLSSocket, connect as connectTls } from 'node:tls';
import type { BoundedCache } from '../../base/bounded-cache.ts';
import { type Address, classifyAddress, parseAddress } from '../../policy/authority/address.ts';
import type { Authority } from '../../policy/authority/authority.ts';
import type { TrustSet } from '../../tls/trust.ts';
import { type EgressRules, isPortOpen, refuseAddress } from './address-guard.ts';
import type { Protocol } from './alpn.ts';
import type { Places } from './connection-quota.ts';
import { type Refusal, isRefusal, refuse } from '../refusal.ts';
import type { ResolvedAddress, Resolver } from './resolver.ts';

export type DialTarget = {
  readonly authority: Authority;
  /** `tunnel`: a blind TCP connection whose TLS, if any, is the client's own. */
  readonly scheme: 'http' | 'https' | 'tunnel';
  /** Offered in the handshake, in this order (https). */
  readonly alpn: readonly Protocol[];
  /** A rule or callback names the host; `exact` by its exact name. Such hosts may use any port. */
  readonly named: 'exact' | 'wildcard' | 'no';
  /** allow_list holds this very host:port. */
  readonly isPortListed: boolean;
  denies(address: Address): boolean;
};

export type Dialler = {
  /** Refuses on `signal` too; a connection that comes after is destroyed. */
  dial(target: DialTarget, signal: AbortSignal): Promise<Socket | Refusal>;
};

export function createDialler(options: {
  resolver: Resolver;
  egress: EgressRules;
  trust: TrustSet;
  /** TLS sessions by trust set and target: one that a set did not verify must not be resumed under it. */
  sessions: BoundedCache<Buffer>;
  connectMs: number;
  /** Of the process: a connection has one from its first packet until it is closed. */
  places: Places;
}): Dialler {
  const { resolver, egress, trust, sessions, connectMs, places } = options;

  async function vet(target: DialTarget): Promise<readonly ResolvedAddress[] | Refusal> {
    const { authority, named, isPortListed } = target;
    const isOpen = named !== 'no' || isPortOpen(authority.port, isPortListed, egress);
    // Policy before the lookup: a closed port on a strange host must not become a DNS query that carries data.
    if (!isOpen && !egress.allowLoopback) return refuse('port_denied');
    const found = await addressesOf(authority, resolver);
    if (isRefusal(found)) return found;
    const isProvenRuleHost = named === 'exact' && target.scheme === 'https';
    for (const { address } of found) {
      if (!isOpen && !isLoopback(address)) return refuse('port_denied');
      const refused = refuseAddress(address, { authority, isProvenRuleHost, denies: target.denies }, egress);
      if (refused) return refused;
    }
    return found;
  }

  return {
    async dial(target, signal) {
      const addresses = await vet(target);
      if (isRefusal(addresses)) return addresses;
      if (signal.aborted) return refuse('upstream_unreachable', 'aborted');
      if (places.areTaken) return refuse('too_many_connections', 'hosts');
      const socket =
        target.scheme === 'https' ? openTls(target, addresses) : openTcp(target.authority, addresses);
      places.take();
      socket.once('close', () => places.give(1));
      return settle(socket, target, signal);
    },
  };

  function openTls({ authority, alpn }: DialTarget, addresses: readonly ResolvedAddress[]): TLSSocket {
    const key = `${trust.id} ${authority.text}`;
    const session = sessions.get(key);
    const options: ConnectionOptions & { autoSelectFamily: boolean; allowHalfOpen: boolean } = {
      host: authority.host,
      port: authority.port,
      lookup: lookupReturning(addresses),
      autoSelectFamily: true,
      allowHalfOpen: true,
      // No name here means verification against "localhost" (node:tls); addresses prove themselves by IP SAN.
      ...(authority.kind === 'name' ? { servername: authority.host } : {}),
      secureContext: trust.context,
      ALPNProtocols: [...alpn],
      rejectUnauthorized: true,
      ...(session ? { session } : {}),
    };
    const socket = connectTls(options);
    const { generation } = sessions;
    // A ticket may follow the handshake of a peer that `proven` refuses, and would spare it the proof next time; or a
    // change of the rules, which ends all that was warmed under the old ones.
    socket.on('session', (ticket) => {
      if (!socket.destroyed && sessions.generation === generation) sessions.set(key, ticket);
    });
    return socket;
  }

  function settle(socket: Socket, target: DialTarget, signal: AbortSignal): Promise<Socket | Refusal> {
    const { promise, resolve } = Promise.withResolvers<Socket | Refusal>();
    const isTls = target.scheme === 'https';
    const readyEvent = isTls ? 'secureConnect' : 'connect';
    const finish = (result: Socket | Refusal): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      socket.off(readyEvent, onReady).off('error', onError).off('end', onEnd).off('close', onEnd);
      // An error that comes while nobody owns the socket, or before its owner listens, must not end the process.
      socket.on('error', ignoreLateError);
      if (result !== socket) socket.destroy();
      resolve(result);
    };
    const onReady = (): void => finish(isTls ? proven(socket as TLSSocket, target.authority, trust) : socket);
    const onError = (error: NodeJS.ErrnoException): void => finish(refusalOf(error, socket, target));
    const onEnd = (): void => finish(refuse('upstream_unreachable', 'ended before it was ready'));
    const onAbort = (): void => finish(refuse('upstream_unreachable', 'aborted'));
    const timer = setTimeout(() => finish(refuse('upstream_timeout', 'connect')), connectMs);
    signal.addEventListener('abort', onAbort);
    socket.on(readyEvent, onReady).on('error', onError).on('end', onEnd).on('close', onEnd);
    return promise;
  }
}

function ignoreLateError(): void {}

async function addressesOf(
  authority: Authority,
  resolver: Resolver,
): Promise<readonly ResolvedAddress[] | Refusal> {
  if (authority.kind === 'ipv4') return [{ address: authority.host, family: 4 }];
  if (authority.kind === 'ipv6') return [{ address: authority.host, family: 6 }];
  const found = await resolver.resolve(authority.host);
  return typeof found === 'string' ? refuse(found, 'dns') : found;
}

function isLoopback(text: string): boolean {
  const address = parseAddress(text);
  return address !== undefined && classifyAddress(address) === 'loopback';
}

/**
 * A lookup that knows only the judged addresses: nothing resolves the name a second time. It answers a turn later: the
 * system may refuse a connection at once, and within tls.connect that throws, and leaves an error that nobody hears.
 */
function lookupReturning(addresses: readonly ResolvedAddress[]): LookupFunction {
  return (_host, options, callback): void => {
    const [first] = addresses;
    if (options.all || !first) process.nextTick(callback, null, [...addresses]);
    else process.nextTick(callback, null, first.address, first.family);
  };
}

function openTcp(authority: Authority, addresses: readonly ResolvedAddress[]): Socket {
  return connectTcp({
    host: authority.host,
    port: authority.port,
    lookup: lookupReturning(addresses),
    autoSelectFamily: true,
    allowHalfOpen: true,
    noDelay: true,
  });
}

/**
 * The peer's certificate against the name once more: a missing host option would have verified "localhost". Costs
 * one parse per connection, not per request. A resumed handshake shows no certificate; node:tls hands out a session
 * only after its full handshake was verified, and it is kept under that very authority.
 */
function proven(socket: TLSSocket, authority: Authority, trust: TrustSet): Socket | Refusal {
  if (!socket.authorized) return refuse('upstream_untrusted', 'not authorized');
  if (!socket.isSessionReused()) {
    const peer = socket.getPeerX509Certificate();
    if (!peer || !provesName(peer, authority)) return refuse('upstream_untrusted', 'name');
    if (trust.showsOwnKey(peer)) return refuse('upstream_untrusted', 'own_authority');
  }
  socket.setNoDelay(true);
  return socket;
}

/** By its subjectAltName alone: node:tls would believe the common name of a certificate that has none (RFC 9525 §6.4.4). */
function provesName(peer: X509Certificate, { host, kind }: Authority): boolean {
  const proven =
    kind === 'name'
      ? peer.checkHost(host, { subject: 'never', partialWildcards: false })
      : peer.checkIP(host);
  return proven !== undefined;
}

/** The protocol that the host chose in its handshake; one that has no list of its own means HTTP/1.1. */
export function chosenProtocol(socket: Socket): Protocol {
  return 'alpnProtocol' in socket && socket.alpnProtocol === 'h2' ? 'h2' : 'http/1.1';
}

function refusalOf(error: NodeJS.ErrnoException, socket: Socket, { alpn }: DialTarget): Refusal {
  const code = error.code ?? error.name;
  if (code === 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL' && alpn.length === 1)
    return refuse(alpn[0] === 'h2' ? 'h2_unavailable' : 'alpn_changed', code);
  const isUntrusted = 'authorizationError' in socket && Boolean(socket.authorizationError);
  if (isUntrusted || code === 'ERR_TLS_CERT_ALTNAME_INVALID') return refuse('upstream_untrusted', code);
  return refuse(code === 'ETIMEDOUT' ? 'upstream_timeout' : 'upstream_unreachable', code);
}
