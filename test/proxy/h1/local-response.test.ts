// The proxy itself as a client reaches it: the reserved host through the proxy, and the certificates on the proxy port.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseCertificates } from '../../../src/tls/pem.ts';
import { systemRoots } from '../../../src/tls/system-roots.ts';
import { headerValues } from '../../support/message-reader.ts';
import { createScratch } from '../../support/scratch.ts';
import { createTestSidecar, type TestSidecar } from '../../support/test-sidecar.ts';
import { WireClient } from '../../support/wire-client.ts';
import { apiRule, errorOf, head, secret } from '../data-path.ts';

const token = 'a-proxy-token-of-enough-length';
const basic = (password: string): string =>
  `Proxy-Authorization: Basic ${Buffer.from(`x:${password}`).toString('base64')}`;

function get(path: string, ...fields: readonly string[]): string {
  return head(`GET http://sallyport.internal${path} HTTP/1.1`, 'Host: sallyport.internal', ...fields);
}

/** One request on a connection of its own. */
async function ask(
  { port }: TestSidecar,
  bytes: string,
): Promise<{ status: number; error: string | undefined; text: string }> {
  await using client = await WireClient.connect(port);
  await client.send(bytes);
  const { head: response, body } = await client.readResponse();
  return { status: response.status, error: errorOf(response), text: body.content.toString() };
}

