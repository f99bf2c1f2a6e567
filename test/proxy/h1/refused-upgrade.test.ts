// An upstream that refuses an upgrade: the exchange stays HTTP, and the connection goes on or ends as the framing of the
// refusal says. The upstream has seen the credential nevertheless.
import { describe, expect, it } from 'vitest';
import type { Exchange } from '../../support/recording-origin.ts';
import { headerValues } from '../../support/message-reader.ts';
import { createDataPath, type DataPath, head, secret } from '../data-path.ts';

const switching =
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nwelcome';
const asking = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Key: k'];

type Row = readonly [name: string, status: number, response: string, body: string];
const usable: readonly Row[] = [
  ['401 with a length', 401, 'WWW-Authenticate: Bearer\r\nContent-Length: 3\r\n\r\nwho', 'who'],
  ['403 in chunks', 403, 'Transfer-Encoding: chunked\r\n\r\n3\r\nnot\r\n4\r\n you\r\n0\r\n\r\n', 'not you'],
  ['426 without a body', 426, 'Sec-WebSocket-Version: 13\r\nContent-Length: 0\r\n\r\n', ''],
  ['503 with a length', 503, 'Retry-After: 1\r\nContent-Length: 5\r\n\r\nlater', 'later'],
  ['200 with a length', 200, 'Content-Length: 4\r\n\r\nHTTP', 'HTTP'],
  ['204', 204, '\r\n', ''],
  ['301', 301, 'Location: /elsewhere\r\nContent-Length: 0\r\n\r\n', ''],
];
const ending: readonly Row[] = [
  ['401 with Connection: close', 401, 'Connection: close\r\nContent-Length: 3\r\n\r\nwho', 'who'],
  ['403 that ends with its connection', 403, '\r\nnot you', 'not you'],
  [
    '426 in chunks with Connection: close',
    426,
    'Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n',
    'x',
  ],
];

describe('an upgrade that the host refuses', () => {
  it.each(usable)('with %s leaves a connection that can try again', async (_, status, response, body) => {
    await using path = await createDataPath({ respond: refuseFirst(status, response) });
    const client = await path.tunnel();
    await client.send(upgradeOf(path, '/first'));
    const refused = await client.readResponse();
    expect([refused.head.status, refused.text]).toEqual([status, body]);
    await client.send(head('GET /plain HTTP/1.1', `Host: ${path.authority}`));
    expect((await client.readResponse()).text).toBe('plain');
    await client.send(upgradeOf(path, '/again'));
    expect((await client.readHead()).status).toBe(101);
    expect(await client.readThrough('welcome')).toBe('welcome');
    const keys = path.origin.requests.map((request) => headerValues(request, 'authorization'));
    expect(keys).toEqual([[`Bearer ${secret}`], [`Bearer ${secret}`], [`Bearer ${secret}`]]);
    // An upstream connection on which an upgrade was requested is not reused.
    expect(path.origin.requests.map(({ connection }) => connection)).toEqual([0, 1, 2]);
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'injected', status, path: '/first' });
  });

  it.each(ending)('with %s is whole for the client', async (name, status, response, body) => {
    await using path = await createDataPath({
      respond: async (exchange) => {
        await refuseFirst(status, response)(exchange);
        exchange.end();
      },
    });
    const client = await path.tunnel();
    await client.send(upgradeOf(path, '/first'));
    const refused = await client.readResponse();
    expect([refused.head.status, refused.text]).toEqual([status, body]);
    // Only an unframed response ends with the connection; a framed one leaves the client's connection open.
    if (name.includes('ends with')) expect(await client.finished).toBe('end');
    else {
      await client.send(upgradeOf(path, '/again'));
      expect((await client.readHead()).status).toBe(101);
    }
  });

  it('and cut short is cut short for the client too', async () => {
    await using path = await createDataPath({
      respond: async ({ send, reset }) => {
        await send('HTTP/1.1 403 No\r\nContent-Length: 100\r\n\r\nhalf');
        reset();
      },
    });
    const client = await path.tunnel();
    await client.send(upgradeOf(path, '/first'));
    expect((await client.readHead()).status).toBe(403);
    await expect(client.readBody()).rejects.toThrow();
    expect(await path.proxy.record(0)).toMatchObject({
      outcome: 'failed',
      status: 403,
      reason: 'upstream_truncated',
    });
  });

  it('shows no credential that its refusal echoes', async () => {
    await using path = await createDataPath({
      respond: refuseFirst(
        401,
        `WWW-Authenticate: Bearer error="Bearer ${secret}"\r\nContent-Length: 0\r\n\r\n`,
      ),
    });
    const client = await path.tunnel();
    await client.send(upgradeOf(path, '/first'));
    const { text } = await client.readHead();
    expect(text).not.toContain(secret);
    expect(text).toContain('WWW-Authenticate: Bearer error="');
  });
});

function refuseFirst(status: number, response: string): (exchange: Exchange) => Promise<void> {
  return async ({ request, send }) => {
    if (request.target === '/plain') return send('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain');
    if (request.target === '/first') return send(`HTTP/1.1 ${status} Scripted\r\n${response}`);
    await send(switching);
    await new Promise(() => {});
  };
}

function upgradeOf({ authority }: DataPath, target: string): string {
  return head(`GET ${target} HTTP/1.1`, `Host: ${authority}`, ...asking);
}
