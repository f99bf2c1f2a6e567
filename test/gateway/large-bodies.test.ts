// 100 MB through a gateway, with back-pressure both ways.
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, request as httpRequest } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { type NodeHandler, openNodeTarget } from './node-target.ts';
import { createGatewayScene, type GatewayScene } from './gateway-scene.ts';
import { everyNth } from '../support/run-size.ts';

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of stack.splice(0).toReversed()) await one[Symbol.asyncDispose]();
});

async function target(handle: NodeHandler): Promise<number> {
  const opened = await openNodeTarget(handle);
  stack.push(opened);
  return opened.port;
}

async function gatewayTo(port: number): Promise<GatewayScene> {
  const gateway = await createGatewayScene({ targets: { 'app.test': { host: '127.0.0.1', port } } });
  stack.push(gateway);
  return gateway;
}

describe('100 MB', () => {
  const SIZE = 100 * 1024 * 1024;
  const piece = randomBytes(1024 * 1024);
  async function* pieces(): AsyncGenerator<Buffer> {
    for (let sent = 0; sent < SIZE; sent += piece.length) yield piece;
  }
  async function sha(stream: AsyncIterable<Buffer>): Promise<string> {
    const hash = createHash('sha256');
    for await (const chunk of stream) hash.update(chunk);
    return hash.digest('hex');
  }

  everyNth(2, ['length', 'chunked'], (some, options) =>
    it.each(some)('both ways with %s framing', options, async (framing) => {
      const wanted = await sha(pieces());
      const length = framing === 'length' ? { 'Content-Length': SIZE } : {};
      const port = await target(async (incoming, outgoing) => {
        outgoing.setHeader('X-Sha', await sha(incoming));
        outgoing.writeHead(200, length);
        await pipeline(pieces(), outgoing);
      });
      const gateway = await gatewayTo(port);
      const outgoing = httpRequest({
        port: gateway.port,
        method: 'PUT',
        headers: { Host: 'app.test', ...length },
      });
      const responded = once(outgoing, 'response') as Promise<[IncomingMessage]>;
      await pipeline(pieces(), outgoing);
      const [incoming] = await responded;
      expect([incoming.headers['x-sha'], await sha(incoming)]).toEqual([wanted, wanted]);
      expect(await gateway.record(0)).toMatchObject({
        status: 200,
        end: 'complete',
        bytesUp: SIZE,
        bytesDown: SIZE,
      });
    }),
  );

  it('a client that does not read stops the target, and gets all of it later', async () => {
    const full = Promise.withResolvers<void>();
    const port = await target((_, outgoing) => {
      outgoing.writeHead(200, { 'Content-Length': SIZE });
      let sent = 0;
      const write = (): void => {
        while (sent < SIZE) {
          sent += piece.length;
          if (!outgoing.write(piece)) return full.resolve();
        }
        outgoing.end();
      };
      outgoing.on('drain', write);
      write();
    });
    const gateway = await gatewayTo(port);
    const outgoing = httpRequest({ port: gateway.port, headers: { Host: 'app.test' } }).end();
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
    await full.promise;
    let got = 0;
    for await (const chunk of incoming) got += (chunk as Buffer).length;
    expect(got).toBe(SIZE);
  });
});
