// The inside of an intercepted tunnel: first bytes, TLS with a minted leaf certificate or plain HTTP, then exchanges. The
// CONNECT authority decides: a ClientHello that names another host is rejected before any handshake.
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { Authority } from '../../policy/authority/authority.ts';
import { describeBug } from '../../base/log.ts';
import { fatalAlert } from '../../tls/client-hello.ts';
import { type Protocol, offeredProtocols } from '../upstream/alpn.ts';
import type { ConnectionScope } from '../context.ts';
import { ClientConnection } from '../h1/client-connection.ts';
import type { ClientSession } from '../h2/client-session.ts';
import { startExchange } from '../h1/exchange.ts';
import { setTransport } from '../paused-client.ts';
import { knownProtocol, negotiate } from './negotiation.ts';
import type { ExchangeRecord } from '../record.ts';
import type { SpeculativeDialFailure } from '../upstream/speculative-dial-failure.ts';
import { sniff } from './sniff.ts';

export type TunnelScope = Omit<ConnectionScope, 'tunnel'> & {
  readonly tunnel: Authority;
  /** The revision of the policy that intercepted it; each request inside has its own. */
  readonly revision: number;
};

/** Takes over a paused socket after the 200 to CONNECT was written to it. */
export function intercept(socket: Socket, scope: TunnelScope): void {
  const { context, tunnel } = scope;
  const startedMs = performance.now();
  sniff(socket, context.timeouts.sniffMs, (found) => {
    if (found.kind === 'closed' || found.kind === 'timeout' || found.kind === 'unknown') {
      socket.destroy();
      return recordEnd(scope, startedMs, { reason: endReasons[found.kind] });
    }
    if (found.kind === 'http') {
      startConnection(socket, { ...scope, scheme: 'http' }, startedMs);
      return;
    }
    if (found.kind === 'error') {
      endWithAlert(socket, 'decode_error');
      return recordEnd(scope, startedMs, { reason: 'client_hello_malformed', cause: found.code });
    }
    if (!isServerNameAgreed(found.serverName, tunnel)) {
      endWithAlert(socket, 'unrecognized_name');
      return recordEnd(scope, startedMs, { reason: 'sni_mismatch', cause: 'other_name' });
    }
    const offered = offeredProtocols(found.alpn);
    if (offered.length === 0) {
      endWithAlert(socket, 'no_application_protocol');
      return recordEnd(scope, startedMs, { reason: 'alpn_unsupported' });
    }
    respondToHello(socket, scope, offered, startedMs);
  });
}

function respondToHello(
  socket: Socket,
  scope: TunnelScope,
  offered: readonly Protocol[],
  startedMs: number,
): void {
  // No other listener is set yet, and an unhandled 'error' would crash the process.
  socket.on('error', ignoreLateError);
  const onBug = (error: unknown): void => {
    scope.context.log.error(describeBug(error), 'interception failed');
    endWithAlert(socket, 'internal_error');
    recordEnd(scope, startedMs, { reason: 'internal_error' });
  };
  try {
    const known = knownProtocol(scope.tunnel, offered, scope.context);
    // A known protocol is not waited for: each promise of a tunnel costs more than the lookup.
    if (known === 'http/1.1') startHttp1(socket, scope, undefined, startedMs);
    else respondAfterWait(socket, scope, offered, known, startedMs).catch(onBug);
  } catch (error) {
    onBug(error);
  }
}

function startHttp1(
  socket: Socket,
  scope: TunnelScope,
  dialFailure: SpeculativeDialFailure | undefined,
  startedMs: number,
): void {
  if (socket.destroyed) return recordEnd(scope, startedMs, { reason: 'client_gone' });
  terminate(socket, scope, 'http/1.1', startedMs, (secure) =>
    startConnection(secure, { ...scope, dialFailure, scheme: 'https' }, startedMs),
  );
}

/** For a protocol that is not known, or whose code may not be loaded. */
async function respondAfterWait(
  socket: Socket,
  scope: TunnelScope,
  offered: readonly Protocol[],
  known: Protocol | undefined,
  startedMs: number,
): Promise<void> {
  const negotiated = known
    ? { protocol: known, dialFailure: undefined }
    : await negotiate(socket, scope.tunnel, offered, scope.context);
  const Session = negotiated?.protocol === 'h2' ? (loadedSession ?? (await loadSession())) : undefined;
  if (!negotiated || socket.destroyed) return recordEnd(scope, startedMs, { reason: 'client_gone' });
  const { protocol, dialFailure } = negotiated;
  if (!Session) return startHttp1(socket, scope, dialFailure, startedMs);
  terminate(socket, scope, protocol, startedMs, (secure) => {
    const speaksHttp1 = offered.includes('http/1.1');
    const session = new Session(secure, {
      ...scope,
      dialFailure,
      scheme: 'https',
      speaksHttp1,
    });
    recordUnused(session, scope, startedMs);
  });
}

