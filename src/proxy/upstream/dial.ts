// Opens a connection to an upstream: port rules, lookup, a check of every address, a race of the checked addresses, and for
// https a handshake that proves the name. It sends no byte of a request.
import type { X509Certificate } from 'node:crypto';
import { type LookupFunction, type Socket, connect as connectTcp } from 'node:net';
import { type ConnectionOptions, type TLSSocket, connect as connectTls } from 'node:tls';
import type { BoundedCache } from '../../base/bounded-cache.ts';
import { ConnectRace } from '../../base/connect-race.ts';
import { type Address, classifyAddress, parseAddress } from '../../base/address.ts';
import type { Authority } from '../../policy/authority/authority.ts';
import type { TrustSet } from '../../tls/trust.ts';
import { type EgressRules, isPortOpen, refuseAddress } from './address-guard.ts';
import type { ProxyCounters } from '../counters.ts';
import type { Protocol } from './alpn.ts';
import { noteCertificateRequest, refuseWithoutCertificate } from './client-certificate.ts';
import type { ConnectionQuota } from './connection-quota.ts';
import { handshakeHint } from './handshake-hint.ts';
import { type Refusal, isRefusal, refuse } from '../refusal.ts';
import type { ResolvedAddress, Resolver } from './resolver.ts';

export type DialTarget = {
  readonly authority: Authority;
  /** `tunnel`: a blind TCP connection whose TLS, if any, is the client's own. */
  readonly scheme: 'http' | 'https' | 'tunnel';
  /** Offered in the handshake, in this order (https). */
  readonly alpn: readonly Protocol[];
  /** Whether a rule or callback names the host; `exact`: by its exact name. Such hosts may use any port. */
  readonly named: 'exact' | 'wildcard' | 'no';
  /** allow_list contains this host:port. */
  readonly isPortListed: boolean;
  denies(address: Address): boolean;
};

export type Dialler = {
  /** Refuses when `signal` aborts; a connection that is established later is destroyed. */
  dial(target: DialTarget, signal: AbortSignal): Promise<Socket | Refusal>;
};

type DiallerOptions = {
  readonly resolver: Resolver;
  readonly egress: EgressRules;
  readonly trust: TrustSet;
  /** TLS sessions by trust set and target: a session that one set did not verify must not be resumed under it. */
  readonly sessions: BoundedCache<Buffer>;
  readonly connectMs: number;
  /** Connections of the whole process, from their first packet until they are closed. */
  readonly quota: ConnectionQuota;
  readonly counters?: ProxyCounters;
};

export function createDialler(options: DiallerOptions): Dialler {
  const { quota, counters } = options;
  return {
    async dial(target, signal) {
      const addresses = await checkedAddresses(target, options);
      if (isRefusal(addresses)) return addresses;
      if (signal.aborted) return refuse('upstream_unreachable', 'aborted');
      if (quota.isExhausted) return refuse('too_many_connections', 'hosts');
      const startedMs = performance.now();
      const opened = await connect(target, addresses, options, signal);
      const socket = isRefusal(opened) ? undefined : opened;
      counters?.countDial(socket, signal.aborted, performance.now() - startedMs);
      return opened;
    },
  };
}

