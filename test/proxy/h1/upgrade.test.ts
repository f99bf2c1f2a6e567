// Upgrades: only websocket, only after a 101 to our own upgrade, and no byte of the client's before it.
import { describe, expect, it } from 'vitest';
import type { Exchange } from '../../support/recording-origin.ts';
import { createDataPath, errorOf, head, secret } from '../data-path.ts';

const switching =
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n';
const asking = [
  'Connection: keep-alive, Upgrade',
  'Upgrade: WebSocket',
  'Sec-WebSocket-Key: k',
  'Sec-WebSocket-Version: 13',
];
const empty = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';

/** 101, then every byte back. */
async function mirror({ send, reader }: Exchange): Promise<void> {
  await send(`${switching}hi`);
  for (let piece = await reader.readSome(); piece !== undefined; piece = await reader.readSome())
    await send(piece);
}

describe('a websocket', () => {
  it('is requested with the credential and carries bytes unchanged, both ways, until both ends have ended', async () => {
    await using path = await createDataPath({ respond: mirror });
    const client = await path.tunnel();
    await client.send(head('GET /ws?token HTTP/1.1', `Host: ${path.authority}`, ...asking));
    const response = await client.readHead();
    expect([response.status, response.headers]).toEqual([
      101,
      [
        ['Sec-WebSocket-Accept', 'x'],
        ['Connection', 'Upgrade'],
        ['Upgrade', 'websocket'],
      ],
    ]);
    expect(path.origin.requests[0]?.headers).toEqual([
      ['Host', path.authority],
      ['Sec-WebSocket-Key', 'k'],
      ['Sec-WebSocket-Version', '13'],
      ['Connection', 'Upgrade'],
      ['Upgrade', 'websocket'],
      ['Authorization', `Bearer ${secret}`],
    ]);
    expect(await client.readThrough('hi')).toBe('hi');
    // The secret itself passes here: behind the 101 there is no head to mask.
    const bytes = `\x00\xff\r\n\r\n${secret}HTTP/1.1 200 OK`;
    await client.send(bytes);
    expect(await client.readThrough('OK')).toBe(bytes);
    client.end();
    expect(await client.readToEnd()).toBe('');
    expect(await path.proxy.record(0)).toMatchObject({
      outcome: 'upgraded',
      status: 101,
      rule: 'api',
      injected: ['Authorization'],
      path: '/ws',
    });
    expect(path.proxy.records()).toHaveLength(1);
  });

  it('gets early bytes of the client only behind its 101', async () => {
    const gate = Promise.withResolvers<void>();
    await using path = await createDataPath({
      respond: async (exchange) => {
        await gate.promise;
        await mirror(exchange);
      },
    });
    const client = await path.tunnel();
    await client.send(`${head('GET /ws HTTP/1.1', `Host: ${path.authority}`, ...asking)}early`);
    await path.origin.request(0);
    expect(path.origin.transcripts[0]).toMatch(/\r\n\r\n$/);
    gate.resolve();
    expect((await client.readHead()).status).toBe(101);
    expect(await client.readThrough('early')).toBe('hiearly');
  });

  it('whose client sent too much ahead of its 101 is closed: bytes of the stream are missing', async () => {
    const gate = Promise.withResolvers<void>();
    await using path = await createDataPath({
      respond: async (exchange) => {
        await gate.promise;
        await mirror(exchange);
      },
    });
    const client = await path.tunnel();
    await client.send(head('GET /ws HTTP/1.1', `Host: ${path.authority}`, ...asking) + 'x'.repeat(20_000));
    await path.origin.request(0);
    gate.resolve();
    expect(await client.finished).toMatch(/^(end|ECONNRESET)$/);
    expect(client.transcript).toMatch(/^HTTP\/1\.1 400 /);
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'refused', cause: 'too_much_before_101' });
    expect(path.origin.transcripts[0]).toMatch(/\r\n\r\n$/);
  });

  it('that the host refuses goes on as HTTP, and what followed is the next request', async () => {
    await using path = await createDataPath({
      respond: ({ request, send }) =>
        send(request.target === '/ws' ? 'HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno' : empty),
    });
    const client = await path.tunnel();
    await client.send(
      head('GET /ws HTTP/1.1', `Host: ${path.authority}`, ...asking) +
        head('GET /next HTTP/1.1', `Host: ${path.authority}`),
    );
    const response = await client.readResponse();
    expect([response.head.status, response.text]).toEqual([403, 'no']);
    expect((await client.readHead()).status).toBe(200);
    expect(path.origin.requests.map(({ target }) => target)).toEqual(['/ws', '/next']);
  });

  it('is requested on a connection of its own', async () => {
    await using path = await createDataPath({
      respond: (exchange) => (exchange.request.target === '/ws' ? mirror(exchange) : exchange.send(empty)),
    });
    const client = await path.tunnel();
    await client.send(head('GET / HTTP/1.1', `Host: ${path.authority}`));
    await client.readHead();
    await client.send(head('GET /ws HTTP/1.1', `Host: ${path.authority}`, ...asking));
    expect((await client.readHead()).status).toBe(101);
    expect(path.origin.requests.map(({ connection }) => connection)).toEqual([0, 1]);
  });

  it.each([
    ['the client', (client: { reset(): void }) => client.reset(), undefined],
    ['the host', undefined, (exchange: Exchange) => exchange.reset()],
  ])('ends on both sides when %s resets', async (_, byClient, byHost) => {
    const gate = Promise.withResolvers<void>();
    const left = Promise.withResolvers<unknown>();
    await using path = await createDataPath({
      respond: async (exchange) => {
        await exchange.send(switching);
        await gate.promise;
        if (byHost) byHost(exchange);
        left.resolve(await exchange.reader.finished);
      },
    });
    const client = await path.tunnel();
    await client.send(head('GET /ws HTTP/1.1', `Host: ${path.authority}`, ...asking));
    await client.readHead();
    gate.resolve();
    byClient?.(client);
    await left.promise;
    expect(await client.finished).toMatch(/^(end|ECONNRESET|read ECONNRESET)$/);
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'upgraded', reason: 'reset' });
  });

  it('that is silent ends at the idle timeout of tunnels', async () => {
    await using path = await createDataPath({
      config: { timeouts: { tunnel_idle_ms: 50 } },
      respond: mirror,
    });
    const client = await path.tunnel();
    await client.send(head('GET /ws HTTP/1.1', `Host: ${path.authority}`, ...asking));
    await client.readHead();
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'upgraded', reason: 'idle' });
  });
});

