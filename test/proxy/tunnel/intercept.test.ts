// Inside an intercepted tunnel: the CONNECT authority decides on the upstream, and everything else that names a host must
// agree with it. A request that does not reaches no upstream.
import { once } from 'node:events';
import { connect as connectTls } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { createOrigin } from '../../support/recording-origin.ts';
import { createTestSidecar } from '../../support/test-sidecar.ts';
import { WireClient } from '../../support/wire-client.ts';
import { apiRule, createDataPath, errorOf, head, origins, secret } from '../data-path.ts';

const unrecognizedName = Buffer.from([21, 3, 3, 0, 2, 2, 112]).toString('latin1');
const decodeError = Buffer.from([21, 3, 3, 0, 2, 2, 50]).toString('latin1');

/** The first flight of a TLS client that asks for `serverName`, as bytes. */
async function clientHello(serverName: string | undefined): Promise<Buffer> {
  const { Duplex } = await import('node:stream');
  const { promise, resolve } = Promise.withResolvers<Buffer>();
  const wire = new Duplex({ read() {}, write: (chunk: Buffer, _, done) => (resolve(chunk), done()) });
  const socket = connectTls({
    socket: wire,
    ...(serverName === undefined ? {} : { servername: serverName }),
  });
  socket.on('error', () => {});
  const hello = await promise;
  socket.destroy();
  return hello;
}

describe('the credential', () => {
  it('is injected into a request inside an intercepted tunnel', async () => {
    await using path = await createDataPath();
    const client = await path.tunnel();
    await client.send(head('GET /v1/x HTTP/1.1', `Host: ${path.authority}`, 'Authorization: mine'));
    expect((await client.readResponse()).head.status).toBe(200);
    expect(path.origin.requests[0]?.headers).toEqual([
      ['Host', path.authority],
      ['Authorization', `Bearer ${secret}`],
    ]);
    expect(await path.proxy.record(0)).toMatchObject({
      rule: 'api',
      outcome: 'injected',
      injected: ['Authorization'],
    });
  });
});

describe('a request that names another host than its tunnel', () => {
  const rows: readonly (readonly [string, string, (port: number) => readonly string[], number, string])[] = [
    ['Host of another host', '/', (port) => [`Host: other.test:${port}`], 421, 'authority_mismatch'],
    ['Host without the port of the tunnel', '/', () => ['Host: api.test'], 421, 'authority_mismatch'],
    [
      'Host of the address behind the name',
      '/',
      (port) => [`Host: 127.0.0.1:${port}`],
      421,
      'authority_mismatch',
    ],
    ['no Host', '/', () => [], 400, 'host_invalid'],
    ['two Hosts', '/', (port) => [`Host: api.test:${port}`, `Host: api.test:${port}`], 400, 'host_invalid'],
    ['a list in Host', '/', (port) => [`Host: api.test:${port}, other.test`], 400, 'host_invalid'],
    ['an empty Host', '/', () => ['Host:'], 400, 'host_invalid'],
    ['userinfo in Host', '/', (port) => [`Host: u@api.test:${port}`], 400, 'host_invalid'],
    [
      'absolute-form of another host',
      'https://other.test/',
      (port) => [`Host: api.test:${port}`],
      421,
      'authority_mismatch',
    ],
    [
      'absolute-form of http',
      'http://api.test/',
      (port) => [`Host: api.test:${port}`],
      400,
      'target_invalid',
    ],
  ];
  it.each(rows)(
    '%s: refused, nothing at the origin, connection closed',
    async (_, target, fields, status, code) => {
      await using path = await createDataPath();
      const client = await path.tunnel();
      await client.send(head(`GET ${target} HTTP/1.1`, ...fields(path.origin.port)));
      const response = await client.readResponse();
      expect([response.head.status, errorOf(response.head)]).toEqual([status, code]);
      expect(await client.readToEnd()).toBe('');
      expect(path.origin.connections).toBe(0);
      expect(path.proxy.lookups).toEqual([]);
      const record = await path.proxy.record(0);
      expect(record).toMatchObject({
        outcome: 'refused',
        reason: code,
        status,
        authority: path.authority,
        scheme: 'https',
      });
    },
  );
});

