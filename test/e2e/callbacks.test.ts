// The callback of a host: called once however many requests wait for it, called again when its response has expired, and
// never bypassed.
import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { type CallbackEndpoint, createCallbackEndpoint } from '../support/callback-endpoint.ts';
import { headerValues } from '../support/message-reader.ts';
import { createOrigin, jsonResponse, type RecordingOrigin } from '../support/recording-origin.ts';
import { spawnSallyport } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { createTestSidecar, type TestSidecar } from '../support/test-sidecar.ts';
import { WireClient, type WireResponse } from '../support/wire-client.ts';

const REQUESTS = 1_000;
const TTL_SECONDS = 60;
const HOST = 'minted.test';
const origins = createTestAuthority();

describe(`${REQUESTS} first requests at once`, () => {
  it('cause one callback, and each gets its response with the header', { tags: ['long'] }, async () => {
    const allSent = Promise.withResolvers<void>();
    await using endpoint = await createCallbackEndpoint(async (exchange) => {
      await allSent.promise;
      await exchange.send(jsonResponse({ headers: { 'X-Key': 'minted' } }));
    });
    await using origin = await createTlsOrigin();
    await using proxy = await spawnSallyport({
      upstreamCaPem: origins.certificatePem,
      proxyConfig: proxyConfig(endpoint),
    });
    const ca = await readFile(proxy.caFile, 'utf8');
    const paths = Array.from({ length: REQUESTS }, (_, i) => `/${i}`);
    const clients = await Promise.all(paths.map(() => connect(proxy.port, origin.port, ca)));
    await Promise.all(clients.map((client, i) => client.send(get(origin.port, `/${i}`))));
    allSent.resolve();
    const responses = await Promise.all(clients.map((client) => client.readResponse()));
    expect(responses.map(({ text }) => JSON.parse(text).target)).toEqual(paths);
    expect(endpoint.calls.map(({ body }) => body)).toEqual([{ host: HOST, port: origin.port }]);
    expect(origin.requests.map(keyOf)).toEqual(paths.map(() => ['minted']));
    await Promise.all(clients.map((client) => client[Symbol.asyncDispose]()));
  });
});

describe('with a controlled clock', () => {
  it('calls again after ttl_seconds, and not before', async () => {
    let nowMs = 1_000_000;
    await using endpoint = await createCallbackEndpoint({ headers: { 'X-Key': 'first' } });
    await using origin = await createTlsOrigin();
    await using proxy = await createTestSidecar({
      origins,
      proxyConfig: proxyConfig(endpoint),
      now: () => nowMs,
    });
    await request(proxy, origin.port);
    endpoint.respondWith({ headers: { 'X-Key': 'second' } });
    nowMs += TTL_SECONDS * 1000 - 1;
    await request(proxy, origin.port);
    expect(endpoint.calls).toHaveLength(1);
    nowMs += 1;
    await request(proxy, origin.port);
    await request(proxy, origin.port);
    expect(endpoint.calls).toHaveLength(2);
    expect(origin.requests.map(keyOf)).toEqual([['first'], ['first'], ['second'], ['second']]);
    expect(await proxy.record(0)).toMatchObject({ callback: 'minter', callback_cached: false });
    expect(await proxy.record(1)).toMatchObject({ callback: 'minter', callback_cached: true });
  });
});

describe('a callback that fails', () => {
  it('sends nothing upstream and caches nothing', async () => {
    await using endpoint = await createCallbackEndpoint(async (exchange) => {
      await exchange.send(jsonResponse({ headers: { 'X-Key': 'of a failure' } }, 500));
    });
    await using origin = await createTlsOrigin();
    await using proxy = await createTestSidecar({ origins, proxyConfig: proxyConfig(endpoint) });
    for (let i = 1; i <= 2; i += 1) {
      expectCallbackFailure(await request(proxy, origin.port));
      expect(endpoint.calls).toHaveLength(i);
    }
    expect(origin.transcripts.join('')).toBe('');
    endpoint.respondWith({ headers: { 'X-Key': 'well' } });
    expect((await request(proxy, origin.port)).head.status).toBe(200);
    expect(origin.requests.map(keyOf)).toEqual([['well']]);
  });

  it('is the reported error even when the host is unreachable too', async () => {
    await using endpoint = await createCallbackEndpoint({ error: 'no headers here' });
    const port = await deadPort();
    await using proxy = await createTestSidecar({ origins, proxyConfig: proxyConfig(endpoint) });
    expectCallbackFailure(await request(proxy, port));
    endpoint.respondWith({ headers: {} });
    const { head } = await request(proxy, port);
    expect(Object.fromEntries(head.headers)).toMatchObject({ 'X-Sallyport-Error': 'upstream_unreachable' });
  });

  it('fails for each of the requests that wait for it, and is called once', async () => {
    const held = Promise.withResolvers<void>();
    await using endpoint = await createCallbackEndpoint(async (exchange) => {
      await held.promise;
      exchange.reset();
    });
    await using origin = await createTlsOrigin();
    await using proxy = await createTestSidecar({ origins, proxyConfig: proxyConfig(endpoint) });
    const clients = await Promise.all(
      Array.from({ length: 20 }, () => connect(proxy.port, origin.port, proxy.caPem)),
    );
    await Promise.all(clients.map((client) => client.send(get(origin.port, '/'))));
    held.resolve();
    for (const client of clients) expectCallbackFailure(await client.readResponse());
    expect(endpoint.calls.length).toBeLessThanOrEqual(2);
    expect(origin.requests).toEqual([]);
    await Promise.all(clients.map((client) => client[Symbol.asyncDispose]()));
  });
});

function proxyConfig(endpoint: CallbackEndpoint): unknown {
  const callback = { name: 'minter', match_hosts: [HOST], url: endpoint.url, ttl_seconds: TTL_SECONDS };
  return { callbacks: [callback] };
}

function createTlsOrigin(): Promise<RecordingOrigin> {
  return createOrigin({ tls: { authority: origins, names: [HOST] } });
}

async function deadPort(): Promise<number> {
  await using origin = await createOrigin();
  return origin.port;
}

function get(port: number, path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: ${HOST}:${port}\r\n\r\n`;
}

function connect(proxyPort: number, port: number, ca: string): Promise<WireClient> {
  return WireClient.connectThrough(proxyPort, `${HOST}:${port}`, { ca, name: HOST });
}

async function request(proxy: TestSidecar, port: number): Promise<WireResponse> {
  await using client = await connect(proxy.port, port, proxy.caPem);
  await client.send(get(port, '/'));
  return await client.readResponse();
}

function expectCallbackFailure({ head, text }: WireResponse): void {
  expect(head.status).toBe(502);
  expect(head.headers).toContainEqual(['X-Sallyport-Error', 'callback_failed']);
  expect(JSON.parse(text)).toMatchObject({ message: 'callback resolution failed' });
}

function keyOf(request: RecordingOrigin['requests'][number]): readonly string[] {
  return headerValues(request, 'x-key');
}
