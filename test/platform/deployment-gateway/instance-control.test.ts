// What the runner asks of an instance, over real sockets: what it says, and what a hostile one may do without holding up the runner.
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createSocketServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { createInstanceControl } from '../../../src/platform/deployment-gateway/instance-control.ts';
import { createScratch } from '../../support/scratch.ts';

async function serve(listener: RequestListener) {
  const scratch = await createScratch();
  const socketPath = join(scratch.path, 'api.sock');
  const server = createServer(listener).listen(socketPath);
  await once(server, 'listening');
  return {
    control: createInstanceControl({ socketPath, gatewayToken: 'token' }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

const status = { draining: false, requests: 1, streams: 0, runs: 2 };

describe('an instance', () => {
  it('is asked with the token of its runner', async () => {
    const asked: (string | undefined)[] = [];
    await using scene = await serve(({ method, url, headers }, response) => {
      asked.push(`${method} ${url} ${String(headers['x-sallyport-control-token'])}`);
      expect(headers['x-sallyport-gateway-token']).toBeUndefined();
      response.writeHead(method === 'POST' ? 202 : 200).end(JSON.stringify({ ...status, later: 1 }));
    });
    expect(await scene.control.isReady()).toBe(true);
    await scene.control.drain();
    expect(await scene.control.status()).toEqual(status);
    expect(asked).toEqual([
      'GET /internal/status?check_db=1 token',
      'POST /internal/drain token',
      'GET /internal/status token',
    ]);
  });

  it.each<[string, number, string]>([
    ['another status', 503, JSON.stringify(status)],
    ['no JSON', 200, 'ok'],
    ['a negative count', 200, JSON.stringify({ ...status, runs: -1 })],
    ['too much', 200, JSON.stringify({ ...status, more: 'a'.repeat(20_000) })],
  ])('that responds with %s has said nothing', async (_, code, body) => {
    await using scene = await serve((__, response) => void response.writeHead(code).end(body));
    await expect(scene.control.status()).rejects.toThrow(/^the agent server /);
    await expect(scene.control.drain()).rejects.toThrow(/^the agent server /);
  });

  it('that is gone or closes the connection is not ready', async () => {
    await using scene = await serve(({ socket }) => void socket.destroy());
    expect(await scene.control.isReady()).toBe(false);
    await expect(scene.control.status()).rejects.toThrow();
    const nobody = createInstanceControl({ socketPath: '/nowhere/api.sock', gatewayToken: 'token' });
    expect(await nobody.isReady()).toBe(false);
    await expect(nobody.drain()).rejects.toThrow('ENOENT');
  });

  it('that sends its response without an end is waited for until the deadline', async () => {
    await using scratch = await createScratch();
    const socketPath = join(scratch.path, 'api.sock');
    const sockets: Socket[] = [];
    const server = createSocketServer((socket) => sockets.push(socket)).listen(socketPath);
    await once(server, 'listening');
    const connected = once(server, 'connection');
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const asked = createInstanceControl({ socketPath, gatewayToken: 'token' }).status();
      asked.catch(() => undefined);
      await connected;
      sockets[0]?.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{');
      vi.advanceTimersByTime(5_000);
      await expect(asked).rejects.toThrow('the agent server does not respond');
    } finally {
      vi.useRealTimers();
      for (const socket of sockets) socket.destroy();
      server.close();
    }
  });
});