describe('a request that agrees with its tunnel', () => {
  it.each([
    ['in capitals and with a trailing dot', 'API.Test.'],
    ['as it is', 'api.test'],
  ])('keeps the bytes of its Host, %s', async (_, name) => {
    await using path = await createDataPath();
    const client = await path.tunnel();
    await client.send(head('GET / HTTP/1.1', `hOST:   ${name}:${path.origin.port}\t`));
    expect((await client.readResponse()).head.status).toBe(200);
    expect(path.origin.requests[0]?.head).toContain(`\r\nhOST:   ${name}:${path.origin.port}\t\r\n`);
  });

  it('in absolute-form is forwarded in origin-form', async () => {
    await using path = await createDataPath();
    const client = await path.tunnel();
    await client.send(head(`GET https://${path.authority}/v1/x?q HTTP/1.1`, `Host: ${path.authority}`));
    expect((await client.readResponse()).head.status).toBe(200);
    expect(path.origin.requests[0]?.head).toMatch(/^GET \/v1\/x\?q HTTP\/1\.1\r\n/);
  });

  it('on HTTP/1.0 without Host gets one', async () => {
    await using path = await createDataPath();
    const client = await path.tunnel();
    await client.send('GET / HTTP/1.0\r\n\r\n');
    expect((await client.readResponse()).head.status).toBe(200);
    expect(path.origin.requests[0]?.headers).toEqual([
      ['Host', path.authority],
      ['Connection', 'close'],
      ['Authorization', `Bearer ${secret}`],
    ]);
    expect(await client.readToEnd()).toBe('');
  });

  it('is checked each time: the second must not go to another host', async () => {
    await using path = await createDataPath();
    const client = await path.tunnel();
    await client.send(head('GET /1 HTTP/1.1', `Host: ${path.authority}`));
    expect((await client.readResponse()).head.status).toBe(200);
    await client.send(head('GET /2 HTTP/1.1', 'Host: other.test'));
    expect((await client.readResponse()).head.status).toBe(421);
    expect(path.origin.requests.map(({ target }) => target)).toEqual(['/1']);
  });
});

describe('a CONNECT authority', () => {
  it.each(['API.TEST', 'api.test.', 'Api.Test.'])('spelled %s is the same host', async (name) => {
    await using path = await createDataPath();
    const client = await WireClient.connectThrough(path.proxy.port, `${name}:${path.origin.port}`, {
      ca: path.proxy.caPem,
      name: 'api.test',
    });
    await using _ = client;
    await client.send(head('GET / HTTP/1.1', `Host: ${path.authority}`));
    expect((await client.readResponse()).head.status).toBe(200);
    expect(path.origin.requests[0]?.serverName).toBe('api.test');
  });

  it('decides if the CONNECT carries another Host', async () => {
    await using path = await createDataPath();
    await using client = await WireClient.connect(path.proxy.port);
    await client.send(head(`CONNECT ${path.authority} HTTP/1.1`, 'Host: other.test:1'));
    expect((await client.readHead()).status).toBe(200);
    await client.startTls({ ca: path.proxy.caPem, name: 'api.test' });
    await client.send(head('GET / HTTP/1.1', `Host: ${path.authority}`));
    expect((await client.readResponse()).head.status).toBe(200);
  });
});