describe('the reserved host', () => {
  let proxy: TestSidecar;
  beforeAll(async () => {
    proxy = await createTestSidecar({ proxyConfig: { rules: [apiRule] }, secrets: { TOKEN: secret } });
  });
  afterAll(() => proxy[Symbol.asyncDispose]());

  it('serves its pages on one connection, each with a record, and looks nothing up', async () => {
    const before = proxy.records().length;
    await using client = await WireClient.connect(proxy.port);
    const paths = ['/', '/status', '/env', '/ca.pem', '/ca-bundle.pem?x'];
    await client.send(paths.map((path) => get(path)).join(''));
    for (const _ of paths) {
      const { head: response } = await client.readResponse();
      expect(response.status).toBe(200);
      expect(headerValues(response, 'cache-control')).toEqual(['no-store']);
      expect(headerValues(response, 'x-content-type-options')).toEqual(['nosniff']);
      expect(headerValues(response, 'connection')).toEqual([]);
    }
    await proxy.record(before + paths.length - 1);
    const kept = proxy.records().slice(before);
    expect(kept.map(({ path }) => path)).toEqual(['/', '/status', '/env', '/ca.pem', '/ca-bundle.pem']);
    for (const record of kept)
      expect(record).toMatchObject({
        outcome: 'served',
        status: 200,
        authority: 'sallyport.internal:80',
        method: 'GET',
      });
    expect(proxy.lookups).toEqual([]);
  });

  it.each(['SALLYPORT.Internal', 'sallyport.internal.', 'sallyport.internal:8080'])(
    'is also %s',
    async (name) => {
      const request = head(`GET http://${name}/ HTTP/1.1`, `Host: ${name}`);
      await using own = await createTestSidecar();
      expect((await ask(own, request)).text).toMatch(/^This is Sallyport/);
      expect(own.lookups).toEqual([]);
    },
  );

  const rows: readonly (readonly [string, string, number, string])[] = [
    ['another path', get('/x'), 404, 'reserved_path'],
    ['another method', get('/').replace('GET', 'DELETE'), 405, 'reserved_method'],
    [
      'a body',
      head('POST http://sallyport.internal/ HTTP/1.1', 'Host: sallyport.internal', 'Content-Length: 1') + 'x',
      405,
      'reserved_method',
    ],
    ['another Host', get('/').replace('Host: sallyport', 'Host: other'), 400, 'host_mismatch'],
    [
      'TLS',
      head('CONNECT sallyport.internal:443 HTTP/1.1', 'Host: sallyport.internal'),
      403,
      'reserved_host',
    ],
    [
      'CONNECT to port 80',
      head('CONNECT sallyport.internal:80 HTTP/1.1', 'Host: a.test'),
      403,
      'reserved_host',
    ],
  ];
  it.each(rows)('with %s is refused and recorded', async (_, bytes, status, code) => {
    await using own = await createTestSidecar();
    expect(await ask(own, bytes)).toMatchObject({ status, error: code });
    expect(await own.record(0)).toMatchObject({ outcome: 'refused', reason: code, status });
    expect(own.lookups).toEqual([]);
  });

  it('for HEAD is the head of the same response', async () => {
    await using client = await WireClient.connect(proxy.port);
    await client.send(get('/ca.pem', 'Connection: close').replace('GET', 'HEAD'));
    const text = await client.readToEnd();
    expect(text).toContain(`Content-Length: ${Buffer.byteLength(proxy.caPem)}\r\n`);
    expect(text.endsWith('\r\n\r\n')).toBe(true);
  });

  it('is decided before access_control, rules, callbacks and no_proxy', async () => {
    const callback = { match_hosts: ['*.corp.test'], url: 'https://callback.test/', ttl_seconds: 60 };
    const documents = [
      { access_control: { allow_list: ['other.test'] } },
      { access_control: { deny_list: ['*.corp.test'] } },
      { rules: [{ ...apiRule, match_hosts: ['*.corp.test'] }] },
      { callbacks: [callback] },
      { no_proxy: ['*.corp.test'] },
    ];
    const config = { reserved_host: 'proxy.corp.test' };
    const host = 'Host: proxy.corp.test';
    for (const proxyConfig of documents) {
      await using own = await createTestSidecar({ config, proxyConfig, secrets: { TOKEN: secret } });
      const page = await ask(own, head('GET http://proxy.corp.test/ HTTP/1.1', host));
      expect(page.text).toMatch(/^This is Sallyport/);
      const tunnel = await ask(own, head('CONNECT proxy.corp.test:443 HTTP/1.1', host));
      expect(tunnel).toMatchObject({ status: 403, error: 'reserved_host' });
      expect(own.lookups).toEqual([]);
    }
  });

  it('has the name that the operator chose', async () => {
    await using own = await createTestSidecar({ config: { reserved_host: 'proxy.test' } });
    const { text } = await ask(own, head('GET http://proxy.test/ HTTP/1.1', 'Host: proxy.test'));
    expect(text).toContain('http://proxy.test/env');
    const applied = own.apply({ no_proxy: ['proxy.test'] });
    expect(applied.ok).toBe(false);
  });

  it('shows the last refusals with the cure', async () => {
    await using own = await createTestSidecar({
      proxyConfig: { rules: [apiRule] },
      secrets: { TOKEN: secret },
    });
    await ask(own, head('GET http://api.test/v1?query HTTP/1.1', 'Host: api.test'));
    const { refusals } = JSON.parse((await ask(own, get('/status'))).text);
    expect(refusals).toMatchObject([
      {
        method: 'GET',
        authority: 'api.test:80',
        error: 'cleartext_refused',
        hint: expect.stringContaining('inject_cleartext'),
      },
    ]);
  });

  it('responds ten times a second to one client', async () => {
    await using own = await createTestSidecar({ now: () => 0 });
    await using client = await WireClient.connect(own.port);
    await client.send(get('/').repeat(11));
    const statuses: number[] = [];
    for (let i = 0; i < 11; i += 1) {
      const { head: response } = await client.readResponse();
      statuses.push(response.status);
      if (response.status === 429) expect(headerValues(response, 'retry-after')).toEqual(['1']);
    }
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 200), 429]);
  });

  it('serves nothing while records cannot be written', async () => {
    await using own = await createTestSidecar();
    own.blockSink(true);
    expect(await ask(own, get('/ca.pem'))).toMatchObject({ status: 503, error: 'record_sink_blocked' });
    expect(await ask(own, head('GET /ca.pem HTTP/1.1', 'Host: x'))).toMatchObject({ status: 503 });
  });

  it('shows each client its own sandbox, and none to a client without a token', async () => {
    await using scratch = await createScratch();
    const config = { auth: { token_file: await scratch.write('token', token) } };
    await using own = await createTestSidecar({
      config,
      admin: true,
      secrets: { TOKEN: secret },
      proxyConfig: { rules: [apiRule] },
    });
    const boxToken = 'another-token-of-enough-length';
    const rule = {
      name: 'of the box',
      match_hosts: ['box.test'],
      headers: [{ name: 'X-Box', type: 'plaintext', value: 'box-value' }],
    };
    const box = { id: 'box', token: boxToken, proxy_config: { rules: [rule] } };
    expect((await own.admin('POST', '/v1/sandboxes', box)).status).toBe(201);
    const wrong = basic('wrong-token-of-enough-length');
    await ask(own, head('GET http://box.test/ HTTP/1.1', 'Host: box.test', wrong));
    await ask(own, head('GET http://api.test/ HTTP/1.1', 'Host: api.test', basic(token)));
    const show = async (password: string) => ask(own, get('/status', basic(password)));
    const [ofDefault, ofBox] = [await show(token), await show(boxToken)];
    expect(JSON.parse(ofDefault.text)).toMatchObject({
      sandbox: 'default',
      hosts: [{ rule: 'api' }],
      refusals: [{ authority: 'api.test:80' }],
    });
    expect(JSON.parse(ofBox.text)).toMatchObject({
      sandbox: 'box',
      hosts: [{ rule: 'of the box' }],
      refusals: [],
    });
    expect(ofDefault.text + ofBox.text).not.toMatch(/box-value|sesame|of-enough-length/);
    for (const path of ['/', '/status', '/env', '/ca.pem'])
      expect(await ask(own, get(path))).toMatchObject({ status: 407, error: 'proxy_auth_required' });
  });
});

