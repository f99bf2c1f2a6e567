// The example configuration: origins and the callback on loopback at high ports, and a spawned proxy. Only the port of the
// callback differs from the example, because a test must not depend on a free one.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type CallbackEndpoint, createCallbackEndpoint } from '../support/callback-endpoint.ts';
import { createOrigin, type RecordingOrigin } from '../support/recording-origin.ts';
import { createScratch } from '../support/scratch.ts';
import { projectRoot, spawnSallyport, type SpawnedSallyport } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { WireClient, type WireResponse } from '../support/wire-client.ts';

const TOKEN = 'demo-token-of-the-newcomer';
const INJECTED = [
  ['Authorization', `Bearer ${TOKEN}`],
  ['X-Client', 'sallyport-demo'],
] as const;
const ruleHosts = ['api.localhost', 'a.example.localhost', 'a.b.example.localhost'];
const names = [
  ...ruleHosts,
  'example.localhost',
  'callback.localhost',
  'direct.localhost',
  'other.localhost',
];

const origins = createTestAuthority();
let origin: RecordingOrigin;
let plainOrigin: RecordingOrigin;
let endpoint: CallbackEndpoint;
let proxy: SpawnedSallyport;
let proxyCa: string;

beforeAll(async () => {
  origin = await createOrigin({ tls: { authority: origins, names } });
  plainOrigin = await createOrigin();
  endpoint = await createCallbackEndpoint({ headers: {} });
  const example = await readFile(join(projectRoot, 'config', 'proxy-config.example.json'), 'utf8');
  expect(example).toContain('http://127.0.0.1:9444/credentials');
  await using scratch = await createScratch();
  proxy = await spawnSallyport({
    upstreamCaPem: origins.certificatePem,
    proxyConfig: JSON.parse(example.replace('http://127.0.0.1:9444/credentials', endpoint.url)),
    args: ['--secrets-file', await scratch.write('secrets.env', `DEMO_TOKEN=${TOKEN}\n`)],
  });
  proxyCa = await readFile(proxy.caFile, 'utf8');
});

afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  await endpoint[Symbol.asyncDispose]();
  await plainOrigin.close();
  await origin.close();
});

describe('with the example configuration', () => {
  beforeEach(() => endpoint.respondWith({ headers: { 'X-Api-Key': 'minted' } }));

  it.each(ruleHosts)('%s gets the headers of the rule', async (host) => {
    await get(host, '/v1/hello', { ca: proxyCa });
    expect(arrived(origin).slice(1)).toEqual([...agentFields, ...INJECTED]);
  });

  it('a path outside of match_paths is forwarded unchanged', async () => {
    await get('api.localhost', '/v2/hello', { ca: proxyCa });
    expect(arrived(origin).slice(1)).toEqual([...agentFields, ['Authorization', 'mine']]);
  });

  it.each(['other.localhost', 'example.localhost'])(
    '%s, without a rule, is tunnelled unchanged',
    async (host) => {
      await get(host, '/v1/hello', { ca: origins.certificatePem });
      expect(arrived(origin).slice(1)).toEqual([...agentFields, ['Authorization', 'mine']]);
    },
  );

  it('a host of no_proxy is tunnelled: its own certificate, its own bytes', async () => {
    await get('direct.localhost', '/v1/hello', { ca: origins.certificatePem });
    expect(arrived(origin).slice(1)).toEqual([...agentFields, ['Authorization', 'mine']]);
  });

  it('plain http to a host without a rule is forwarded with its own fields', async () => {
    const host = `other.localhost:${plainOrigin.port}`;
    await using client = await WireClient.connect(proxy.port);
    await client.send(
      `GET http://${host}/p HTTP/1.1\r\nHost: ${host}\r\nAccept: */*\r\nAuthorization: mine\r\n\r\n`,
    );
    expect((await client.readResponse()).head.status).toBe(200);
    expect(arrived(plainOrigin).slice(1)).toEqual([...agentFields, ['Authorization', 'mine']]);
  });

  it('the loopback callback is called once and its header is injected', async () => {
    const { port } = origin;
    for (const path of ['/a', '/b']) await get('callback.localhost', path, { ca: proxyCa });
    expect(endpoint.calls.map(({ body }) => body)).toEqual([{ host: 'callback.localhost', port }]);
    expect(arrived(origin)).toContainEqual(['X-Api-Key', 'minted']);
  });

  it('a failing callback is reported with its 502, even when the host is unreachable too', async () => {
    endpoint.respondWith(Buffer.from('HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n'));
    const dead = await createOrigin();
    await dead.close();
    const { head, text } = await get('callback.localhost', '/', { ca: proxyCa, port: dead.port });
    expect(head.status).toBe(502);
    expect(JSON.parse(text)).toMatchObject({ message: 'callback resolution failed' });
  });

  it('the token is not in the output of the proxy', () => {
    expect(proxy.process.stdout + proxy.process.stderr).not.toContain(TOKEN);
  });
});

const agentFields: readonly (readonly [string, string])[] = [['Accept', '*/*']];

async function get(
  host: string,
  path: string,
  { ca, port = origin.port }: { readonly ca: string; readonly port?: number },
): Promise<WireResponse> {
  const authority = `${host}:${port}`;
  await using client = await WireClient.connectThrough(proxy.port, authority, { ca, name: host });
  await client.send(
    `GET ${path} HTTP/1.1\r\nHost: ${authority}\r\nAccept: */*\r\nAuthorization: mine\r\n\r\n`,
  );
  return await client.readResponse();
}

/** The fields of the last request, Host first. */
function arrived({ requests }: RecordingOrigin): readonly (readonly [string, string])[] {
  return requests.at(-1)?.headers ?? [];
}
