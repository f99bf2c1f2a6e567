// `scrub: body` on the wire: what a searched body looks like in each framing, that events do not wait for one another,
// and that a body is never gathered.
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { H2Exchange } from '../../support/h2-exchange.ts';
import type { Exchange } from '../../support/recording-origin.ts';
import { apiRule, createDataPath, errorOf, head, secret } from '../data-path.ts';
import { createH2Path } from '../h2/h2-path.ts';

const scrubbing = { proxyConfig: { rules: [{ ...apiRule, scrub: 'body' }] } };
const stars = '*'.repeat(secret.length);

/** What the client reads, to the end of the connection, of a response of these bytes. */
async function relayed(bytes: string, ...lines: string[]): Promise<string> {
  const respond = ({ send, end }: Exchange): Promise<void> => send(bytes).then(end);
  await using path = await createDataPath({ respond, ...scrubbing });
  const client = await path.tunnel();
  await client.send(head('GET / HTTP/1.1', `Host: ${path.authority}`, 'Connection: close', ...lines));
  return (await client.readToEnd()).replace('Connection: close\r\n', '');
}

describe('a searched body', () => {
  const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
  it.each([
    [
      'keeps its length',
      `HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n${secret}`,
      `HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n${stars}`,
    ],
    [
      'in chunks is cut into others',
      `${chunked}8\r\na sesame\r\n9\r\n-open-now\r\n0\r\n\r\n`,
      `${chunked}2\r\na \r\n6\r\n******\r\n9\r\n*********\r\n0\r\n\r\n`,
    ],
    [
      'in chunks loses their extensions and trailers',
      `${chunked}3;x=y\r\n123\r\n0\r\nX: ${secret}\r\n\r\n`,
      `${chunked}3\r\n123\r\n0\r\n\r\n`,
    ],
    [
      'in chunks ends with what was held back',
      `${chunked}6\r\nsesame\r\n0\r\n\r\n`,
      `${chunked}6\r\nsesame\r\n0\r\n\r\n`,
    ],
    ['in chunks may be empty', `${chunked}0\r\n\r\n`, `${chunked}0\r\n\r\n`],
    [
      'up to the end of the connection ends with what was held back',
      'HTTP/1.1 200 OK\r\n\r\nsesame',
      'HTTP/1.1 200 OK\r\n\r\nsesame',
    ],
    [
      'that does not exist is not missed',
      'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n',
      'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n',
    ],
  ])('%s', async (_, sent, expected) => {
    expect(await relayed(sent)).toBe(expected);
  });

  it('that is coded is refused, and its host’s connection is closed', async () => {
    const response = 'HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nxx';
    await using path = await createDataPath({ respond: ({ send }) => send(response), ...scrubbing });
    const client = await path.tunnel();
    for (const connection of [0, 1]) {
      await client.send(head('GET / HTTP/1.1', `Host: ${path.authority}`));
      const refused = await client.readResponse();
      expect([refused.head.status, errorOf(refused.head)]).toEqual([502, 'scrub_impossible']);
      expect((await path.origin.request(connection)).connection).toBe(connection);
    }
    expect(await path.proxy.record(0)).toMatchObject({
      outcome: 'failed',
      reason: 'scrub_impossible',
      cause: 'encoded',
    });
  });

  it('is counted in the record, and left out of it where nothing was masked', async () => {
    const respond = ({ request, send }: Exchange): Promise<void> =>
      send(
        `HTTP/1.1 200 OK\r\nContent-Length: 31\r\n\r\n${request.target === '/echo' ? `${secret} ${secret}` : 'x'.repeat(31)}`,
      );
    await using path = await createDataPath({ respond, ...scrubbing });
    const client = await path.tunnel();
    for (const target of ['/echo', '/']) {
      await client.send(head(`GET ${target} HTTP/1.1`, `Host: ${path.authority}`));
      await client.readResponse();
    }
    expect(await path.proxy.record(0)).toMatchObject({ scrubbed: 2, outcome: 'injected' });
    expect(await path.proxy.record(1)).not.toHaveProperty('scrubbed');
  });
});

describe('events', () => {
  const events = ['data: sesame-open-no\n\n', 'data: 50%\n\n', `data: ${secret}\n\n`, 'data: s\n\n'];

  it('arrive before the next one is sent', async () => {
    const go = events.map(() => Promise.withResolvers<void>());
    const respond = async ({ send }: Exchange): Promise<void> => {
      await send('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n');
      for (const [i, event] of events.entries()) {
        await go[i]?.promise;
        await send(`${event.length.toString(16)}\r\n${event}\r\n`);
      }
    };
    await using path = await createDataPath({ respond, ...scrubbing });
    const client = await path.tunnel();
    await client.send(head('GET / HTTP/1.1', `Host: ${path.authority}`));
    await client.readHead();
    for (const [i, event] of events.entries()) {
      go[i]?.resolve();
      expect(await client.readThrough('\n\n')).toContain(event.replace(secret, stars));
    }
  });

  it('arrive before the next one is sent over HTTP/2', async () => {
    const go = events.map(() => Promise.withResolvers<void>());
    const respond = async ({ head: sendHead, data }: H2Exchange): Promise<void> => {
      await sendHead(200, [['content-type', 'text/event-stream']]);
      for (const [i, event] of events.entries()) {
        await go[i]?.promise;
        await data(event);
      }
    };
    await using path = await createH2Path({ origin: { respond }, proxy: scrubbing });
    const client = await path.client();
    const stream = await client.open(client.fields('/'), { isEnd: true });
    let expected = '';
    for (const [i, event] of events.entries()) {
      go[i]?.resolve();
      expected += event.replace(secret, stars);
      const whole = expected;
      expect(await client.peer.until(() => stream.content.toString() === whole || undefined, event)).toBe(
        true,
      );
    }
  });
});

describe('a body of 100 MB', { tags: ['long'] }, () => {
  it('passes at the pace of its client, and is masked at its end', async () => {
    const block = Buffer.alloc(1_000_000, 'lorem ipsum sesame, 42% dolor; ');
    let sent = 0;
    const respond = async ({ send }: Exchange): Promise<void> => {
      await send(`HTTP/1.1 200 OK\r\nContent-Length: ${100 * block.length + secret.length}\r\n\r\n`);
      for (let i = 0; i < 100; i += 1) {
        await send(block);
        sent += block.length;
      }
      await send(secret);
    };
    await using path = await createDataPath({ respond, ...scrubbing });
    const client = await path.tunnel();
    await client.send(head('GET / HTTP/1.1', `Host: ${path.authority}`));
    await client.readHead();
    const before = process.memoryUsage().arrayBuffers;
    expect(sent).toBeLessThan(50 * block.length);
    const { length, sha256 } = await client.readBody();
    const expected = createHash('sha256');
    for (let i = 0; i < 100; i += 1) expected.update(block);
    expect(length).toBe(100 * block.length + secret.length);
    expect(sha256).toBe(expected.update(stars).digest('hex'));
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(50_000_000);
    expect(await path.proxy.record(0)).toMatchObject({ scrubbed: 1 });
  }, 60_000);
});
