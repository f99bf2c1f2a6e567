// The test peers must report exactly what was on the wire.
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createCallbackEndpoint } from './callback-endpoint.ts';
import { createOrigin, response } from './recording-origin.ts';
import { createTestAuthority } from './test-authority.ts';
import { WireClient } from './wire-client.ts';

const authority = createTestAuthority();

describe('a recording origin', () => {
  it('stores order, case and bytes of what it receives, and echoes them', async () => {
    await using origin = await createOrigin();
    await using client = await WireClient.connect(origin.port);
    const head = 'POST /a?b=c HTTP/1.1\r\nhOsT: x\r\nA:  1 \r\na: 2\r\nTransfer-Encoding: chunked\r\n\r\n';
    await client.send(`${head}3\r\nabc\r\n0\r\n\r\n`);
    const { head: response, text } = await client.readResponse();
    expect(response.status).toBe(200);
    const headers = [
      ['hOsT', 'x'],
      ['A', '1'],
      ['a', '2'],
      ['Transfer-Encoding', 'chunked'],
    ];
    const sha256 = createHash('sha256').update('abc').digest('hex');
    expect(JSON.parse(text)).toEqual({
      method: 'POST',
      target: '/a?b=c',
      headers,
      body: { length: 3, sha256 },
    });
    expect(origin.requests[0]).toMatchObject({ head, body: { framing: 'chunked' } });
    expect(origin.transcripts).toEqual([`${head}3\r\nabc\r\n0\r\n\r\n`]);
  });

  it('counts connections separately from requests, and closes both ends', async () => {
    await using origin = await createOrigin();
    const client = await WireClient.connect(origin.port);
    for (const path of ['/1', '/2']) {
      await client.send(`GET ${path} HTTP/1.1\r\n\r\n`);
      await client.readResponse();
    }
    expect(origin.requests.map(({ target, connection }) => [target, connection])).toEqual([
      ['/1', 0],
      ['/2', 0],
    ]);
    expect([origin.connections, origin.openConnections]).toEqual([1, 1]);
    client.end();
    expect(await client.finished).toBe('end');
    await client[Symbol.asyncDispose]();
  });

  it('proves the requested name over TLS, and no other', async () => {
    for (const [name, serverName] of [
      ['good.test', 'good.test'],
      ['127.0.0.1', undefined],
    ] as const) {
      await using origin = await createOrigin({ tls: { authority, names: [name] } });
      await using client = await WireClient.connect(origin.port);
      const secure = await client.startTls({ ca: authority.certificatePem, name, alpn: ['h2', 'http/1.1'] });
      expect(secure.alpnProtocol).toBe('http/1.1');
      await client.send('GET / HTTP/1.1\r\n\r\n');
      await client.readResponse();
      expect(origin.requests[0]?.serverName).toBe(serverName);
      await using other = await WireClient.connect(origin.port);
      const handshake = other.startTls({ ca: authority.certificatePem, name: 'other.test' });
      await expect(handshake).rejects.toThrow(/does not match certificate/);
    }
  });

  it('responds by script: in pieces, with a reset, with a delay', async () => {
    const gate = Promise.withResolvers<void>();
    await using origin = await createOrigin({
      tls: { authority, names: ['good.test'] },
      async respond(exchange) {
        await exchange.send('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf.');
        await gate.promise;
        exchange.reset();
      },
    });
    await using client = await WireClient.connect(origin.port);
    await client.startTls({ ca: authority.certificatePem, name: 'good.test' });
    await client.send('GET / HTTP/1.1\r\n\r\n');
    expect((await client.readHead()).status).toBe(200);
    expect(String(await client.readSome())).toBe('half.');
    gate.resolve();
    expect(await client.finished).toBe('ECONNRESET');
  });

  it('detects a client that disconnects with RST', async () => {
    const seen = Promise.withResolvers<string>();
    await using origin = await createOrigin({
      async respond({ reader }) {
        seen.resolve(await reader.finished);
      },
    });
    await using client = await WireClient.connect(origin.port);
    await client.send('GET / HTTP/1.1\r\n\r\n');
    await origin.request(0);
    client.reset();
    expect(await seen.promise).toBe('ECONNRESET');
  });
});

describe('a callback endpoint', () => {
  it('counts its calls and responds by script', async () => {
    await using endpoint = await createCallbackEndpoint({ headers: { 'X-Token': 'a' } });
    await using client = await WireClient.connect(endpoint.port);
    const ask = 'POST /credentials HTTP/1.1\r\nX-Key: k\r\nContent-Length: 22\r\n\r\n{"host":"a","port":44}';
    await client.send(ask);
    expect(JSON.parse((await client.readResponse()).text)).toEqual({ headers: { 'X-Token': 'a' } });
    endpoint.respondWith(response(500, [], 'no'));
    await client.send(ask);
    expect((await client.readResponse()).head.status).toBe(500);
    expect(endpoint.calls).toHaveLength(2);
    expect(endpoint.calls[0]).toMatchObject({ target: '/credentials', body: { host: 'a', port: 44 } });
  });
});
