// Clients that disconnect: each goes through the proxy up to a given stage and then sends FIN or RST.
import { connect, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { connect as connectTls, type TLSSocket } from 'node:tls';

export type Leaving = 'FIN' | 'RST';
export type Stage =
  | 'CONNECT sent'
  | 'tunnel open'
  | 'half a ClientHello'
  | 'mid-handshake'
  | 'request head sent'
  | 'half a request body'
  | 'mid-response';

export type Way = {
  readonly proxyPort: number;
  /** host:port for CONNECT. */
  readonly authority: string;
  /** What to trust inside the tunnel. */
  readonly ca: string;
};

/**
 * Goes up to `stage`, disconnects, and resolves when the socket of this side is closed. After a FIN it stays open for
 * reading, like a client that only stopped sending, so that the proxy has to end the connection.
 */
export async function abandon(way: Way, stage: Stage, leaving: Leaving): Promise<void> {
  const raw = connect({ port: way.proxyPort, host: '127.0.0.1', allowHalfOpen: true });
  raw.on('error', () => undefined);
  const closed = new Promise((resolve) => raw.once('close', resolve));
  raw.write(`CONNECT ${way.authority} HTTP/1.1\r\nHost: ${way.authority}\r\n\r\n`);
  const top = stage === 'CONNECT sent' ? raw : await goOn(raw, way, stage);
  if (leaving === 'RST') raw.resetAndDestroy();
  else {
    raw.end();
    top.resume().on('end', () => raw.destroy());
  }
  await closed;
}

/** Returns the stream to read from: the connection, or the TLS over it. */
async function goOn(raw: Socket, way: Way, stage: Stage): Promise<Socket> {
  await firstData(raw);
  if (stage === 'tunnel open') return raw;
  const host = way.authority.slice(0, way.authority.lastIndexOf(':'));
  if (stage === 'half a ClientHello') await write(raw, (await helloFor(host)).subarray(0, 100));
  if (stage === 'mid-handshake') {
    await write(raw, await helloFor(host));
    await firstData(raw);
  }
  if (stage === 'half a ClientHello' || stage === 'mid-handshake') return raw;
  const secure = connectTls({ socket: raw, host, servername: host, ca: way.ca });
  secure.on('error', () => undefined);
  await new Promise((resolve) => secure.once('secureConnect', resolve));
  await request(secure, way.authority, stage);
  return secure;
}

function request(secure: TLSSocket, authority: string, stage: Stage): Promise<void> {
  const fields = `Host: ${authority}\r\nUser-Agent: abandons\r\n`;
  if (stage === 'request head sent') return write(secure, `GET /silent HTTP/1.1\r\n${fields}\r\n`);
  if (stage === 'half a request body')
    return write(secure, `POST /silent HTTP/1.1\r\n${fields}Content-Length: 2000\r\n\r\n${'x'.repeat(1000)}`);
  secure.write(`GET /half HTTP/1.1\r\n${fields}\r\n`);
  return firstData(secure);
}

const hellos = new Map<string, Promise<Buffer>>();

/** A ClientHello of node:tls; created once, because replaying it costs this process no handshake. */
function helloFor(host: string): Promise<Buffer> {
  const made = hellos.get(host) ?? recordHello(host);
  hellos.set(host, made);
  return made;
}

function recordHello(host: string): Promise<Buffer> {
  return new Promise((resolve) => {
    const recorder = new Duplex({ read: () => undefined, write: (bytes: Buffer) => resolve(bytes) });
    connectTls({ socket: recorder, servername: host }).on('error', () => undefined);
  });
}

function firstData(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.once('close', resolve);
    socket.once('data', () => {
      socket.pause();
      resolve();
    });
    socket.resume();
  });
}

function write(socket: Socket, bytes: string | Buffer): Promise<void> {
  return new Promise((resolve) => void socket.write(bytes, () => resolve()));
}
