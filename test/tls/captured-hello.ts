// What real clients send first: a listener on loopback takes the ClientHello, refuses it with an alert, and
// hands the bytes over.
import { once } from 'node:events';
import { createServer } from 'node:net';
import { type ConnectionOptions, connect } from 'node:tls';
import { createHelloCollector, fatalAlert } from '../../src/tls/client-hello.ts';
import { runIfPresent } from './external-program.ts';

export type Client = (port: number) => Promise<unknown>;

/** The bytes that the client sent, and whatever it resolved to after it had been refused. */
export async function captureHello(
  client: Client,
  alert: Parameters<typeof fatalAlert>[0] = 'unrecognized_name',
): Promise<{ readonly bytes: Buffer; readonly outcome: unknown }> {
  const collector = createHelloCollector();
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.on('data', (piece: Buffer) => {
      if (collector.push(piece).kind !== 'more') socket.end(fatalAlert(alert));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  try {
    const outcome = await client(address.port);
    return { bytes: collector.bytes, outcome };
  } finally {
    server.close();
  }
}

/** Resolves to the code of the error in which the refused handshake ends. */
export function nodeClient(options: ConnectionOptions): Client {
  return async (port) => {
    const socket = connect({ host: '127.0.0.1', port, ...options });
    const [error] = await once(socket, 'error');
    return error.code;
  };
}

export function openssl(...args: readonly string[]): Client {
  return (port) => runIfPresent('openssl', ['s_client', '-connect', `127.0.0.1:${port}`, ...args]);
}

export function curl(url: string, ...args: readonly string[]): Client {
  return (port) => runIfPresent('curl', ['-sS', '--connect-to', `::127.0.0.1:${port}`, ...args, url]);
}

export function python(name: string, protocols: readonly string[]): Client {
  const program = `
import socket, ssl, sys
context = ssl.create_default_context()
if sys.argv[3:]: context.set_alpn_protocols(sys.argv[3:])
context.wrap_socket(socket.create_connection(('127.0.0.1', int(sys.argv[1]))), server_hostname=sys.argv[2])
`;
  return (port) => runIfPresent('python3', ['-c', program, `${port}`, name, ...protocols]);
}
