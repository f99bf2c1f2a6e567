// A connection to the PostgreSQL server of the platform before its first message: to the socket of the embedded one, or as
// DATABASE_URL says, with its TLS.
import { once } from 'node:events';
import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls, type ConnectionOptions } from 'node:tls';
import type { Connection } from '../../store/database.ts';

/** Where a server is and how it proves who it is: the part of a connection that is not about a user. */
export type ServerAddress = Pick<Connection, 'host' | 'port' | 'ssl'> & {
  readonly sslnegotiation?: 'postgres' | 'direct' | undefined;
};

export const DIAL_MS = 10_000;

/** SSLRequest. */
const ASK_FOR_TLS: Buffer = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);
const ACCEPTED = 'S';

/** Rejects when the server cannot be reached, or is not the one that TLS must prove. */
export async function dialServer(address: ServerAddress, timeoutMs: number = DIAL_MS): Promise<Socket> {
  const signal = AbortSignal.timeout(timeoutMs);
  const { host = '', port = 5432, ssl } = address;
  const socket = host.startsWith('/')
    ? connect({ path: `${host}/.s.PGSQL.${port}` })
    : connect({ host, port });
  // One that breaks between two steps must not end the process; each step rejects by itself.
  socket.on('error', () => undefined);
  try {
    await once(socket, 'connect', { signal });
    // A server that the network has lost says nothing.
    socket.setKeepAlive(true, 10_000);
    socket.setNoDelay(true);
    if (!ssl) return socket;
    return await secure(socket, { ...address, ssl }, signal);
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

async function secure(
  socket: Socket,
  { host = '', ssl, sslnegotiation }: ServerAddress,
  signal: AbortSignal,
): Promise<Socket> {
  const isDirect = sslnegotiation === 'direct';
  if (!isDirect) await askForTls(socket, signal);
  const secured = connectTls({
    ...(ssl === true ? {} : (ssl as ConnectionOptions)),
    socket,
    // Without a host the certificate would be compared with "localhost".
    host,
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ...(isDirect ? { ALPNProtocols: ['postgresql'] } : {}),
  });
  secured.on('error', () => undefined);
  try {
    // `end` without `secureConnect`: the peer left during the handshake, which emits no error.
    const ended = once(secured, 'end', { signal }).then(() => {
      throw new Error('the database server ended the connection during the TLS handshake');
    });
    ended.catch(() => undefined);
    await Promise.race([once(secured, 'secureConnect', { signal }), ended]);
    return secured;
  } catch (error) {
    secured.destroy();
    throw error;
  }
}

/** Anything after the one byte would be plaintext that somebody put before the handshake (CVE-2021-23222). */
async function askForTls(socket: Socket, signal: AbortSignal): Promise<void> {
  socket.write(ASK_FOR_TLS);
  const ended = once(socket, 'end', { signal }).then(() => [Buffer.alloc(0)]);
  ended.catch(() => undefined);
  const [response] = (await Promise.race([once(socket, 'data', { signal }), ended])) as [Buffer];
  socket.pause();
  if (response.toString('latin1') !== ACCEPTED) throw new Error('the database server offers no TLS');
}
