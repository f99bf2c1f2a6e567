// One TLS handshake over loopback between a server context and a Node client.
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import {
  type ConnectionOptions,
  connect,
  type PeerCertificate,
  type SecureContext,
  TLSSocket,
} from 'node:tls';

export type Handshake = {
  /** The client's error code, or undefined when the handshake succeeded and the peer was believed. */
  readonly error: string | undefined;
  readonly isResumed: boolean;
  readonly session: Buffer | undefined;
  readonly peer: PeerCertificate;
};

export type TlsListener = AsyncDisposable & { readonly port: number };

/** Accepts TLS as the proxy does, by wrapping each raw socket, and sends one byte. */
export async function listenTls(contextOf: () => SecureContext, host = '127.0.0.1'): Promise<TlsListener> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((raw) => {
    sockets.add(raw);
    raw.on('error', () => raw.destroy());
    const tls = new TLSSocket(raw, { isServer: true, secureContext: contextOf() });
    tls.on('error', () => raw.destroy());
    tls.on('secure', () => tls.write('.'));
  });
  server.listen(0, host);
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return {
    port: address.port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Connects, verifies, waits for the server's byte (TLS 1.3 sends the session after the handshake), leaves. */
export async function shakeHands(port: number, options: ConnectionOptions): Promise<Handshake> {
  const socket = connect({ host: '127.0.0.1', port, ...options });
  let session: Buffer | undefined;
  socket.on('session', (ticket) => {
    session = ticket;
  });
  try {
    await once(socket, 'data');
    const [isResumed, peer] = [socket.isSessionReused(), socket.getPeerCertificate()];
    return { error: undefined, isResumed, session, peer };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    return { error: code, isResumed: false, session, peer: socket.getPeerCertificate() };
  } finally {
    socket.destroy();
  }
}