describe('the server name of the handshake', () => {
  it.each(['other.test', 'a.api.test', 'test', 'xapi.test'])(
    '%s is rejected by an alert in plaintext',
    async (name) => {
      await using path = await createDataPath();
      const client = await path.plain();
      expect((await client.openTunnel(path.authority)).status).toBe(200);
      await client.send(await clientHello(name));
      expect(await client.readToEnd()).toBe(unrecognizedName);
      expect(path.origin.connections).toBe(0);
      expect(await path.proxy.record(0)).toMatchObject({
        outcome: 'failed',
        reason: 'sni_mismatch',
        authority: path.authority,
      });
    },
  );

  it.each(['API.test', 'api.test.'])('%s agrees', async (name) => {
    await using path = await createDataPath();
    const client = await path.plain();
    await client.openTunnel(path.authority);
    await client.startTls({ ca: path.proxy.caPem, name: 'api.test', serverName: name });
    await client.send(head('GET / HTTP/1.1', `Host: ${path.authority}`));
    expect((await client.readResponse()).head.status).toBe(200);
  });

  it('may be absent: the authority decides', async () => {
    await using path = await createDataPath();
    const client = await path.plain();
    await client.openTunnel(path.authority);
    await client.startTls({ ca: path.proxy.caPem, name: 'api.test', serverName: '' });
    await client.send(head('GET / HTTP/1.1', `Host: ${path.authority}`));
    expect((await client.readResponse()).head.status).toBe(200);
    expect(path.origin.requests[0]?.serverName).toBe('api.test');
  });

  it('is absent for an address, whose leaf carries it as an IP SAN', async () => {
    await using origin = await createOrigin({ tls: { authority: origins, names: ['127.0.0.1'] } });
    await using proxy = await createTestSidecar({
      proxyConfig: { rules: [{ ...apiRule, match_hosts: ['127.0.0.1'] }] },
      secrets: { TOKEN: secret },
      origins,
    });
    const authority = `127.0.0.1:${origin.port}`;
    await using client = await WireClient.connectThrough(proxy.port, authority, {
      ca: proxy.caPem,
      name: '127.0.0.1',
    });
    await client.send(head('GET / HTTP/1.1', `Host: ${authority}`));
    expect((await client.readResponse()).head.status).toBe(200);
    expect(origin.requests[0]).toMatchObject({ serverName: undefined });
    expect(origin.requests[0]?.headers).toContainEqual(['Authorization', `Bearer ${secret}`]);
  });

  it('wrong, from a client that is gone before the alert, harms no other client', async () => {
    await using path = await createDataPath();
    const hello = await clientHello('other.test');
    for (let i = 0; i < 5; i += 1) {
      await using client = await WireClient.connect(path.proxy.port);
      await client.openTunnel(path.authority);
      client.socket.write(hello);
      client.reset();
      expect(await path.proxy.record(i)).toMatchObject({ outcome: 'failed', authority: path.authority });
    }
    const client = await path.tunnel();
    await client.send(head('GET / HTTP/1.1', `Host: ${path.authority}`));
    expect((await client.readResponse()).head.status).toBe(200);
  });
});

describe('bytes that are not TLS, or TLS that we do not support', () => {
  it.each([
    ['a hello cut by a length that lies', Buffer.from([22, 3, 1, 0, 4, 1, 0, 0, 0]), 'hello_malformed'],
    ['a record of another version', Buffer.from([22, 9, 9, 0, 1, 1]), 'record_invalid'],
    ['a server hello', Buffer.from([22, 3, 3, 0, 4, 2, 0, 0, 0]), 'not_client_hello'],
  ])('%s gets the alert decode_error', async (_, bytes, cause) => {
    await using path = await createDataPath();
    const client = await path.plain();
    await client.openTunnel(path.authority);
    await client.send(bytes);
    expect(await client.readToEnd()).toBe(decodeError);
    expect(await path.proxy.record(0)).toMatchObject({
      outcome: 'failed',
      reason: 'client_hello_malformed',
      cause,
    });
  });

  it('neither TLS nor HTTP is closed without a response', async () => {
    await using path = await createDataPath();
    const client = await path.plain();
    await client.openTunnel(path.authority);
    await client.send(Buffer.from([5, 1, 0]));
    expect(await client.finished).toMatch(/^(end|ECONNRESET)$/);
    expect(client.transcript).toMatch(/^HTTP\/1\.1 200 [^\r]+\r\n\r\n$/);
    expect(await path.proxy.record(0)).toMatchObject({ reason: 'not_tls_nor_http' });
  });

  it('silence ends at the deadline', async () => {
    await using path = await createDataPath({ config: { timeouts: { sniff_ms: 20 } } });
    const client = await path.plain();
    await client.openTunnel(path.authority);
    await client.finished;
    expect(await path.proxy.record(0)).toMatchObject({ reason: 'sniff_timeout' });
  });

  it('a ClientHello with nothing behind it ends at the handshake deadline', async () => {
    await using path = await createDataPath({ config: { timeouts: { handshake_ms: 20 } } });
    const client = await path.plain();
    await client.openTunnel(path.authority);
    await client.send(await clientHello('api.test'));
    await client.finished;
    expect(await path.proxy.record(0)).toMatchObject({ reason: 'handshake_timeout' });
  });

  it('a client that offers no protocol that we support gets an alert', async () => {
    await using path = await createDataPath();
    const client = await path.plain();
    await client.openTunnel(path.authority);
    const handshake = client.startTls({ ca: path.proxy.caPem, name: 'api.test', alpn: ['spdy/3', 'h2c'] });
    await expect(handshake).rejects.toThrow(/no.application.protocol/i);
    expect(await path.proxy.record(0)).toMatchObject({ reason: 'alpn_unsupported' });
    expect(path.origin.connections).toBe(0);
  });

  it('a client that offers h2 first gets http/1.1 if the upstream has nothing else', async () => {
    await using path = await createDataPath();
    const client = await path.plain();
    await client.openTunnel(path.authority);
    const secure = await client.startTls({
      ca: path.proxy.caPem,
      name: 'api.test',
      alpn: ['h2', 'http/1.1'],
    });
    expect(secure.alpnProtocol).toBe('http/1.1');
  });
});

