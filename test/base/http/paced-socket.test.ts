import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { PacedSocket } from '../../../src/base/http/paced-socket.ts';

describe('a paced socket', () => {
  it('hands over one piece in each turn, all of it, then the end, and writes', async () => {
    const sent = Buffer.from(Array.from({ length: 10_000 }, (_, at) => at % 251));
    const listener = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
    await once(listener, 'listening');
    const { port } = listener.address() as { port: number };
    const accepted = once(listener, 'connection');
    const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    client.end(sent);
    const paced = new PacedSocket((await accepted)[0], 1024);
    const pieces: Buffer[] = [];
    let isSameTurn = false;
    paced.on('data', (piece: Buffer) => {
      expect(isSameTurn).toBe(false);
      isSameTurn = true;
      setImmediate(() => (isSameTurn = false));
      pieces.push(piece);
    });
    await once(paced, 'end');
    expect(Math.max(...pieces.map(({ length }) => length))).toBe(1024);
    expect(Buffer.concat(pieces).equals(sent)).toBe(true);
    expect(paced.remoteAddress).toBe('127.0.0.1');
    const closed = once(paced, 'close');
    paced.end('response');
    const [response] = await once(client, 'data');
    expect(String(response)).toBe('response');
    await closed;
    listener.close();
    expect(paced.remoteAddress).toBe('127.0.0.1');
  });
});