/** All addresses of the target, every one of them checked, or why it may not be dialled. */
async function checkedAddresses(
  target: DialTarget,
  { resolver, egress }: DiallerOptions,
): Promise<readonly ResolvedAddress[] | Refusal> {
  const { authority, named, isPortListed } = target;
  const isOpen = named !== 'no' || isPortOpen(authority.port, isPortListed, egress);
  // Ports are checked before the lookup: a closed port on an unknown host must not cause a DNS query, which carries data.
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

/**
 * The socket that connects first, when it is connected and, for https, verified; every other one is destroyed. The TLS of the
 * others has not begun: only the winner of the race sees a ClientHello.
 */
function connect(
  target: DialTarget,
  addresses: readonly ResolvedAddress[],
  options: DiallerOptions,
  signal: AbortSignal,
): Promise<Socket | Refusal> {
  const { resolver, trust, connectMs } = options;
  const { promise, resolve } = Promise.withResolvers<Socket | Refusal>();
  let handshake: { end(result: Refusal): void } | undefined;
  const stopWaiting = (): void => {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  };
  const finish = (result: Socket | Refusal): void => {
    stopWaiting();
    resolve(result);
  };
  const race = new ConnectRace<ResolvedAddress, Socket>({
    addresses,
    open: (address) => open(target, address, options),
    onFailed: ({ address }) => resolver.forget(target.authority.host, address),
    onEnd: (result) => {
      if (result instanceof Error) return finish(refusalOf(result, undefined, target));
      if (target.scheme === 'https') handshake = secure(result as TLSSocket, target, trust, finish);
      else finish(result.on('error', ignoreLateError));
    },
  });
  const giveUp = (refusal: Refusal): void => (handshake ? handshake.end(refusal) : finish(refusal));
  const onAbort = (): void => {
    race.stop();
    giveUp(refuse('upstream_unreachable', 'aborted'));
  };
  const timer = setTimeout(() => {
    race.expire();
    giveUp(refuse('upstream_timeout', 'connect'));
  }, connectMs);
  signal.addEventListener('abort', onAbort);
  try {
    race.start();
  } catch (error) {
    stopWaiting();
    throw error;
  }
  return promise;
}

/** Undefined if the process has no connection left. Each attempt counts from its first packet. */
function open(target: DialTarget, address: ResolvedAddress, options: DiallerOptions): Socket | undefined {
  const { quota } = options;
  if (quota.isExhausted) return undefined;
  const isTls = target.scheme === 'https';
  const socket = isTls ? openTls(target, address, options) : openTcp(target.authority, address);
  quota.take();
  return socket.once('close', () => quota.release(1));
}

function openTls(
  { authority, alpn }: DialTarget,
  address: ResolvedAddress,
  { trust, sessions }: DiallerOptions,
): TLSSocket {
  const key = `${trust.id} ${authority.text}`;
  const session = sessions.get(key);
  const options: ConnectionOptions & { autoSelectFamily: boolean; allowHalfOpen: boolean } = {
    host: authority.host,
    port: authority.port,
    lookup: lookupReturning(address),
    autoSelectFamily: false,
    allowHalfOpen: true,
    // Without a name, node:tls verifies against "localhost"; addresses are verified by IP SAN.
    ...(authority.kind === 'name' ? { servername: authority.host } : {}),
    secureContext: trust.context,
    ALPNProtocols: [...alpn],
    rejectUnauthorized: true,
    ...(session ? { session } : {}),
  };
  const socket = connectTls(options);
  const { generation } = sessions;
  // A ticket may arrive after `proven` has refused the peer, and would skip the verification next time. It may also
  // arrive after a change of the rules, which invalidates everything that was cached under the old ones.
  socket.on('session', (ticket) => {
    if (!socket.destroyed && sessions.generation === generation) sessions.set(key, ticket);
  });
  return socket;
}

/** Waits for the handshake on a connected socket. `finish` gets the socket, or a refusal after the socket was destroyed. */
function secure(
  socket: TLSSocket,
  target: DialTarget,
  trust: TrustSet,
  finish: (result: Socket | Refusal) => void,
): { end(result: Refusal): void } {
  const end = (result: Socket | Refusal): void => {
    socket.off('secureConnect', onReady).off('error', onError).off('end', onEnd).off('close', onEnd);
    // An unhandled 'error' before the next owner listens would end the process.
    socket.on('error', ignoreLateError);
    if (result !== socket) socket.destroy();
    finish(result);
  };
  const onReady = (): void => {
    noteCertificateRequest(socket);
    end(proven(socket, target.authority, trust));
  };
  const onError = (error: NodeJS.ErrnoException): void => {
    noteCertificateRequest(socket);
    end(refusalOf(error, socket, target));
  };
  const onEnd = (): void => {
    noteCertificateRequest(socket);
    const cause = 'ended before it was ready';
    end(refuseWithoutCertificate(socket, cause) ?? refuse('upstream_unreachable', cause));
  };
  // Before node:tls, which destroys the socket at its end, and with it what the host has asked for.
  socket.prependListener('end', onEnd);
  socket.on('secureConnect', onReady).on('error', onError).on('close', onEnd);
  return { end };
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
 * A lookup that returns one checked address only: the name is not resolved a second time. It calls back one turn later:
 * the system may refuse a connection at once, and inside tls.connect that throws and leaves an unhandled 'error'.
 */
function lookupReturning({ address, family }: ResolvedAddress): LookupFunction {
  return (_host, options, callback): void => {
    if (options.all) process.nextTick(callback, null, [{ address, family }]);
    else process.nextTick(callback, null, address, family);
  };
}

function openTcp(authority: Authority, address: ResolvedAddress): Socket {
  return connectTcp({
    host: authority.host,
    port: authority.port,
    lookup: lookupReturning(address),
    autoSelectFamily: false,
    allowHalfOpen: true,
    noDelay: true,
  });
}

/**
 * Checks the certificate against the name once more: with a missing host option node:tls verifies "localhost". This costs
 * one parse for each connection. A resumed handshake has no certificate; node:tls emits a session only after a verified
 * full handshake, and the session is cached under that authority.
 */
function proven(socket: TLSSocket, authority: Authority, trust: TrustSet): Socket | Refusal {
  if (!socket.authorized) return refuse('upstream_untrusted', 'not authorized');
  if (!socket.isSessionReused()) {
    const peer = socket.getPeerX509Certificate();
    if (!peer || !provesName(peer, authority))
      return refuse('upstream_untrusted', 'name', handshakeHint('name'));
    if (trust.showsOwnKey(peer))
      return refuse('upstream_untrusted', 'own_authority', handshakeHint('own_authority'));
  }
  socket.setNoDelay(true);
  return socket;
}

/** By subjectAltName only: node:tls would accept the common name of a certificate without one (RFC 9525 §6.4.4). */
function provesName(peer: X509Certificate, { host, kind }: Authority): boolean {
  const proven =
    kind === 'name'
      ? peer.checkHost(host, { subject: 'never', partialWildcards: false })
      : peer.checkIP(host);
  return proven !== undefined;
}

/** The protocol that the upstream chose in its handshake; without ALPN it is HTTP/1.1. */
export function chosenProtocol(socket: Socket): Protocol {
  return 'alpnProtocol' in socket && socket.alpnProtocol === 'h2' ? 'h2' : 'http/1.1';
}

/** `socket` is that of a handshake; undefined if no address was connected. */
function refusalOf(
  error: NodeJS.ErrnoException,
  socket: TLSSocket | undefined,
  { alpn }: DialTarget,
): Refusal {
  const code = error.code ?? error.name;
  if (code === 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL' && alpn.length === 1)
    return refuse(alpn[0] === 'h2' ? 'h2_unavailable' : 'alpn_changed', code);
  const isUntrusted = Boolean(socket?.authorizationError);
  const hint = handshakeHint(code);
  if (isUntrusted || code === 'ERR_TLS_CERT_ALTNAME_INVALID') return refuse('upstream_untrusted', code, hint);
  const refused = socket && refuseWithoutCertificate(socket, code);
  if (refused) return refused;
  return refuse(code === 'ETIMEDOUT' ? 'upstream_timeout' : 'upstream_unreachable', code, hint);
}
