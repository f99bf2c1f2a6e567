import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, it } from 'vitest';
import { headThroughTunnel } from '../../../src/cli/doctor/proxied-request.ts';

it('a host that is silent behind the tunnel is given up', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\n\r\n'));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const proxy = { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
  const to = { authority: 'api.test:443', host: 'api.test', isName: true, target: '/' };
  expect(await headThroughTunnel(proxy, undefined, to, [], 100)).toEqual({ failure: 'no response in time' });
  server.close();
});