let loadedSession: typeof ClientSession | undefined;

/** Loaded when the first client needs it. */
async function loadSession(): Promise<typeof ClientSession> {
  const { ClientSession: loaded } = await import('../h2/client-session.ts');
  loadedSession = loaded;
  return loaded;
}

function endWithAlert(socket: Socket, alert: Parameters<typeof fatalAlert>[0]): void {
  // The client may be gone already: an unhandled 'error' of this write would crash the process.
  socket.on('error', ignoreLateError);
  socket.end(fatalAlert(alert), () => socket.destroy());
}

const endReasons = { closed: 'client_gone', timeout: 'sniff_timeout', unknown: 'not_tls_nor_http' } as const;

/** With SNI, the name must be that of the authority (RFC 6066 §3). */
function isServerNameAgreed(serverName: string | undefined, tunnel: Authority): boolean {
  return serverName === undefined || serverName === tunnel.host;
}

function terminate(
  raw: Socket,
  scope: TunnelScope,
  protocol: Protocol,
  startedMs: number,
  onSecured: (secure: TLSSocket) => void,
): void {
  const { context, tunnel } = scope;
  const { host, kind } = tunnel;
  const secure = new TLSSocket(raw, {
    isServer: true,
    secureContext: context.leaves.contextFor({ host, kind }),
    ALPNProtocols: [protocol],
  });
  setTransport(secure, raw);
  const finish = (end: Partial<ExchangeRecord> | undefined): void => {
    clearTimeout(timer);
    secure.off('secure', onSecure).off('end', onEnd).off('close', onEnd).off('error', onError);
    if (!end) return;
    secure.on('error', ignoreLateError);
    secure.destroy();
    raw.destroy();
    recordEnd(scope, startedMs, end);
  };
  const onSecure = (): void => {
    // Our parser read the server name that chose the route; OpenSSL must read the same name in the same bytes.
    const { servername } = secure as TLSSocket & { servername?: string | false };
    const named = servername ? servername.toLowerCase().replace(/\.$/, '') : undefined;
    if (named !== undefined && named !== host) return finish({ reason: 'sni_mismatch', cause: 'openssl' });
    finish(undefined);
    onSecured(secure);
  };
  // A client that does not trust our certificate may only send a FIN, and without tls.Server no other event follows.
  const onEnd = (): void => finish({ reason: 'handshake_aborted' });
  const onError = (error: NodeJS.ErrnoException): void => finish(handshakeEnd(error.code ?? error.name));
  const timer = setTimeout(() => finish({ reason: 'handshake_timeout' }), context.timeouts.handshakeMs);
  secure.on('secure', onSecure).on('end', onEnd).on('close', onEnd).on('error', onError);
}

function ignoreLateError(): void {}

function handshakeEnd(code: string): Partial<ExchangeRecord> {
  const isDistrust = /UNKNOWN_CA|BAD_CERTIFICATE|CERTIFICATE_UNKNOWN/.test(code);
  return { reason: isDistrust ? 'client_distrusts_ca' : 'handshake_failed', cause: code };
}

function startConnection(socket: Socket, scope: TunnelScope, startedMs: number): void {
  const connection = new ClientConnection(socket, scope, startExchange);
  recordUnused(connection, scope, startedMs);
  if (!scope.context.isDraining()) socket.resume();
}

/** Records a tunnel that was opened and never used. */
function recordUnused(
  connection: ClientConnection | ClientSession,
  scope: TunnelScope,
  startedMs: number,
): void {
  void connection.closed.then(() => {
    if (connection.exchanges > 0 || connection.hasRecord) return;
    recordEnd(scope, startedMs, { reason: scope.context.isDraining() ? 'shutting_down' : 'client_gone' });
  });
  if (scope.context.isDraining()) connection.end();
}

function recordEnd(scope: TunnelScope, startedMs: number, fields: Partial<ExchangeRecord>): void {
  const { context, tunnel, revision, clientAddress } = scope;
  if (fields.reason === 'client_distrusts_ca') {
    context.log.warn(
      { authority: tunnel.text, client: clientAddress },
      `the client does not trust the CA of this proxy: evaluate the script at http://${context.reserved.name}/env in its shell, or give it ca.pem (SSL_CERT_FILE, NODE_EXTRA_CA_CERTS, REQUESTS_CA_BUNDLE)`,
    );
  }
  context.recorder.emit(
    {
      sandbox: context.sandbox,
      revision,
      client: clientAddress,
      method: 'CONNECT',
      scheme: 'https',
      authority: tunnel.text,
      outcome: 'failed',
      bytes_up: 0,
      bytes_down: 0,
      ...fields,
    },
    startedMs,
  );
}
