// Hosts that want a certificate of their client. The proxy has none to show: a host that merely asks is served, and one that
// ends the handshake or the first exchange without it gets a refusal of its own.
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { type Refusal, refuse } from '../refusal.ts';

/** Connections whose host has asked. */
const asked = new WeakSet<Socket>();

/** To be called at the end of the handshake, whatever its outcome, while the socket is open. */
export function noteCertificateRequest(socket: TLSSocket): void {
  // A client has signature algorithms in common with its server only if that has sent a CertificateRequest, which lists its own.
  const shared: readonly string[] | null | undefined = socket.getSharedSigalgs();
  if (shared && shared.length > 0) asked.add(socket);
}

/** The refusal if the host had asked; `cause` is how the connection has ended. */
export function refuseWithoutCertificate(socket: Socket, cause: string): Refusal | undefined {
  return asked.has(socket) ? refuse('client_certificate_required', cause) : undefined;
}

/** The connection was closed without a byte of a response. A host that has served it before does not insist. */
export function refuseClosed(
  connection: { readonly socket: Socket; readonly uses: number } | undefined,
  cause: string,
): Refusal {
  const isFirst = connection?.uses === 1;
  return (isFirst && refuseWithoutCertificate(connection.socket, cause)) || refuse('upstream_closed', cause);
}