describe('an upgrade that is no websocket', () => {
  it.each([
    ['h2c', ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__']],
    ['TLS', ['Connection: Upgrade', 'Upgrade: TLS/1.2']],
    ['a choice of two', ['Connection: Upgrade', 'Upgrade: websocket, h2c']],
    ['two fields', ['Connection: Upgrade', 'Upgrade: websocket', 'Upgrade: h2c']],
    ['one that Connection does not list', ['Upgrade: websocket']],
  ])('(%s) is forwarded as the request without it', async (_, fields) => {
    await using path = await createDataPath();
    const client = await path.tunnel();
    await client.send(head('GET / HTTP/1.1', `Host: ${path.authority}`, ...fields));
    expect((await client.readResponse()).head.status).toBe(200);
    expect(path.origin.requests[0]?.headers).toEqual([
      ['Host', path.authority],
      ['Authorization', `Bearer ${secret}`],
    ]);
  });
});

describe('a 101', () => {
  it.each([
    ['that nobody asked for', [], switching],
    [
      'to an upgrade that was not sent on',
      ['Connection: Upgrade', 'Upgrade: h2c'],
      switching.replace('websocket', 'h2c'),
    ],
    ['to another protocol', asking, switching.replace('websocket', 'h2c')],
    ['without Connection', asking, switching.replace('Connection: Upgrade\r\n', '')],
    ['without Upgrade', asking, switching.replace('Upgrade: websocket\r\n', '')],
  ])('%s is a 502, and no byte of the client passes', async (_, fields, sent) => {
    await using path = await createDataPath({
      respond: ({ send }) => send(sent).then(() => new Promise(() => {})),
    });
    const client = await path.tunnel();
    await client.send(`${head('GET /x HTTP/1.1', `Host: ${path.authority}`, ...fields)}GET /smuggled`);
    const { head: response } = await client.readResponse();
    expect([response.status, errorOf(response)]).toEqual([502, 'upstream_malformed']);
    expect(path.origin.transcripts.join('')).not.toContain('smuggled');
  });
});
