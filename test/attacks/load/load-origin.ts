// The host of the stage `load`: the path of the request selects what it does.
import type { Exchange } from '../../support/recording-origin.ts';
import { response } from '../../support/recording-origin.ts';

const BIG_BYTES = 4_194_304;

const acts: Readonly<Record<string, (exchange: Exchange) => Promise<void>>> = {
  async silent({ reader }) {
    await reader.finished;
  },
  async half({ send, reader }) {
    await send('HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\nhalf of it');
    await reader.finished;
  },
  async early({ send, end }) {
    await send('HTTP/1.1 413 Enough\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
    end();
  },
  async reset({ reset }) {
    reset();
  },
  async gone({ end }) {
    end();
  },
  async upgrade({ send, reader }) {
    await send('HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    await reader.finished;
  },
  async 'upgrade-reset'({ send, reset }) {
    await send('HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\u0081');
    reset();
  },
  async echoes({ send, reader }) {
    await send('HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    for (let piece = await reader.readSome(); piece !== undefined; piece = await reader.readSome())
      await send(piece);
  },
  async garbage({ send, end }) {
    await send('\u0000\u0001 this was never HTTP\r\n\r\n');
    end();
  },
  async deaf({ socket }) {
    await new Promise((resolve) => socket.once('close', resolve));
  },
  async endless({ send, socket }) {
    await send('HTTP/1.1 200 OK\r\n\r\n');
    while (!socket.destroyed) await send(Buffer.alloc(65_536, 'x'));
  },
  async big({ send }) {
    await send(response(200, [], Buffer.alloc(BIG_BYTES, 'x')));
  },
  async interim({ send, end }) {
    await send('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(1_000));
    end();
  },
  async fields({ send, end }) {
    await send(`HTTP/1.1 200 OK\r\n${'X-Bomb: 1\r\n'.repeat(20_000)}\r\n`);
    end();
  },
  async crumbs({ send }) {
    await send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
    await send('1\r\nx\r\n'.repeat(5_000));
    await send('0\r\n\r\n');
  },
};

export async function respondByPath(exchange: Exchange): Promise<void> {
  const [, name = ''] = /^\/([a-z-]+)/.exec(exchange.request.target) ?? [];
  const act = Object.hasOwn(acts, name) ? acts[name] : undefined;
  if (act) return act(exchange);
  await exchange.readBody();
  await exchange.send(response(200, [], 'fine'));
}
