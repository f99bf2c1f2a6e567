// A framed connection over a unix socket: each direction ends by itself, and what broke does not look as if it had ended.
import { once } from 'node:events';
import { Agent, createServer as createHttpServer, type IncomingMessage, request } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FramedSocket } from '../../../src/base/http/framed-socket.ts';
import { createScratch, type Scratch } from '../../support/scratch.ts';

describe('a framed connection', () => {
  let scratch: Scratch;
  beforeAll(async () => {
    scratch = await createScratch();
  });
  afterAll(() => scratch[Symbol.asyncDispose]());
  let sockets = 0;

  /** Both ends, with the bare socket of the first. */
  async function createPair(): Promise<{ one: FramedSocket; raw: Socket; other: FramedSocket }> {
    const path = join(scratch.path, `${(sockets += 1)}.sock`);
    const server = createServer().listen(path);
    const accepted = once(server, 'connection');
    const raw = connect(path);
    const [socket] = await accepted;
    server.close();
    return { one: new FramedSocket(raw), raw, other: new FramedSocket(socket as Socket) };
  }

  /** Reading to the end must not destroy the other direction. */
  const read = async (stream: Duplex): Promise<Buffer> =>
    Buffer.concat(await Array.fromAsync(stream.iterator({ destroyOnReturn: false })));

  it('carries much in both directions, and each ends by itself', async () => {
    const { one, raw, other } = await createPair();
    const much = Buffer.alloc(3_000_000, 'x');
    other.end('first');
    expect((await read(one)).toString()).toBe('first');
    one.write('');
    one.end(much);
    expect((await read(other)).equals(much)).toBe(true);
    if (!raw.closed) await once(raw, 'close');
  });

  it('holds back who writes more than is read', async () => {
    const { one, other } = await createPair();
    let written = 0;
    while (one.write(Buffer.alloc(65_536)) || written === 0) written += 65_536;
    for (let isStuck = false; !isStuck; ) {
      isStuck = !one.write(Buffer.alloc(65_536));
      written += 65_536;
      if (written > 50_000_000) throw new Error('nothing holds it back');
    }
    one.destroy();
    other.destroy();
  });

  it('that is closed without its ends has broken, with what was received before', async () => {
    const { one, raw, other } = await createPair();
    one.write('a part');
    const [piece] = await once(other, 'data');
    expect(String(piece)).toBe('a part');
    let hasEnded = false;
    other.on('end', () => (hasEnded = true));
    const broken = once(other, 'error');
    raw.end();
    expect(await broken).toMatchObject([{ code: 'ECONNRESET' }]);
    expect(hasEnded).toBe(false);
  });

  it('breaks with a frame after the end, and with one of no possible length', async () => {
    for (const bytes of [
      [0, 0, 0, 0, 0, 0, 0, 1, 65],
      [255, 0, 0, 0, 65],
    ]) {
      const { raw, other } = await createPair();
      const broken = once(other.resume(), 'error');
      raw.write(Buffer.from(bytes));
      expect(await broken).toMatchObject([{ code: 'ECONNRESET' }]);
      raw.destroy();
    }
  });

  it('reads frames that arrive byte by byte', async () => {
    const { raw, other } = await createPair();
    const text = read(other);
    for (const byte of Buffer.from([0, 0, 0, 2, 111, 107, 0, 0, 0, 1, 33, 0, 0, 0, 0])) {
      raw.write(Buffer.of(byte));
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect((await text).toString()).toBe('ok!');
    raw.destroy();
    other.destroy();
  });

  it('serves node:http on both sides, also an agent that keeps connections', async () => {
    const { one, other } = await createPair();
    const server = createHttpServer((incoming, outgoing) =>
      outgoing.end(`${incoming.method} ${incoming.url}`),
    );
    server.emit('connection', other);
    const agent = new Agent({ keepAlive: true, timeout: 60_000 });
    agent.createConnection = () => one as unknown as Socket;
    for (const path of ['/1', '/2']) {
      const sent = request({ agent, path, host: 'box' }).end();
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      expect((await read(response as unknown as Duplex)).toString()).toBe(`GET ${path}`);
      expect(sent.reusedSocket).toBe(path === '/2');
      await new Promise((resolve) => setImmediate(resolve));
    }
    agent.destroy();
    expect(one.destroyed).toBe(true);
  });
});
