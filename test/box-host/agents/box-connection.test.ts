// Connections into a box by the agent as a process, which here has the loopback of the machine.
import { once } from 'node:events';
import { createServer as createHttpServer, request } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectToBox } from '../../../src/box-host/agents/box-connection.ts';
import { createDataPlaneScene, type DataPlaneScene } from '../data-plane/data-plane-scene.ts';

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

describe('a connection into a box', () => {
  let scene: DataPlaneScene;
  beforeAll(async () => {
    scene = await createDataPlaneScene();
  });
  afterAll(() => scene[Symbol.asyncDispose]());

  it('carries HTTP', async () => {
    const server = createHttpServer((incoming, outgoing) => {
      outgoing.end(`${incoming.method} ${incoming.url}`);
    });
    const port = await listen(server);
    const stream = await connectToBox(scene.agents, 'box', port);
    const sent = request({ createConnection: () => stream as Socket, path: '/x', host: 'box' });
    sent.end();
    const [response] = await once(sent, 'response');
    expect(Buffer.concat(await Array.fromAsync(response as AsyncIterable<Buffer>)).toString()).toBe('GET /x');
    stream.destroy();
    server.close();
  });

  it('carries much, both ways, with half-close', async () => {
    const server = createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket));
    const stream = await connectToBox(scene.agents, 'box', await listen(server));
    stream.end(Buffer.alloc(3_000_000, 'x'));
    let bytes = 0;
    for await (const piece of stream) bytes += piece.length;
    expect(bytes).toBe(3_000_000);
    server.close();
  });

  it('holds back a server whose client does not read', async () => {
    let sent = 0;
    const server = createServer((socket) => {
      const write = (): void => {
        for (let isFree = true; isFree && sent < 50_000_000; sent += 65_536)
          isFree = socket.write(Buffer.alloc(65_536));
        if (sent < 50_000_000) socket.once('drain', write);
        else socket.end();
      };
      socket.on('error', () => undefined);
      write();
    });
    const stream = await connectToBox(scene.agents, 'box', await listen(server));
    await once(stream, 'readable');
    const channel = await scene.agents.channel('box');
    // What the agent has sent before is here by then.
    await channel.hasOtherProcesses();
    expect(stream.readableLength).toBeLessThanOrEqual(256 * 1024);
    let bytes = 0;
    for await (const piece of stream) bytes += piece.length;
    expect(bytes).toBeGreaterThanOrEqual(50_000_000);
    server.close();
  });

  it('is refused to the port of the proxy, before the agent is asked, and where nothing listens', async () => {
    await expect(connectToBox(scene.agents, 'never', 3128)).rejects.toMatchObject({ code: 'PORT_REFUSED' });
    const server = createServer();
    const port = await listen(server);
    server.close();
    await once(server, 'close');
    await expect(connectToBox(scene.agents, 'box', port)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('breaks with the agent', async () => {
    const server = createServer((socket) => void socket.on('error', () => undefined));
    const stream = await connectToBox(scene.agents, 'box', await listen(server));
    const closed = once(stream, 'close').catch((error: unknown) => error);
    let hasEnded = false;
    stream.on('end', () => (hasEnded = true)).resume();
    (await scene.agents.channel('box')).close('gone');
    expect(await closed).toMatchObject({ kind: 'gone' });
    expect(hasEnded).toBe(false);
    server.close();
  });
});