describe('a client that leaves', () => {
  it('right after the 200 is recorded', async () => {
    await using path = await createDataPath();
    const client = await path.plain();
    await client.openTunnel(path.authority);
    client.end();
    expect(await path.proxy.record(0)).toMatchObject({ reason: 'client_gone', method: 'CONNECT' });
    await client.finished;
  });

  it('because it does not trust the CA is logged with how to fix it', async () => {
    await using path = await createDataPath();
    const client = await path.plain();
    await client.openTunnel(path.authority);
    await expect(client.startTls({ ca: origins.certificatePem, name: 'api.test' })).rejects.toThrow(
      /certificate/,
    );
    const { reason } = await path.proxy.record(0);
    expect(reason).toMatch(/^(client_distrusts_ca|handshake_aborted)$/);
    if (reason === 'client_distrusts_ca')
      expect(path.proxy.lines).toContainEqual(
        expect.objectContaining({ msg: expect.stringContaining('http://sallyport.internal/env') }),
      );
    expect(path.origin.connections).toBe(0);
  });
});

describe('plain HTTP inside a tunnel', () => {
  it('gets no credential, because no certificate proves the name of the upstream', async () => {
    await using path = await createDataPath({ isClear: true });
    const client = await path.plain();
    await client.openTunnel(path.authority);
    await client.send(head('GET / HTTP/1.1', `Host: ${path.authority}`));
    const response = await client.readResponse();
    expect([response.head.status, errorOf(response.head)]).toEqual([403, 'cleartext_refused']);
    expect(path.origin.connections).toBe(0);
    expect(await path.proxy.record(0)).toMatchObject({
      scheme: 'http',
      outcome: 'refused',
      reason: 'cleartext_refused',
    });
  });

  it('gets it if the operator lists the destination', async () => {
    await using origin = await createOrigin();
    await using proxy = await createTestSidecar({
      proxyConfig: { rules: [apiRule] },
      secrets: { TOKEN: secret },
      config: { inject_cleartext: [`api.test:${origin.port}`] },
    });
    await using client = await WireClient.connect(proxy.port);
    await client.openTunnel(`api.test:${origin.port}`);
    await client.send(head('GET / HTTP/1.1', `Host: api.test:${origin.port}`));
    expect((await client.readResponse()).head.status).toBe(200);
    expect(origin.requests[0]?.headers).toContainEqual(['Authorization', `Bearer ${secret}`]);
  });

  it('may not request https:// there', async () => {
    await using path = await createDataPath({ isClear: true });
    const client = await path.plain();
    await client.openTunnel(path.authority);
    await client.send(head(`GET https://${path.authority}/ HTTP/1.1`, `Host: ${path.authority}`));
    expect(errorOf((await client.readResponse()).head)).toBe('target_invalid');
  });
});

describe('TLS inside the TLS of a tunnel', () => {
  it('is not HTTP and is refused as such', async () => {
    await using path = await createDataPath();
    const client = await path.tunnel();
    await client.send(await clientHello('api.test'));
    expect((await client.readResponse()).head.status).toBe(400);
    expect(path.origin.connections).toBe(0);
  });
});

it('a tunnel whose CONNECT, hello and request come in one segment works as one in three', async () => {
  await using path = await createDataPath();
  await using client = await WireClient.connect(path.proxy.port);
  const { socket } = client;
  await client.send(
    Buffer.concat([
      Buffer.from(head(`CONNECT ${path.authority} HTTP/1.1`, 'Host: x')),
      await clientHello('other.test'),
    ]),
  );
  await once(socket, 'end');
  expect(client.transcript).toMatch(/^HTTP\/1\.1 200 /);
  expect(client.transcript.endsWith(unrecognizedName)).toBe(true);
});
