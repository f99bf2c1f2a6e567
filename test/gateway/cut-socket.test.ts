// A cut connection closes in every state, and its peer sees that the stream is incomplete.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cutSocket } from '../../src/gateway/cut-socket.ts';
import { createScratch } from '../support/scratch.ts';

async function pair(path?: string): Promise<{ near: Socket; far: Socket; server: Server }> {
  const server = createServer({ allowHalfOpen: true });
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  await new Promise<void>((done) => (path ? server.listen(path, done) : server.listen(0, '127.0.0.1', done)));
  const near = path ? connect(path) : connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [far] = await accepted;
  near.on('error', () => undefined);
  return { near, far, server };
}

describe('a cut connection', () => {
  it('is reset', async () => {
    const { near, far, server } = await pair();
    const lost = once(near, 'error');
    cutSocket(far);
    expect((await lost)[0].code).toBe('ECONNRESET');
    server.close();
  });

  it.each(['before its FIN was sent', 'after its FIN was sent'])('closes %s', async (when) => {
    const { near, far, server } = await pair();
    const closed = once(far, 'close');
    const finished = once(far, 'finish');
    far.on('error', () => undefined).end('bytes');
    if (when === 'after its FIN was sent') await finished;
    cutSocket(far);
    await closed;
    near.destroy();
    server.close();
  });

  it('closes over a Unix socket, and twice', async () => {
    await using scratch = await createScratch();
    const { near, far, server } = await pair(join(scratch.path, 's'));
    const closed = [once(near, 'close'), once(far, 'close')];
    near.resume();
    cutSocket(far);
    cutSocket(far);
    await Promise.race(closed);
    near.destroy();
    server.close();
  });
});
