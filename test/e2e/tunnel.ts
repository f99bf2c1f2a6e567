// A tunnel for client libraries with their own protocol: CONNECT and its 200, then the bare socket.
import { connect, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';

/** The socket after the 200, paused. */
export async function openTunnel(proxyPort: number, authority: string): Promise<Socket> {
  const socket = connect({ port: proxyPort, host: '127.0.0.1' });
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
  const head = await new Promise<string>((resolve, reject) => {
    socket.once('data', (bytes: Buffer) => resolve(bytes.toString('latin1')));
    socket.once('error', reject);
  });
  socket.pause();
  if (!/^HTTP\/1\.1 200 .*\r\n\r\n$/s.test(head)) throw new Error(`CONNECT failed: ${head}`);
  return socket;
}

/** TLS inside the tunnel, verified against `ca`. */
export async function secureTunnel(socket: Socket, name: string, ca: string): Promise<TLSSocket> {
  const secure = connectTls({ socket, host: name, servername: name, ca });
  await new Promise((resolve, reject) => secure.once('secureConnect', resolve).once('error', reject));
  return secure;
}
