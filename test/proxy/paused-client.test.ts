// A client that is paused for its upstream must not stay paused: its next request is read once the exchange has ended, even
// if the upstream responded without reading the end of the body. And the probes must not cut the client off.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { connect as connectTls, TLSSocket } from 'node:tls';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import type { ConnectionScope } from '../../src/proxy/context.ts';
import { ClientConnection } from '../../src/proxy/h1/client-connection.ts';
import { pauseClient, setTransport } from '../../src/proxy/paused-client.ts';
import { defaultLimits, defaultTimeouts } from '../../src/proxy/limits.ts';
import { createTestAuthority } from '../support/test-authority.ts';

// One clock for the file: the paused clients of a process share a timer.
beforeAll(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
});
afterAll(() => {
  vi.useRealTimers();
});

it('a paused client is read again when its exchange has ended', async () => {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  // The event's only argument.
  const [accepted] = (await once(server, 'connection')) as [Socket];
  const second = Promise.withResolvers<void>();
  const connection = new ClientConnection(accepted, scope, (running) => {
    if (running.exchanges === 2) return second.resolve();
    // What an exchange does whose upstream is slow, and then responds.
    pauseClient(running.socket);
    running.finishExchange(true);
    client.write('GET /2 HTTP/1.1\r\nHost: a\r\n\r\n');
  });
  client.write('GET /1 HTTP/1.1\r\nHost: a\r\n\r\n');
  await second.promise;
  expect(connection.exchanges).toBe(2);
  client.destroy();
  await connection.closed;
  server.close();
});

type Pair = { readonly client: Socket; readonly held: Socket };

const authority = createTestAuthority();
const ways: readonly (readonly [string, (port: number, accepted: Promise<unknown[]>) => Promise<Pair>])[] = [
  [
    'a plain client',
    async (port, accepted) => {
      const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
      const [held] = await accepted;
      return { client, held: held as Socket };
    },
  ],
  [
    'a TLS client',
    async (port, accepted) => {
      const ca = authority.certificatePem;
      const options = { port, host: '127.0.0.1', allowHalfOpen: true, ca, servername: 'a.test' };
      const client = connectTls(options);
      const raw = (await accepted)[0] as Socket;
      const held = new TLSSocket(raw, { isServer: true, secureContext: authority.contextFor('a.test') });
      setTransport(held, raw);
      await once(client, 'secureConnect');
      return { client, held };
    },
  ],
];

it.each(ways)(
  '%s whose upstream has ended first may go on to send, however long it is paused',
  async (_, open) => {
    const server = createServer({ allowHalfOpen: true });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    // The address of a listening TCP server.
    const { port } = server.address() as AddressInfo;
    const { client, held } = await open(port, once(server, 'connection'));
    const ended = once(client, 'end');
    client.resume();
    held.end('the host is done');
    await ended;
    pauseClient(held);
    vi.advanceTimersByTime(5_000);
    client.end('the client is not');
    expect(await readToEnd(held)).toBe('the client is not');
    client.destroy();
    held.destroy();
    server.close();
  },
);

/** Reads to the end. Resolves with the error if the connection breaks. */
function readToEnd(socket: Socket): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()));
  socket.on('end', () => resolve(text));
  socket.on('error', (error) => resolve(String(error)));
  socket.on('close', () => resolve('closed'));
  socket.resume();
  return promise;
}

// The parts of a context that a connection uses between two heads.
const scope = {
  context: {
    connections: new Set(),
    clients: new Set(),
    limits: defaultLimits,
    timeouts: defaultTimeouts,
    isDraining: () => false,
  },
  scheme: 'http',
  tunnel: undefined,
  clientAddress: undefined,
} as unknown as ConnectionScope;
