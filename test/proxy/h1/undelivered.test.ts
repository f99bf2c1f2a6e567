// A tunnel whose both ends have sent their FIN, while the upstream does not read the last bytes of the client. The client is
// gone by then. What waits for its tunnel (a drain, the removal of its sandbox) must not wait for the upstream.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { type AddressInfo, type Socket, createServer } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { type TestSidecar, createTestSidecar } from '../../support/test-sidecar.ts';
import { WireClient } from '../../support/wire-client.ts';

const CHANNEL = 'net.client.socket';
const TOKEN = 'token-of-the-box-0123456789';
const PIECE: Buffer = Buffer.alloc(16_384);

type DeafHost = AsyncDisposable & {
  readonly port: number;
  /** A client that is gone, and the proxy's own end towards the host, which still has bytes to write. */
  leaveUndelivered(proxy: TestSidecar, fields?: readonly string[]): Promise<void>;
};

/** Sends its FIN at once and reads nothing. */
async function createDeafHost(): Promise<DeafHost> {
  const accepted: Socket[] = [];
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
    accepted.push(socket.on('error', () => undefined));
    socket.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    async leaveUndelivered(proxy, fields = []) {
      const dialled = Promise.withResolvers<Socket>();
      const onSocket = (message: unknown): void => {
        const { socket } = message as { readonly socket: Socket };
        socket.once('connect', () => socket.remotePort === port && dialled.resolve(socket));
      };
      subscribe(CHANNEL, onSocket);
      await using client = await WireClient.connect(proxy.port);
      expect((await client.openTunnel(`127.0.0.1:${port}`, fields)).status).toBe(200);
      const towardsHost = await dialled.promise;
      unsubscribe(CHANNEL, onSocket);
      // Until the system holds no more for the host, but so little that the proxy goes on reading its client.
      for (let sent = PIECE.length; towardsHost.writableLength === 0; sent += PIECE.length) {
        await client.send(PIECE);
        while (towardsHost.bytesWritten < sent) await turn();
      }
      const closed = once(client.socket, 'close');
      client.end();
      await closed;
      expect(towardsHost.closed).toBe(false);
    },
    async [Symbol.asyncDispose]() {
      for (const socket of accepted) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

const CUT = { outcome: 'tunnelled', reason: 'reset' };

it('a drain does not wait for it longer than it may', async () => {
  await using host = await createDeafHost();
  await using proxy = await createTestSidecar({ config: { timeouts: { drain_ms: 50 } } });
  await host.leaveUndelivered(proxy);
  await proxy.sidecar.close();
  expect(proxy.records()).toMatchObject([CUT]);
});

it('the removal of its sandbox, and with it every other change, does not wait for it', async () => {
  await using host = await createDeafHost();
  await using proxy = await createTestSidecar({ admin: true });
  expect((await proxy.admin('POST', '/v1/sandboxes', { id: 'box', token: TOKEN })).status).toBe(201);
  await host.leaveUndelivered(proxy, [`Proxy-Authorization: Bearer ${TOKEN}`]);
  const removal = proxy.admin('DELETE', '/v1/sandboxes/box');
  const change = proxy.admin('PUT', '/v1/proxy_config', {});
  expect([(await removal).status, (await change).status]).toEqual([204, 200]);
  expect(proxy.records()).toMatchObject([CUT]);
});
