// The proxy port: plain requests, probes, admission, limits of connections, and shutdown.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createScratch } from '../../support/scratch.ts';
import { createTestSidecar, type TestSidecar } from '../../support/test-sidecar.ts';
import { WireClient } from '../../support/wire-client.ts';
import { keepAccepted } from './accepted-sockets.ts';
import { type DataPath, createDataPath, errorOf, head } from '../data-path.ts';

const token = 'a-proxy-token-of-enough-length';
const basic = `Proxy-Authorization: Basic ${Buffer.from(`sallyport:${token}`).toString('base64')}`;

describe('a plain request', () => {
  let path: DataPath;
  beforeAll(async () => {
    path = await createDataPath({ isClear: true });
  });
  afterAll(() => path[Symbol.asyncDispose]());

  it('in absolute-form is forwarded in origin-form, its other bytes as they came', async () => {
    const client = await path.plain();
    const at = `plain.test:${path.origin.port}`;
    await client.send(head(`GET HTTP://${at}/a?b HTTP/1.1`, `hOST: ${at}`, 'X-a:  1 ', 'x-A: 2'));
    expect((await client.readResponse()).head.status).toBe(200);
    expect(path.origin.requests.at(-1)?.head).toBe(
      head('GET /a?b HTTP/1.1', `hOST: ${at}`, 'X-a:  1 ', 'x-A: 2'),
    );
    expect(path.proxy.records().at(-1)).toMatchObject({
      scheme: 'http',
      authority: at,
      path: '/a',
      outcome: 'forwarded',
      reason: 'no_match',
    });
  });

  const rows: readonly (readonly [string, (port: number) => string, number, string])[] = [
    ['https://', () => head('GET https://a.test/ HTTP/1.1', 'Host: a.test'), 400, 'use_connect'],
    ['origin-form', () => head('GET /x HTTP/1.1', 'Host: a.test'), 400, 'not_a_proxy_request'],
    ['an asterisk', () => head('OPTIONS * HTTP/1.1', 'Host: a.test'), 400, 'not_a_proxy_request'],
    ['ftp://', () => head('GET ftp://a.test/ HTTP/1.1', 'Host: a.test'), 400, 'target_invalid'],
    [
      'another Host',
      (port) => head(`GET http://a.test:${port}/ HTTP/1.1`, 'Host: b.test'),
      400,
      'host_mismatch',
    ],
    ['no Host', (port) => head(`GET http://a.test:${port}/ HTTP/1.1`), 400, 'host_invalid'],
    [
      'userinfo',
      () => head('GET http://good.test@evil.test/ HTTP/1.1', 'Host: evil.test'),
      400,
      'authority_invalid',
    ],
    [
      'TRACE',
      (port) => head(`TRACE http://a.test:${port}/ HTTP/1.1`, `Host: a.test:${port}`),
      405,
      'method_refused',
    ],
    ['HTTP/0.9', () => 'GET http://a.test/\r\n\r\n', 400, 'malformed_request'],
    ['HTTP/2.0', () => head('GET http://a.test/ HTTP/2.0', 'Host: a.test'), 505, 'version_refused'],
    ['the preface of HTTP/2', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 505, 'version_refused'],
    ['a TLS hello', () => '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400, 'tls_at_proxy_port'],
    ['SOCKS 5', () => '\x05\x01\x00', 400, 'socks_at_proxy_port'],
    ['SOCKS 4', () => '\x04\x01\x01\xbb\x7f\x00\x00\x01\x00', 400, 'socks_at_proxy_port'],
    ['another control byte', () => '\x06\x01\x00', 400, 'malformed_request'],
    [
      'a target beyond 8 KiB',
      () => head(`GET http://a.test/${'a'.repeat(8_192)} HTTP/1.1`, 'Host: a.test'),
      414,
      'uri_too_long',
    ],
    [
      'a head beyond 16 KiB',
      () => head('GET http://a.test/ HTTP/1.1', 'Host: a.test', `X: ${'a'.repeat(16_384)}`),
      431,
      'head_too_large',
    ],
    [
      '101 fields',
      () => head('GET http://a.test/ HTTP/1.1', ...Array.from({ length: 101 }, () => 'X: y')),
      431,
      'head_too_large',
    ],
    [
      'a method of 33 letters',
      () => head(`${'A'.repeat(33)} http://a.test/ HTTP/1.1`, 'Host: a.test'),
      405,
      'method_refused',
    ],
    ['a fragment', () => head('GET http://a.test/#x HTTP/1.1', 'Host: a.test'), 400, 'malformed_request'],
    [
      'a credential host',
      (port) => head(`GET http://api.test:${port}/ HTTP/1.1`, `Host: api.test:${port}`),
      403,
      'cleartext_refused',
    ],
  ];
  it.each(rows)('with %s is refused, recorded, and reaches no host', async (_, text, status, code) => {
    const [records, connections] = [path.proxy.records().length, path.origin.connections];
    const client = await path.plain();
    await client.send(text(path.origin.port));
    const response = await client.readResponse();
    expect([response.head.status, errorOf(response.head)]).toEqual([status, code]);
    expect(await path.proxy.record(records)).toMatchObject({
      outcome: 'refused',
      reason: code,
      status,
      scheme: 'http',
    });
    expect(path.origin.connections).toBe(connections);
  });

  it.each(['\x16\x03\x01', '\x05\x01\x00'])('that is none (%j) is recorded with the cure', async (text) => {
    const records = path.proxy.records().length;
    const client = await path.plain();
    await client.send(text);
    await client.readResponse();
    const cause = 'the proxy URL of the client must begin with http://';
    expect(await path.proxy.record(records)).toMatchObject({ cause });
  });

  it('may follow another on the same connection, also for another host', async () => {
    const client = await path.plain();
    for (const name of ['one.test', 'two.test', 'one.test']) {
      const at = `${name}:${path.origin.port}`;
      await client.send(head(`GET http://${at}/ HTTP/1.1`, `Host: ${at}`));
      expect((await client.readResponse()).head.status).toBe(200);
      expect(path.origin.requests.at(-1)?.headers).toContainEqual(['Host', at]);
    }
  });
});

describe('a probe', () => {
  it.each([
    ['GET /healthz HTTP/1.1', 200, 'ok\n'],
    ['GET /readyz HTTP/1.1', 200, 'ok\n'],
    ['HEAD /healthz HTTP/1.1', 200, ''],
    ['GET /healthz HTTP/1.0', 200, 'ok\n'],
  ])('%s gets a response without the token, and without detail', async (line, status, body) => {
    await using scratch = await createScratch();
    await using proxy = await createTestSidecar({
      config: { auth: { token_file: await scratch.write('token', token) } },
    });
    await using client = await WireClient.connect(proxy.port);
    await client.send(head(line, 'Host: 10.0.0.1:3128'));
    const response = await client.readToEnd();
    const [first, ...rest] = response.split('\r\n');
    expect(first).toContain(` ${status} `);
    expect(rest.slice(0, 3)).toEqual(['Content-Type: text/plain', 'Content-Length: 3', 'Connection: close']);
    expect(response.slice(response.indexOf('\r\n\r\n') + 4)).toBe(body);
    expect(proxy.records()).toEqual([]);
  });

  it.each([
    'GET /healthz?x HTTP/1.1',
    'GET /healthz/ HTTP/1.1',
    'POST /healthz HTTP/1.1',
    'GET /metrics HTTP/1.1',
  ])('%s is not one', async (line) => {
    await using proxy = await createTestSidecar();
    await using client = await WireClient.connect(proxy.port);
    await client.send(head(line, 'Host: a.test'));
    expect(errorOf((await client.readResponse()).head)).toBe('not_a_proxy_request');
  });

  it('finds a proxy without a required configuration alive, and ready only once it has one', async () => {
    await using proxy = await createTestSidecar({ config: { require_config: true } });
    const probe = async (path: string): Promise<string> => {
      await using client = await WireClient.connect(proxy.port);
      await client.send(head(`GET ${path} HTTP/1.1`, 'Host: x'));
      return (await client.readToEnd()).replace(/\r\n[^]*\r\n\r\n/, ' | ');
    };
    expect(await probe('/healthz')).toBe('HTTP/1.1 200 OK | ok\n');
    expect(await probe('/readyz')).toBe('HTTP/1.1 503 Service Unavailable | not ready\n');
    proxy.apply({ rules: [] });
    expect(await probe('/readyz')).toBe('HTTP/1.1 200 OK | ok\n');
  });
});

describe('the proxy token', () => {
  let path: DataPath;
  let scratch: Awaited<ReturnType<typeof createScratch>>;
  beforeAll(async () => {
    scratch = await createScratch();
    path = await createDataPath({
      isClear: true,
      config: { auth: { token_file: await scratch.write('token', `${token}\n`) } },
    });
  });
  afterAll(async () => {
    await path[Symbol.asyncDispose]();
    await scratch[Symbol.asyncDispose]();
  });
  const get = (...fields: string[]): string => {
    const at = `plain.test:${path.origin.port}`;
    return head(`GET http://${at}/ HTTP/1.1`, `Host: ${at}`, ...fields);
  };

  it('missing is a 407 with a hint, and the client may retry on the same connection', async () => {
    const client = await path.plain();
    await client.send(get());
    const { head: asked } = await client.readResponse();
    expect([asked.status, errorOf(asked)]).toEqual([407, 'proxy_auth_required']);
    expect(asked.headers).toContainEqual(['Proxy-Authenticate', 'Basic realm="sallyport", charset="UTF-8"']);
    await client.send(get(basic));
    expect((await client.readResponse()).head.status).toBe(200);
    expect(path.origin.requests.at(-1)?.head).not.toMatch(/proxy-authorization/i);
  });

  it('missing on CONNECT is a 407 on a connection that stays open', async () => {
    const client = await path.plain();
    const authority = `blind.test:${path.origin.port}`;
    expect((await client.openTunnel(authority)).status).toBe(407);
    await client.readBody();
    expect((await client.openTunnel(authority, [basic])).status).toBe(200);
    await client.send(head('GET / HTTP/1.1', 'Host: inside'));
    expect((await client.readResponse()).head.status).toBe(200);
    expect(path.origin.requests.at(-1)?.headers).toEqual([['Host', 'inside']]);
  });

  it('missing, with bytes behind the CONNECT, closes the connection', async () => {
    const client = await path.plain();
    const before = path.origin.requests.length;
    await client.send(`${head('CONNECT blind.test:443 HTTP/1.1')}${get(basic)}`);
    const all = await client.readToEnd();
    expect(all.match(/^HTTP\/1\.1 /gm)).toEqual(['HTTP/1.1 ']);
    expect(all).toContain('Connection: close');
    expect(path.origin.requests).toHaveLength(before);
  });

  it.each([
    ['a body', 'POST', ['Content-Length: 5']],
    ['framing that cannot be read', 'POST', ['Content-Length: 5', 'Transfer-Encoding: chunked']],
    ['a length on CONNECT', 'CONNECT', ['Content-Length: 5']],
  ])('missing on a request with %s closes the connection', async (_, method, fields) => {
    const client = await path.plain();
    const target = method === 'CONNECT' ? 'a.test:443' : 'http://a.test/';
    await client.send(head(`${method} ${target} HTTP/1.1`, 'Host: a.test', ...fields));
    expect(await client.readToEnd()).toMatch(/^HTTP\/1\.1 407 [^]*\r\nConnection: close\r\n/);
  });

  it('wrong is a 407, and what came with it is in no record', async () => {
    const client = await path.plain();
    const before = path.proxy.records().length;
    await client.send(get('Proxy-Authorization: Bearer wrong-but-private'));
    expect((await client.readResponse()).head.status).toBe(407);
    expect(await path.proxy.record(before)).toMatchObject({
      outcome: 'refused',
      reason: 'proxy_auth_required',
    });
    expect(JSON.stringify(path.proxy.lines)).not.toMatch(/wrong-but-private|a-proxy-token/);
  });

  it('is required on each request of a connection', async () => {
    const client = await path.plain();
    await client.send(get(basic));
    expect((await client.readResponse()).head.status).toBe(200);
    await client.send(get());
    expect((await client.readResponse()).head.status).toBe(407);
  });

  it('is not required inside a tunnel, and is not forwarded from there', async () => {
    await using inner = await createDataPath({
      config: { auth: { token_file: await scratch.write('token', token) } },
    });
    const client = await inner.plain();
    await client.openTunnel(inner.authority, [basic]);
    await client.startTls({ ca: inner.proxy.caPem, name: 'api.test' });
    await client.send(head('GET / HTTP/1.1', `Host: ${inner.authority}`, basic));
    expect((await client.readResponse()).head.status).toBe(200);
    expect(inner.origin.requests[0]?.head).not.toMatch(/proxy-authorization/i);
  });
});

describe('allow_clients', () => {
  it('rejects other addresses before they send anything', async () => {
    await using proxy = await createTestSidecar({ config: { allow_clients: ['127.0.0.1/32'] } });
    await using outsider = await WireClient.connect(proxy.port, { localAddress: '127.0.0.2' });
    const response = await outsider.readResponse();
    expect([response.head.status, errorOf(response.head)]).toEqual([403, 'client_denied']);
    expect(await outsider.readToEnd()).toBe('');
    expect(await proxy.record(0)).toMatchObject({
      client: '127.0.0.2',
      outcome: 'refused',
      reason: 'client_denied',
    });
    await using friend = await WireClient.connect(proxy.port);
    await friend.send(head('GET /healthz HTTP/1.1', 'Host: x'));
    expect((await friend.readResponse()).head.status).toBe(200);
  });

  it('does not respond to a probe from elsewhere either', async () => {
    await using proxy = await createTestSidecar({ config: { allow_clients: ['127.0.0.1/32'] } });
    await using outsider = await WireClient.connect(proxy.port, { localAddress: '127.0.0.3' });
    await outsider.send(head('GET /healthz HTTP/1.1', 'Host: x'));
    expect(await outsider.readToEnd()).toMatch(/^HTTP\/1\.1 403 /);
  });
});

/** The timer of each established IPv4 connection that `isMeant` selects by its local and its remote port; 2: keep-alive. */
function timersOf(isMeant: (local: number, remote: number) => boolean): readonly string[] {
  const portOf = (address = ''): number => Number.parseInt(address.slice(-4), 16);
  const rows = readFileSync('/proc/net/tcp', 'latin1').trim().split('\n').slice(1);
  return rows.flatMap((row) => {
    const [, local, remote, state, , timer = ''] = row.trim().split(/\s+/);
    return state === '01' && isMeant(portOf(local), portOf(remote)) ? [timer.slice(0, 2)] : [];
  });
}

describe.runIf(process.platform === 'linux')('TCP keep-alive', () => {
  it.each(['http', 'https'])('probes both peers of a silent exchange over %s', async (scheme) => {
    const isClear = scheme === 'http';
    const gate = Promise.withResolvers<void>();
    await using path = await createDataPath({ isClear, respond: () => gate.promise });
    const client = isClear ? await path.plain() : await path.tunnel();
    const at = isClear ? `plain.test:${path.origin.port}` : path.authority;
    await client.send(head(`GET ${isClear ? `http://${at}` : ''}/ HTTP/1.1`, `Host: ${at}`));
    await path.origin.request(0);
    // While bytes wait for their acknowledgement, another timer runs.
    await expect.poll(() => timersOf((local) => local === path.proxy.port)).toEqual(['02']);
    await expect.poll(() => timersOf((_, remote) => remote === path.origin.port)).toEqual(['02']);
    gate.resolve();
  });

  it('probes both peers of a silent tunnel', async () => {
    await using path = await createDataPath({ isClear: true });
    const client = await path.plain();
    expect((await client.openTunnel(`plain.test:${path.origin.port}`)).status).toBe(200);
    await expect.poll(() => timersOf((local) => local === path.proxy.port)).toEqual(['02']);
    await expect.poll(() => timersOf((_, remote) => remote === path.origin.port)).toEqual(['02']);
  });
});

describe('too many connections', () => {
  it('of a sandbox are rejected, and those that were open before go on', async () => {
    await using path = await createDataPath({ config: { limits: { max_connections: 2 } } });
    const [first, second] = [await path.tunnel(), await path.tunnel()];
    const third = await path.plain();
    await third.send(head(`CONNECT ${path.authority} HTTP/1.1`));
    const response = await third.readResponse();
    expect([response.head.status, errorOf(response.head)]).toEqual([503, 'too_many_connections']);
    for (const client of [first, second]) {
      await client.send(head('GET / HTTP/1.1', `Host: ${path.authority}`));
      expect((await client.readResponse()).head.status).toBe(200);
    }
  });

  it('of a sandbox end none that was admitted, and take no place while they stay open', async () => {
    await using path = await createDataPath({ isClear: true, config: { limits: { max_connections: 1 } } });
    const at = `plain.test:${path.origin.port}`;
    const get = head(`GET http://${at}/ HTTP/1.1`, `Host: ${at}`);
    const first = await path.plain();
    await first.send(get);
    expect((await first.readResponse()).head.status).toBe(200);
    const surplus = await path.plain();
    await surplus.send(get);
    const refused = await surplus.readResponse();
    expect([refused.head.status, errorOf(refused.head)]).toEqual([503, 'too_many_connections']);
    for (let i = 0; i < 3; i += 1) {
      await first.send(get);
      expect((await first.readResponse()).head.status).toBe(200);
    }
    expect(path.origin.requests).toHaveLength(4);
  });

  it('that send nothing are evicted, the oldest first, and keep no other client out', async () => {
    await using path = await createDataPath({ config: { limits: { max_connections: 2, max_waiting: 2 } } });
    const [first, second] = [await path.plain(), await path.plain()];
    const client = await path.tunnel();
    const response = await first.readResponse();
    expect([response.head.status, errorOf(response.head)]).toEqual([503, 'too_many_connections']);
    await client.send(head('GET / HTTP/1.1', `Host: ${path.authority}`));
    expect((await client.readResponse()).head.status).toBe(200);
    await second.send(head('GET /healthz HTTP/1.1', 'Host: x'));
    expect((await second.readResponse()).head.status).toBe(200);
  });

  it.each([
    ['say nothing', {}],
    ['may not come', { allow_clients: ['10.0.0.0/8'] }],
  ])('that %s and stay open after their rejection do not exceed the limit', async (_, more) => {
    await using path = await createDataPath({ config: { ...more, limits: { max_waiting: 4 } } });
    using accepted = keepAccepted(path.proxy.port);
    const outsiders: WireClient[] = [];
    for (let i = 0; i < 40; i += 1) outsiders.push(await path.plain());
    while (accepted.count < outsiders.length) await turn();
    // The last that were cut close in the turns after.
    for (let i = 0; i < 3; i += 1) await turn();
    expect(accepted.open).toBeLessThanOrEqual(5);
  });
});

describe('on shutdown', () => {
  async function refused(proxy: TestSidecar): Promise<void> {
    const late = connect(proxy.port, '127.0.0.1');
    const [error] = await once(late, 'error');
    expect(error).toMatchObject({ code: 'ECONNREFUSED' });
  }

  it('a running exchange finishes, its connection is closed, and new ones are rejected', async () => {
    const gate = Promise.withResolvers<void>();
    await using path = await createDataPath({
      respond: async ({ send }) => {
        await send('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf.');
        await gate.promise;
        await send('half.');
      },
    });
    const [busy, idle] = [await path.tunnel(), await path.tunnel()];
    await busy.send(head('GET / HTTP/1.1', `Host: ${path.authority}`));
    await busy.readHead();
    const closing = path.proxy.sidecar.close();
    expect(await idle.finished).toBe('end');
    await refused(path.proxy);
    gate.resolve();
    expect((await busy.readBody()).content.toString()).toBe('half.half.');
    expect(await busy.readToEnd()).toBe('');
    busy.end();
    idle.end();
    await closing;
    expect(
      path.proxy
        .records()
        .map(({ outcome, reason }) => [outcome, reason])
        .toSorted(),
    ).toEqual([
      ['failed', 'shutting_down'],
      ['injected', undefined],
    ]);
  });

  it('a response that begins then has Connection: close', async () => {
    const gate = Promise.withResolvers<void>();
    await using path = await createDataPath({
      respond: async ({ send }) => {
        await gate.promise;
        await send('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
      },
    });
    const client = await path.tunnel();
    await client.send(head('GET / HTTP/1.1', `Host: ${path.authority}`));
    await path.origin.request(0);
    const closing = path.proxy.sidecar.close();
    gate.resolve();
    expect((await client.readResponse()).head.headers).toContainEqual(['Connection', 'close']);
    client.end();
    await closing;
  });

  it('what does not end in time is cut, and its record is written before the end', async () => {
    await using path = await createDataPath({
      config: { timeouts: { drain_ms: 20 } },
      respond: ({ request, send }) =>
        request.target === '/ws'
          ? send(
              'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
            ).then(() => new Promise(() => {}))
          : new Promise(() => {}),
    });
    const [waiting, upgraded, blind] = [await path.tunnel(), await path.tunnel(), await path.plain()];
    await waiting.send(head('GET /wait HTTP/1.1', `Host: ${path.authority}`));
    await path.origin.request(0);
    await upgraded.send(
      head('GET /ws HTTP/1.1', `Host: ${path.authority}`, 'Connection: Upgrade', 'Upgrade: websocket'),
    );
    expect((await upgraded.readHead()).status).toBe(101);
    expect((await blind.openTunnel(`blind.test:${path.origin.port}`)).status).toBe(200);
    await path.proxy.sidecar.close();
    const ends = path.proxy.records().map(({ outcome, reason }) => `${outcome} ${reason}`);
    expect(ends.toSorted()).toEqual(['failed shutting_down', 'tunnelled reset', 'upgraded reset']);
    for (const client of [waiting, upgraded, blind])
      expect(await client.finished).toMatch(/^(end|ECONNRESET)$/);
  });
});