describe('the proxy port', () => {
  it('serves the certificates without a token, with a record', async () => {
    await using scratch = await createScratch();
    await using proxy = await createTestSidecar({
      config: { auth: { token_file: await scratch.write('token', token) } },
    });
    const { text } = await ask(proxy, head('GET /ca.pem HTTP/1.1', 'Host: 10.0.0.1:3128'));
    expect(text).toBe(proxy.caPem);
    const bundle = parseCertificates((await ask(proxy, head('GET /ca-bundle.pem HTTP/1.1', 'Host: x'))).text);
    expect(bundle).toHaveLength(1 + new Set(systemRoots()).size);
    expect(await proxy.record(1)).toMatchObject({ outcome: 'served', status: 200, path: '/ca-bundle.pem' });
  });

  it.each([
    'GET /ca.key HTTP/1.1',
    'GET /env HTTP/1.1',
    'GET /status HTTP/1.1',
    'POST /ca.pem HTTP/1.1',
    'GET /ca.pem?x HTTP/1.1',
  ])('%s is not served', async (line) => {
    await using proxy = await createTestSidecar();
    expect(await ask(proxy, head(line, 'Host: a.test'))).toMatchObject({
      status: 400,
      error: 'not_a_proxy_request',
    });
  });

  it('without a token does not use up what a client of a sandbox at the same address may ask', async () => {
    await using scratch = await createScratch();
    await using proxy = await createTestSidecar({
      config: { auth: { token_file: await scratch.write('token', token) } },
      now: () => 0,
    });
    for (let i = 0; i < 10; i += 1) await ask(proxy, head('GET /ca.pem HTTP/1.1', 'Host: x'));
    expect((await ask(proxy, get('/status', basic(token)))).status).toBe(200);
  });

  it('responds ten times a second to one client', async () => {
    await using proxy = await createTestSidecar({ now: () => 0 });
    const request = head('GET /ca.pem HTTP/1.1', 'Host: x');
    const statuses: number[] = [];
    for (let i = 0; i < 11; i += 1) statuses.push((await ask(proxy, request)).status);
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 200), 429]);
  });
});
