// A client of node:http2 inside an intercepted tunnel: CONNECT, TLS with ALPN h2, session.
import { type ClientHttp2Session, type SecureClientSessionOptions, connect } from 'node:http2';
import { request } from 'node:http';
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

export type TunnelTarget = {
  readonly proxyPort: number;
  /** `host:port`. */
  readonly authority: string;
  /** PEM of the CA to trust: that of the proxy. */
  readonly ca: string;
};

export async function openH2Tunnel(
  { proxyPort, authority, ca }: TunnelTarget,
  options: SecureClientSessionOptions = {},
): Promise<ClientHttp2Session> {
  const raw = await openTunnel(proxyPort, authority);
  const name = authority.slice(0, authority.lastIndexOf(':'));
  const socket = connectTls({ socket: raw, servername: name, ca, ALPNProtocols: ['h2'] });
  await new Promise<void>((resolve, reject) => {
    socket.once('secureConnect', resolve);
    socket.once('error', reject);
  });
  return connect(`https://${authority}`, { ...options, createConnection: () => socket });
}

function openTunnel(proxyPort: number, authority: string): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const asked = request({ port: proxyPort, host: '127.0.0.1', method: 'CONNECT', path: authority });
  asked.once('connect', ({ statusCode }, socket) => {
    if (statusCode === 200) return resolve(socket as Socket);
    socket.destroy();
    reject(new Error(`CONNECT ${authority} got status ${statusCode}`));
  });
  asked.once('error', reject);
  asked.end();
  return promise;
}
