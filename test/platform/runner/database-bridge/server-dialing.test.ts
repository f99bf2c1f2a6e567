// How the bridge reaches a server that DATABASE_URL names: which of them it takes for the server, and which it sends nothing.
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { expect, it } from 'vitest';
import { dialServer } from '../../../../src/platform/runner/database-bridge/server-dialing.ts';
import { createTestAuthority } from '../../../support/test-authority.ts';

const authority = createTestAuthority();

type Peer = AsyncDisposable & { readonly port: number };

async function openPeer(serve: (socket: Socket) => void): Promise<Peer> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    serve(socket);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Responds to the request for TLS, and repeats what it is sent then. */
function responding(response: string, name = 'localhost'): (socket: Socket) => void {
  return (socket) => {
    socket.once('data', () => {
      socket.write(response, 'latin1');
      if (response === 'S') secure(socket, name);
    });
  };
}

function secure(socket: Socket, name: string): void {
  const secured = new TLSSocket(socket, { isServer: true, secureContext: authority.contextFor(name) });
  secured.on('error', () => undefined).pipe(secured);
}

const verified = { ca: authority.certificatePem };

async function echo(socket: Socket): Promise<string> {
  socket.write('hello');
  const [said] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  return said.toString();
}

it.each([undefined, 'direct'] as const)(
  'speaks TLS with a server that proves its name (%s)',
  async (sslnegotiation) => {
    const serve = sslnegotiation === 'direct' ? (one: Socket) => secure(one, 'localhost') : responding('S');
    await using peer = await openPeer(serve);
    const socket = await dialServer({ host: 'localhost', port: peer.port, ssl: verified, sslnegotiation });
    expect(await echo(socket)).toBe('hello');
  },
);

it('connects without TLS where none is asked for', async () => {
  await using peer = await openPeer((socket) => socket.pipe(socket));
  expect(await echo(await dialServer({ host: '127.0.0.1', port: peer.port, ssl: false }))).toBe('hello');
});

it.each([
  ['offers no TLS', responding('N')],
  ['sends plaintext before the handshake', responding('SE')],
  ['has a certificate of another name', responding('S', 'other.test')],
  ['ends the connection', (socket: Socket) => void socket.end()],
  ['ends it during the handshake', (socket: Socket) => void socket.once('data', () => socket.end('S'))],
])('rejects a server that %s', async (_, serve) => {
  await using peer = await openPeer(serve);
  await expect(dialServer({ host: 'localhost', port: peer.port, ssl: verified })).rejects.toThrow();
});

it('rejects a server that says nothing', async () => {
  await using peer = await openPeer((socket) => void socket.resume());
  await expect(dialServer({ host: 'localhost', port: peer.port, ssl: verified }, 100)).rejects.toThrow();
});
