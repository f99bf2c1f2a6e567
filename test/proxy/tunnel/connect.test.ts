// CONNECT: which authorities are accepted, when a refusal closes the connection, and what a blind tunnel carries.
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { ClientConnection } from '../../../src/proxy/h1/client-connection.ts';
import { createTestSidecar, type TestSidecar } from '../../support/test-sidecar.ts';
import { WireClient } from '../../support/wire-client.ts';
import { apiRule, createDataPath, errorOf, head, secret } from '../data-path.ts';

/** A TCP server that is neither TLS nor HTTP: sends back what it gets, FIN for FIN. */
async function createMirror(): Promise<
  AsyncDisposable & { port: number; sockets: Socket[]; received: () => string }
> {
  const sockets: Socket[] = [];
  let received = '';
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket);
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
      socket.write(chunk);
    });
    socket.on('end', () => socket.end('bye'));
    socket.on('error', () => socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    sockets,
    received: () => received,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

describe('an invalid CONNECT', () => {
  let proxy: TestSidecar;
  beforeAll(async () => {
    proxy = await createTestSidecar();
  });
  afterAll(() => proxy[Symbol.asyncDispose]());

  const rows: readonly (readonly [string, string, string, number])[] = [
    ['no port', 'CONNECT good.test HTTP/1.1', 'authority_invalid', 400],
    ['an empty port', 'CONNECT good.test: HTTP/1.1', 'authority_invalid', 400],
    ['a port with a leading zero', 'CONNECT good.test:0443 HTTP/1.1', 'authority_invalid', 400],
    ['port 0', 'CONNECT good.test:0 HTTP/1.1', 'authority_invalid', 400],
    ['a port beyond 65535', 'CONNECT good.test:99999 HTTP/1.1', 'authority_invalid', 400],
    ['two ports', 'CONNECT good.test:443:443 HTTP/1.1', 'authority_invalid', 400],
    ['a signed port', 'CONNECT good.test:+443 HTTP/1.1', 'authority_invalid', 400],
    ['a service name for a port', 'CONNECT good.test:https HTTP/1.1', 'authority_invalid', 400],
    ['userinfo', 'CONNECT u@good.test:443 HTTP/1.1', 'authority_invalid', 400],
    ['two trailing dots', 'CONNECT good.test..:443 HTTP/1.1', 'authority_invalid', 400],
    ['an empty label', 'CONNECT good..test:443 HTTP/1.1', 'authority_invalid', 400],
    ['an escape', 'CONNECT evil.test%00.good.test:443 HTTP/1.1', 'authority_invalid', 400],
    ['a wide dot in UTF-8', 'CONNECT good\u00e3\u0080\u0082test:443 HTTP/1.1', 'malformed_request', 400],
    ['a NUL', 'CONNECT evil.test\0.good.test:443 HTTP/1.1', 'malformed_request', 400],
    ['IPv6 without brackets', 'CONNECT ::1:443 HTTP/1.1', 'authority_invalid', 400],
    ['IPv6 with a zone', 'CONNECT [fe80::1%25lo]:443 HTTP/1.1', 'authority_invalid', 400],
    ['an address in short form', 'CONNECT 127.1:443 HTTP/1.1', 'authority_invalid', 400],
    ['an address as a number', 'CONNECT 2130706433:443 HTTP/1.1', 'authority_invalid', 400],
    ['an address in octal', 'CONNECT 0177.0.0.1:443 HTTP/1.1', 'authority_invalid', 400],
    ['an address in hexadecimal', 'CONNECT 0x7f.1:443 HTTP/1.1', 'authority_invalid', 400],
    ['a URL', 'CONNECT http://good.test:443/ HTTP/1.1', 'authority_invalid', 400],
    ['a path', 'CONNECT good.test:443/x HTTP/1.1', 'authority_invalid', 400],
    ['origin-form', 'CONNECT /healthz HTTP/1.1', 'authority_invalid', 400],
    ['an asterisk', 'CONNECT * HTTP/1.1', 'authority_invalid', 400],
    ['a length', 'CONNECT good.test:443 HTTP/1.1\r\nContent-Length: 5', 'malformed_request', 400],
    [
      'two lengths of zero',
      'CONNECT good.test:443 HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 0',
      'malformed_request',
      400,
    ],
    ['a coding', 'CONNECT good.test:443 HTTP/1.1\r\nTransfer-Encoding: chunked', 'malformed_request', 400],
    ['another version', 'CONNECT good.test:443 HTTP/2.0', 'version_refused', 505],
    ['no version', 'CONNECT good.test:443', 'malformed_request', 400],
    ['a closed port', 'CONNECT 192.0.2.1:22 HTTP/1.1', 'port_denied', 403],
  ];
  it.each(rows)('with %s is refused, and the connection closes', async (_, line, code, status) => {
    const before = proxy.records().length;
    await using client = await WireClient.connect(proxy.port);
    await client.send(`${line}\r\nHost: good.test\r\n\r\n`);
    const response = await client.readResponse();
    expect([response.head.status, errorOf(response.head)]).toEqual([status, code]);
    expect(response.head.headers).toContainEqual(['Connection', 'close']);
    expect(await client.readToEnd()).toBe('');
    expect(await proxy.record(before)).toMatchObject({ outcome: 'refused', reason: code, status });
    expect(proxy.lookups).toEqual([]);
  });

  it('gets nothing after its refusal: what follows is no request (RFC 9931)', async () => {
    const before = proxy.records().length;
    await using client = await WireClient.connect(proxy.port);
    await client.send(
      `CONNECT good.test HTTP/1.1\r\n\r\n${head('GET http://127.0.0.1:1/ HTTP/1.1', 'Host: 127.0.0.1:1')}`,
    );
    const all = await client.readToEnd();
    expect(all.match(/^HTTP\/1\.1 /gm)).toHaveLength(1);
    expect(proxy.records()).toHaveLength(before + 1);
  });
});

describe('a blind tunnel', () => {
  it('opens where the client announces a body of no bytes', async () => {
    await using mirror = await createMirror();
    await using proxy = await createTestSidecar();
    await using client = await WireClient.connect(proxy.port);
    const response = await client.openTunnel(`plain.test:${mirror.port}`, ['Content-Length: 0']);
    expect(response.status).toBe(200);
    await client.send('hello');
    expect(await client.readThrough('hello')).toBe('hello');
    client.end();
    expect(await client.readToEnd()).toBe('bye');
  });

  it('carries bytes that are neither TLS nor HTTP, and FIN in each direction', async () => {
    await using mirror = await createMirror();
    await using proxy = await createTestSidecar();
    await using client = await WireClient.connect(proxy.port);
    const response = await client.openTunnel(`plain.test:${mirror.port}`);
    expect(response.text).toBe('HTTP/1.1 200 Connection established\r\n\r\n');
    await client.send('\x00\xffhello');
    expect(await client.readThrough('hello')).toBe('\x00\xffhello');
    client.end();
    expect(await client.readToEnd()).toBe('bye');
    expect(await proxy.record(0)).toMatchObject({
      method: 'CONNECT',
      scheme: 'tunnel',
      authority: `plain.test:${mirror.port}`,
      outcome: 'tunnelled',
      reason: 'no_match',
      status: 200,
      bytes_up: 7,
      bytes_down: 10,
    });
  });

  it('takes what the client sent behind its CONNECT, after the 200', async () => {
    await using mirror = await createMirror();
    await using proxy = await createTestSidecar();
    await using client = await WireClient.connect(proxy.port);
    await client.send(`${head(`CONNECT plain.test:${mirror.port} HTTP/1.1`)}early`);
    expect((await client.readHead()).status).toBe(200);
    expect(await client.readThrough('early')).toBe('early');
  });

  it('is refused if the client sent more than the limit ahead of the 200: no byte may be lost', async () => {
    await using mirror = await createMirror();
    await using proxy = await createTestSidecar();
    await using client = await WireClient.connect(proxy.port);
    const early = 'x'.repeat(20_000);
    await client.send(`${head(`CONNECT plain.test:${mirror.port} HTTP/1.1`)}${early}`);
    const response = await client.readResponse();
    expect([response.head.status, errorOf(response.head)]).toEqual([400, 'malformed_request']);
    expect(mirror.received()).toBe('');
    expect(await proxy.record(0)).toMatchObject({ outcome: 'refused', cause: 'too_much_before_200' });
  });

  it('accepts HTTP/1.0 without Host, as old clients send it', async () => {
    await using mirror = await createMirror();
    await using proxy = await createTestSidecar();
    await using client = await WireClient.connect(proxy.port);
    await client.send(`CONNECT plain.test:${mirror.port} HTTP/1.0\r\n\r\n`);
    expect((await client.readHead()).status).toBe(200);
    await client.send('x');
    expect(await client.readThrough('x')).toBe('x');
  });

  it('is released if its end cannot be recorded, and the process goes on', async () => {
    await using mirror = await createMirror();
    await using proxy = await createTestSidecar();
    await using client = await WireClient.connect(proxy.port);
    await client.openTunnel(`plain.test:${mirror.port}`);
    const failing = vi.spyOn(ClientConnection.prototype, 'record').mockImplementationOnce(() => {
      throw new TypeError('a defect of the proxy');
    });
    client.end();
    expect(await client.readToEnd()).toBe('bye');
    await expect.poll(() => failing.mock.contexts).toHaveLength(1);
    const [connection] = failing.mock.contexts as readonly ClientConnection[];
    failing.mockRestore();
    await connection?.closed;
    expect(proxy.lines).toContainEqual(expect.objectContaining({ msg: 'tunnel failed', error: 'TypeError' }));
  });

  it('ends on both sides when the client resets', async () => {
    await using mirror = await createMirror();
    await using proxy = await createTestSidecar();
    await using client = await WireClient.connect(proxy.port);
    await client.openTunnel(`plain.test:${mirror.port}`);
    await client.send('x');
    await client.readThrough('x');
    const closed = new Promise((resolve) => mirror.sockets[0]?.once('close', resolve));
    client.reset();
    await closed;
    expect(await proxy.record(0)).toMatchObject({ outcome: 'tunnelled', reason: 'reset' });
  });

  it('ends on both sides when the upstream resets', async () => {
    await using mirror = await createMirror();
    await using proxy = await createTestSidecar();
    await using client = await WireClient.connect(proxy.port);
    await client.openTunnel(`plain.test:${mirror.port}`);
    await client.send('x');
    await client.readThrough('x');
    mirror.sockets[0]?.resetAndDestroy();
    expect(await client.finished).toMatch(/^(end|ECONNRESET)$/);
    expect(await proxy.record(0)).toMatchObject({ outcome: 'tunnelled', reason: 'reset' });
  });

  it.each([
    ['silent', 'idle', false],
    ['half-closed and silent', 'half_closed_idle', true],
  ])('that is %s ends at its limit', async (_, reason, isHalfClosed) => {
    await using proxy = await createTestSidecar({
      config: { timeouts: isHalfClosed ? { half_closed_ms: 30 } : { tunnel_idle_ms: 30 } },
    });
    const sockets: Socket[] = [];
    const server = createServer({ allowHalfOpen: true }, (socket) => void sockets.push(socket));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    await using client = await WireClient.connect(proxy.port);
    await client.openTunnel(`plain.test:${(server.address() as AddressInfo).port}`);
    if (isHalfClosed) client.end();
    expect(await proxy.record(0)).toMatchObject({ outcome: 'tunnelled', reason });
    for (const socket of sockets) socket.destroy();
    server.close();
  });

  it('is recorded once when the client leaves before the upstream is connected', async () => {
    const asked = Promise.withResolvers<void>();
    const response = Promise.withResolvers<string[]>();
    const names = {
      get 'silent.test'() {
        asked.resolve();
        return response.promise;
      },
    };
    await using proxy = await createTestSidecar({ names });
    await using client = await WireClient.connect(proxy.port);
    await client.send(head('CONNECT silent.test:443 HTTP/1.1'));
    await asked.promise;
    client.reset();
    expect(await proxy.record(0)).toMatchObject({
      outcome: 'failed',
      reason: 'client_gone',
      method: 'CONNECT',
    });
    response.resolve([]);
  });

  it.each([
    ['a name without an address', ['nowhere.test:443'], 502, 'dns_failed'],
    ['a port where nobody listens', ['plain.test:1'], 502, 'upstream_unreachable'],
  ])('to %s is refused after the attempt', async (_, [authority = ''], status, code) => {
    await using proxy = await createTestSidecar({ names: { 'nowhere.test': new Error('ENOTFOUND') } });
    await using client = await WireClient.connect(proxy.port);
    await client.send(head(`CONNECT ${authority} HTTP/1.1`));
    const response = await client.readResponse();
    expect([response.head.status, errorOf(response.head)]).toEqual([status, code]);
    expect(await client.readToEnd()).toBe('');
  });
});

describe('a tunnel is blind or intercepted', () => {
  it('a host of a rule is intercepted on any port, without being dialled first', async () => {
    await using proxy = await createTestSidecar({
      proxyConfig: { rules: [apiRule] },
      secrets: { TOKEN: secret },
    });
    await using client = await WireClient.connect(proxy.port);
    expect((await client.openTunnel('api.test:1')).status).toBe(200);
    expect(proxy.lookups).toEqual([]);
  });

  it('no_proxy wins over a rule, and is recorded as the reason', async () => {
    await using path = await createDataPath({
      proxyConfig: { rules: [apiRule], no_proxy: ['api.test'] },
      isClear: true,
    });
    const client = await path.plain();
    await client.openTunnel(path.authority);
    await client.send(head('GET / HTTP/1.1', 'Host: whatever'));
    expect((await client.readResponse()).head.status).toBe(200);
    expect(path.origin.requests[0]?.headers).toEqual([['Host', 'whatever']]);
    client.end();
    await client.finished;
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'tunnelled', reason: 'no_proxy' });
  });

  it('access_control is checked before everything, and before DNS', async () => {
    await using proxy = await createTestSidecar({
      proxyConfig: { access_control: { deny_list: ['*.evil.test', '127.0.0.9'] } },
    });
    for (const authority of ['a.evil.test:443', '127.0.0.9:443']) {
      await using client = await WireClient.connect(proxy.port);
      await client.send(head(`CONNECT ${authority} HTTP/1.1`));
      expect(errorOf((await client.readResponse()).head)).toBe('access_denied');
    }
    expect(proxy.lookups).toEqual([]);
  });

  it('an address in the deny_list is refused for a name that resolves to it too', async () => {
    await using proxy = await createTestSidecar({
      proxyConfig: { access_control: { deny_list: ['127.0.0.0/8'] } },
    });
    await using client = await WireClient.connect(proxy.port);
    await client.send(head('CONNECT innocent.test:443 HTTP/1.1'));
    expect(errorOf((await client.readResponse()).head)).toBe('access_denied');
  });

  it('a deny_list entry with a port denies its addresses on that port alone', async () => {
    await using mirror = await createMirror();
    await using denied = await createMirror();
    await using proxy = await createTestSidecar({
      proxyConfig: { access_control: { deny_list: [`127.0.0.0/8:${denied.port}`] } },
    });
    for (const [port, status] of [
      [denied.port, 403],
      [mirror.port, 200],
    ]) {
      await using client = await WireClient.connect(proxy.port);
      await client.send(head(`CONNECT other.test:${port} HTTP/1.1`));
      expect((await client.readHead()).status).toBe(status);
    }
  });
});

describe('the proxy itself', () => {
  const rows: readonly (readonly [string, (port: number) => string])[] = [
    ['by its address', (port) => `127.0.0.1:${port}`],
    ['as localhost', (port) => `localhost:${port}`],
    ['by a name that resolves to it', (port) => `self.test:${port}`],
    ['as an IPv4 address inside an IPv6 one', (port) => `[::ffff:127.0.0.1]:${port}`],
  ];
  it.each(rows)('is not reached through itself %s, whatever is allowed', async (_, authority) => {
    await using proxy = await createTestSidecar({ config: { egress: { allow_private: ['all'] } } });
    const target = authority(proxy.port);
    expect(proxy.apply({ access_control: { allow_list: [target] } })).toMatchObject({ ok: true });
    await using client = await WireClient.connect(proxy.port);
    await client.send(head(`CONNECT ${target} HTTP/1.1`));
    const response = await client.readResponse();
    expect([response.head.status, errorOf(response.head)]).toEqual([403, 'address_denied']);
  });
});
