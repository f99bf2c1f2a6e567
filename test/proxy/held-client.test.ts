// A client that is made to wait for its host must not wait for ever: its next request is read once the exchange is
// over, even where the host answered without taking the last of the body.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, it } from 'vitest';
import { ClientConnection, type ConnectionScope } from '../../src/proxy/client-connection.ts';
import { holdClient } from '../../src/proxy/held-client.ts';
import { defaultLimits, defaultTimeouts } from '../../src/proxy/limits.ts';

it('a held client is read again when its exchange is over', async () => {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  // The event's only argument.
  const [accepted] = (await once(server, 'connection')) as [Socket];
  const second = Promise.withResolvers<void>();
  const connection = new ClientConnection(accepted, scope, (running) => {
    if (running.exchanges === 2) return second.resolve();
    // What an exchange does whose host is slow, and then answers at once.
    holdClient(running.socket);
    running.next(true);
    client.write('GET /2 HTTP/1.1\r\nHost: a\r\n\r\n');
  });
  client.write('GET /1 HTTP/1.1\r\nHost: a\r\n\r\n');
  await second.promise;
  expect(connection.exchanges).toBe(2);
  client.destroy();
  await connection.gone;
  server.close();
});

// The parts of a context that a connection uses between two heads.
const scope = {
  context: {
    connections: new Set(),
    limits: defaultLimits,
    timeouts: defaultTimeouts,
    isDraining: () => false,
  },
  scheme: 'http',
  tunnel: undefined,
  clientAddress: undefined,
} as unknown as ConnectionScope;
