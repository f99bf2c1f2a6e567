// The heads around an upgrade, byte for byte: the fields of the WebSocket handshake are forwarded unread, and what
// comes before or inside the 101 is parsed as strictly as any response.
import { describe, expect, it } from 'vitest';
import { createCallbackEndpoint } from '../../support/callback-endpoint.ts';
import { jsonResponse } from '../../support/recording-origin.ts';
import { createDataPath, type DataPath, errorOf, head, secret } from '../data-path.ts';

const upgrade = ['Connection: Upgrade', 'Upgrade: websocket'];
const switching = head('HTTP/1.1 101 Switching Protocols', ...upgrade);
const asked = [
  'sec-websocket-KEY: dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Version:13',
  'Sec-WebSocket-Protocol: b, a',
  'Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits, x;y="a, b"',
  'Sec-WebSocket-Protocol:   c\t',
  'Sec-WebSocket-Extensions: permessage-deflate',
  'Origin: https://page.test',
  'Cookie: a=b',
];
const responded = [
  'sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=',
  'Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover',
  'Sec-WebSocket-Protocol:  a ',
  'Set-Cookie: c=d',
  'Set-Cookie: e=f',
];

describe('the heads of a websocket', () => {
  it('keep every Sec-WebSocket field as it was written, in its place', async () => {
    await using path = await createDataPath({
      respond: ({ send }) =>
        send(head('HTTP/1.1 101 Switching Protocols', ...upgrade, ...responded)).then(() => never()),
    });
    const client = await path.tunnel();
    await client.send(head('GET /ws HTTP/1.1', `Host: ${path.authority}`, ...upgrade, ...asked));
    expect((await client.readHead()).text).toBe(
      head('HTTP/1.1 101 Switching Protocols', ...responded, ...upgrade),
    );
    expect(path.origin.requests[0]?.head).toBe(
      head(
        'GET /ws HTTP/1.1',
        `Host: ${path.authority}`,
        ...asked,
        ...upgrade,
        `Authorization: Bearer ${secret}`,
      ),
    );
  });

  it('lose their hop-by-hop fields, in both directions', async () => {
    const hop = ['Keep-Alive: timeout=5', 'X-Hop: 1', 'Proxy-Connection: keep-alive'];
    await using path = await createDataPath({
      respond: ({ send }) =>
        send(
          head(
            'HTTP/1.1 101 X',
            'Connection: upgrade, x-hop',
            'Upgrade: WebSocket',
            ...hop,
            'Alt-Svc: h3=":1"',
          ),
        ).then(() => never()),
    });
    const client = await path.tunnel();
    await client.send(
      head(
        'GET / HTTP/1.1',
        `Host: ${path.authority}`,
        'Connection: X-Hop, Upgrade',
        'Upgrade: WebSocket',
        ...hop,
      ),
    );
    expect((await client.readHead()).text).toBe(head('HTTP/1.1 101 X', ...upgrade));
    expect(path.origin.requests[0]?.headers.map(([name]) => name)).toEqual([
      'Host',
      'Connection',
      'Upgrade',
      'Authorization',
    ]);
  });

  it('wait for the callback that brings the credential, and so do early frames', async () => {
    const gate = Promise.withResolvers<void>();
    const called = Promise.withResolvers<void>();
    await using endpoint = await createCallbackEndpoint(async ({ send }) => {
      called.resolve();
      await gate.promise;
      await send(jsonResponse({ headers: { 'X-Key': 'minted' } }));
    });
    await using path = await createDataPath({
      proxyConfig: { callbacks: [{ match_hosts: ['api.test'], url: endpoint.url, ttl_seconds: 60 }] },
      respond: async ({ send, reader }) => {
        await send(switching);
        await send((await reader.readThrough('early')) ?? '');
        await never();
      },
    });
    const client = await path.tunnel();
    await client.send(`${ask(path)}early`);
    await called.promise;
    expect(path.origin.connections).toBe(0);
    gate.resolve();
    expect((await client.readHead()).status).toBe(101);
    expect(await client.readThrough('early')).toBe('early');
    expect(path.origin.requests[0]?.headers).toContainEqual(['X-Key', 'minted']);
  });
});

describe('a 101', () => {
  it('may come byte by byte, with the first frames behind it', async () => {
    await using path = await createDataPath({
      respond: async ({ send }) => {
        for (const byte of `${switching}frames`) await send(byte);
        await never();
      },
    });
    const client = await path.tunnel();
    await client.send(ask(path));
    expect((await client.readHead()).status).toBe(101);
    expect(await client.readThrough('frames')).toBe('frames');
  });

  it('may follow other interim responses', async () => {
    const hints = head('HTTP/1.1 103 Early Hints', `Link: <${secret}>`);
    await using path = await createDataPath({
      respond: ({ send }) => send(`${hints}${switching}frames`).then(() => never()),
    });
    const client = await path.tunnel();
    await client.send(ask(path));
    const { status, text } = await client.readHead();
    expect([status, text.includes(secret)]).toEqual([103, false]);
    expect((await client.readHead()).status).toBe(101);
    expect(await client.readThrough('frames')).toBe('frames');
  });

  it('may have a Content-Length of zero, which is not forwarded', async () => {
    await using path = await createDataPath({
      respond: ({ send }) =>
        send(`${head('HTTP/1.1 101 X', ...upgrade, 'Content-Length: 0')}frames`).then(() => never()),
    });
    const client = await path.tunnel();
    await client.send(ask(path));
    expect((await client.readHead()).text).toBe(head('HTTP/1.1 101 X', ...upgrade));
    expect(await client.readThrough('frames')).toBe('frames');
  });

  it.each([
    ['that asks for proxy credentials', 'Proxy-Authenticate: Basic', 'upstream_asks_proxy_auth'],
    ['with a length', 'Content-Length: 5', 'upstream_malformed'],
    ['with chunks', 'Transfer-Encoding: chunked', 'upstream_malformed'],
    ['with a space before a colon', 'X-A : 1', 'upstream_malformed'],
    ['with two Upgrade fields', 'Upgrade: websocket', 'upstream_malformed'],
  ])('%s is refused', async (_, field, code) => {
    await using path = await createDataPath({
      respond: ({ send }) => send(head('HTTP/1.1 101 X', ...upgrade, field)).then(() => never()),
    });
    const client = await path.tunnel();
    await client.send(`${ask(path)}early`);
    const { head: response } = await client.readResponse();
    expect([response.status, errorOf(response)]).toEqual([502, code]);
    expect(path.origin.transcripts.join('')).not.toContain('early');
  });

  it('whose client is gone closes the connection to the upstream', async () => {
    const left = Promise.withResolvers<string>();
    await using path = await createDataPath({
      respond: async ({ reader }) => left.resolve(await reader.finished),
    });
    const client = await path.tunnel();
    await client.send(ask(path));
    await path.origin.request(0);
    client.reset();
    expect(await left.promise).toMatch(/^(end|ECONNRESET)$/);
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'failed', reason: 'client_gone' });
  });
});

function ask({ authority }: DataPath): string {
  return head('GET /ws HTTP/1.1', `Host: ${authority}`, ...upgrade, 'Sec-WebSocket-Key: k');
}

function never(): Promise<void> {
  return new Promise(() => {});
}
