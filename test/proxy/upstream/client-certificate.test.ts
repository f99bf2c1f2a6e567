// Hosts that want a certificate of their client. One that asks and serves all the same is none of our business; one that ends
// the handshake or the first exchange gets a refusal of its own, over both versions of HTTP and of TLS.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { type SecureVersion, type TLSSocket, type TlsOptions, createServer } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { H2WireClient, refusalOf } from '../../support/h2-wire-client.ts';
import { type TestSidecar, createTestSidecar } from '../../support/test-sidecar.ts';
import { WireClient } from '../../support/wire-client.ts';
import { apiRule, errorOf, head, origins, secret } from '../data-path.ts';

type Host = AsyncDisposable & { readonly port: number; readonly connections: number };

/** Responds to the first bytes of each connection, unless `serve` does something else with it. */
async function createHost(options: TlsOptions, serve: (socket: TLSSocket) => void = respond): Promise<Host> {
  const context = { SNICallback: (name: string, done: Done) => done(null, origins.contextFor(name)) };
  const open = new Set<TLSSocket>();
  let connections = 0;
  const server = createServer({ ...context, ...options }, (socket) => {
    open.add(socket.on('error', () => socket.destroy()));
    serve(socket);
  });
  server.on('connection', () => void (connections += 1));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return connections;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

type Done = Parameters<NonNullable<TlsOptions['SNICallback']>>[1];

function respond(socket: TLSSocket): void {
  socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'));
}

function createProxy(): Promise<TestSidecar> {
  const secrets = { TOKEN: secret };
  return createTestSidecar({ proxyConfig: { rules: [apiRule] }, secrets, origins });
}

/** What a client of HTTP/1.1 gets. */
async function ask(proxy: TestSidecar, { port }: Host): Promise<string> {
  const authority = `api.test:${port}`;
  const trust = { ca: proxy.caPem, name: 'api.test' };
  await using client = await WireClient.connectThrough(proxy.port, authority, trust);
  await client.send(head('GET / HTTP/1.1', `Host: ${authority}`));
  const response = await client.readResponse();
  return [response.head.status, errorOf(response.head)].join(' ').trim();
}

const versions = ['TLSv1.2', 'TLSv1.3'] as const;
const limitedTo = (version: SecureVersion): TlsOptions => ({ minVersion: version, maxVersion: version });
const required = { requestCert: true, rejectUnauthorized: true } as const;
const optional = { requestCert: true, rejectUnauthorized: false } as const;

describe.each(versions)('over %s', (version) => {
  it('a host that requires a certificate is refused by name, after one connection', async () => {
    await using host = await createHost({ ...limitedTo(version), ...required });
    await using proxy = await createProxy();
    expect(await ask(proxy, host)).toBe('502 client_certificate_required');
    expect(await proxy.record(0)).toMatchObject({
      outcome: 'failed',
      reason: 'client_certificate_required',
    });
    expect(host.connections).toBe(1);
  });

  it('a host that asks for a certificate and closes without one is refused by name', async () => {
    await using host = await createHost(
      { ...limitedTo(version), ...optional },
      (socket) => void socket.end(),
    );
    await using proxy = await createProxy();
    expect(await ask(proxy, host)).toBe('502 client_certificate_required');
  });

  it('a host that asks for a certificate and serves without one is served', async () => {
    await using host = await createHost({ ...limitedTo(version), ...optional });
    await using proxy = await createProxy();
    expect(await ask(proxy, host)).toBe('200');
  });

  it('a host that asks for none and closes has closed', async () => {
    await using host = await createHost(limitedTo(version), (socket) => void socket.end());
    await using proxy = await createProxy();
    expect(await ask(proxy, host)).toBe('502 upstream_closed');
  });

  it('a host that requires a certificate is refused by name over HTTP/2', async () => {
    await using host = await createHost({ ...limitedTo(version), ...required, ALPNProtocols: ['h2'] });
    await using proxy = await createProxy();
    const authority = `api.test:${host.port}`;
    const trust = { ca: proxy.caPem, name: 'api.test' };
    const client = await H2WireClient.connectThrough(proxy.port, authority, trust);
    expect(refusalOf(await client.request(client.fields('/')))).toBe('client_certificate_required');
    await client.wire[Symbol.asyncDispose]();
  });
});

it('a host with which no cipher is agreed on is unreachable', async () => {
  await using host = await createHost({ ...limitedTo('TLSv1.2'), ciphers: 'aNULL:@SECLEVEL=0' });
  await using proxy = await createProxy();
  expect(await ask(proxy, host)).toBe('502 upstream_unreachable');
});

it('a host that asks and has served one request is not refused by name when it closes', async () => {
  let requests = 0;
  await using host = await createHost({ ...limitedTo('TLSv1.3'), ...optional }, (socket) => {
    socket.on('data', () => {
      requests += 1;
      if (requests === 1) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
      else socket.end();
    });
  });
  await using proxy = await createProxy();
  const authority = `api.test:${host.port}`;
  const trust = { ca: proxy.caPem, name: 'api.test' };
  await using client = await WireClient.connectThrough(proxy.port, authority, trust);
  const post = head('POST / HTTP/1.1', `Host: ${authority}`, 'Content-Length: 0');
  await client.send(post);
  expect((await client.readResponse()).head.status).toBe(200);
  await client.send(post);
  await client.finished;
  expect(await proxy.record(1)).toMatchObject({ outcome: 'failed', reason: 'upstream_closed' });
});
