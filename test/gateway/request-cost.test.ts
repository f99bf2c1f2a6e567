// What a request costs: a message is one write however its parts arise, and the owner is asked with an object that V8 can optimise.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInThisContext } from 'node:vm';
import { afterEach, expect, it, vi } from 'vitest';
import { refuse } from '../../src/gateway/refusal.ts';
import { createGatewayScene } from './gateway-scene.ts';

const BODY = 'a response body';
const GET = 'GET / HTTP/1.1\r\nHost: app.test\r\n\r\n';
const POST = 'POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 3\r\n\r\nabc';

afterEach(() => vi.restoreAllMocks());

it.each([
  ['GET', GET],
  ['POST', POST],
])('a %s on kept connections takes one write to the target and one to the client', async (_, bytes) => {
  await using target = await createTarget();
  const targets = { 'app.test': { host: '127.0.0.1', port: target.port } };
  await using gateway = await createGatewayScene({ targets });
  await using client = await gateway.connect();
  const writes = [vi.spyOn(Socket.prototype, '_write'), vi.spyOn(Socket.prototype, '_writev' as '_write')];
  for (const _request of [1, 2]) {
    for (const write of writes) write.mockClear();
    await client.send(bytes);
    expect((await client.readResponse()).text).toBe(BODY);
  }
  const sockets = writes.flatMap(({ mock }) => mock.contexts as Socket[]);
  const toTarget = sockets.filter(({ remotePort }) => remotePort === target.port);
  const toClient = sockets.filter(({ localPort }) => localPort === gateway.port);
  expect([toTarget.length, toClient.length]).toEqual([1, 1]);
});

it('the owner is asked with an object of one shape', async () => {
  setFlagsFromString('--allow-natives-syntax');
  // With a shape of its own an object becomes a dictionary, and each shape stays until a full collection of garbage.
  const hasFastProperties = runInThisContext('(object) => %HasFastProperties(object)');
  const shapes: unknown[] = [];
  await using gateway = await createGatewayScene({
    findTarget: (request) => {
      shapes.push(hasFastProperties(request));
      return refuse('target_not_found');
    },
  });
  await using client = await gateway.connect();
  for (const _request of [1, 2, 3]) {
    await client.send(GET);
    await client.readResponse();
  }
  expect(shapes).toEqual([true, true, true]);
});

async function createTarget(): Promise<AsyncDisposable & { readonly port: number }> {
  const server = createServer((incoming, outgoing) => {
    incoming.resume().on('end', () => outgoing.writeHead(200, { 'Content-Length': BODY.length }).end(BODY));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
