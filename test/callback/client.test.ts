import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { setImmediate, setInterval } from 'node:timers/promises';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Secret } from '../../src/base/secret.ts';
import { createCallbackClient, type VetHost } from '../../src/callback/client.ts';
import type { CallbackReply } from '../../src/callback/reply.ts';
import type { CompiledCallback } from '../../src/policy/policy.ts';
import {
  createOrigin,
  type Exchange,
  type OriginOptions,
  type RecordingOrigin,
  response,
} from '../support/recording-origin.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { authorityOf, compiledCallback, vetLoopback } from './compiled-callback.ts';

const CANARY = 'canary-91c07a';
const SHARED = 'shared-secret-5d2e';
const BODY = JSON.stringify({ headers: { Authorization: CANARY } });
const good = response(200, [], BODY);

type Script = Buffer | string | ((exchange: Exchange) => void | Promise<void>);

function originOf(script: Script, tls?: OriginOptions['tls']): Promise<RecordingOrigin> {
  const respond = async (exchange: Exchange): Promise<void> => {
    await exchange.readBody();
    if (typeof script === 'function') await script(exchange);
    else await exchange.send(script);
  };
  return createOrigin(tls === undefined ? { respond } : { respond, tls });
}

type Settings = { vet?: VetHost; caPem?: readonly string[]; timeoutMs?: number };

async function callOnce(callback: CompiledCallback, settings: Settings = {}): Promise<CallbackReply> {
  const client = createCallbackClient({ vet: vetLoopback, caPem: undefined, timeoutMs: 10_000, ...settings });
  try {
    return await client.call(callback, authorityOf('api.test:8443'));
  } finally {
    await client.close();
  }
}

const withSecret = { requestHeaders: [{ name: 'X-Shared', value: new Secret(SHARED) }] };

const coded = (coding: string, body: string | Buffer): Buffer =>
  response(200, [['Content-Encoding', coding]], body);
const close = 'HTTP/1.1 200 OK\r\nConnection: close\r\n';

const accepted: readonly [string, Script][] = [
  ['200', good],
  ['201 of any content type', response(201, [['Content-Type', 'text/plain; charset=latin1']], BODY)],
  ['299', response(299, [], BODY)],
  ['gzip', coded('gzip', gzipSync(BODY))],
  ['x-gzip', coded('X-GZIP', gzipSync(BODY))],
  ['deflate', coded('deflate', deflateSync(BODY))],
  ['br', coded('br', brotliCompressSync(BODY))],
  ['identity', coded('identity', BODY)],
  [
    'a chunked body',
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`,
  ],
  ['an answer after 103', `HTTP/1.1 103 Early Hints\r\n\r\n${good}`],
  ['64 KiB exactly', response(200, [], BODY.padEnd(65_536))],
  ['64 KiB exactly when decoded', coded('gzip', gzipSync(BODY.padEnd(65_536)))],
  [
    'a body that ends with the connection',
    (exchange) => exchange.send(`${close}\r\n${BODY}`).then(exchange.end),
  ],
];

describe('accepts', () => {
  it.each(accepted)('%s', async (_, script) => {
    await using origin = await originOf(script);
    const reply = await callOnce(compiledCallback(`http://127.0.0.1:${origin.port}/`));
    expect(reply).toMatchObject({ ok: true, headers: [{ name: 'Authorization' }] });
  });
});

const OVER = 'body over 65536 bytes';
const DECODED = 'body is not valid in its content coding, or over 65536 bytes when decoded';
const CODING = 'unsupported content coding';
const failed = (code: string): string => `transport failed: ${code}`;
const statuses = [300, 301, 302, 304, 307, 308, 400, 401, 404, 407, 429, 500, 502, 503, 599];

const refused: readonly [string, Script, string][] = [
  ...statuses.map((status): [string, Script, string] => [
    `${status}`,
    response(status, [], BODY),
    `status ${status}`,
  ]),
  ['404 with a body that never ends', 'HTTP/1.1 404 Not Found\r\nContent-Length: 99\r\n\r\nx', 'status 404'],
  ['204', 'HTTP/1.1 204 No Content\r\n\r\n', 'empty body'],
  ['an empty body', response(200, []), 'empty body'],
  [
    '199 alone',
    (exchange) => exchange.send('HTTP/1.1 199 Odd\r\n\r\n').then(exchange.end),
    failed('UND_ERR_SOCKET'),
  ],
  [
    '101',
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n${BODY}`,
    failed('UND_ERR_SOCKET'),
  ],
  ['text', response(200, [], CANARY), 'body is not JSON in UTF-8'],
  ['a body over 64 KiB', response(200, [], BODY.padEnd(65_537)), OVER],
  [
    'a gigabyte announced',
    `HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n${BODY.padEnd(70_000)}`,
    OVER,
  ],
  ['a body over 64 KiB when decoded', coded('gzip', gzipSync(BODY.padEnd(65_537))), DECODED],
  ['a gzip bomb', coded('gzip', gzipSync(Buffer.alloc(50_000_000))), DECODED],
  ['a brotli bomb', coded('br', brotliCompressSync(Buffer.alloc(50_000_000))), DECODED],
  ['gzip cut short', coded('gzip', gzipSync(BODY).subarray(0, -9)), DECODED],
  ['gzip that is none', coded('gzip', BODY), DECODED],
  ['two layers, announced', coded('gzip, gzip', gzipSync(gzipSync(BODY))), CODING],
  ['two layers, one announced', coded('gzip', gzipSync(gzipSync(BODY))), 'body is not JSON in UTF-8'],
  [
    'two Content-Encoding fields',
    response(
      200,
      [
        ['Content-Encoding', 'gzip'],
        ['Content-Encoding', 'br'],
      ],
      BODY,
    ),
    CODING,
  ],
  ['an unknown coding', coded('zstd', BODY), CODING],
  ['a coding named like a property', coded('__proto__', BODY), CODING],
  [
    'a head over 16 KiB',
    response(200, [['X-Long', 'x'.repeat(17_000)]], BODY),
    failed('UND_ERR_HEADERS_OVERFLOW'),
  ],
  ['what is not HTTP', `${CANARY}\r\n\r\n`, failed('HTTPParserError')],
  [
    'length and chunked together',
    `HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    failed('UND_ERR_RES_CONTENT_LENGTH_MISMATCH'),
  ],
  ['a reset before the head', (exchange) => exchange.reset(), failed('ECONNRESET')],
  ['an end before the head', (exchange) => exchange.end(), failed('UND_ERR_SOCKET')],
  [
    'an end amid the head',
    (exchange) => exchange.send('HTTP/1.1 200 OK\r\nX-He').then(exchange.end),
    failed('UND_ERR_SOCKET'),
  ],
  [
    'an end amid the body',
    (exchange) => exchange.send(good.subarray(0, -3)).then(exchange.end),
    failed('UND_ERR_SOCKET'),
  ],
  [
    'a reset amid the body',
    (exchange) => exchange.send(good.subarray(0, -3)).then(exchange.reset),
    failed('ECONNRESET'),
  ],
];

describe('refuses', () => {
  it.each(refused)('%s', async (_, script, reason) => {
    await using origin = await originOf(script);
    const reply = await callOnce(compiledCallback(`http://127.0.0.1:${origin.port}/`, withSecret));
    expect(reply).toEqual({ ok: false, reason });
    expect(origin.requests).toHaveLength(1);
  });
});

describe('asks', () => {
  it('by POST, with the headers as configured and the destination in canonical form', async () => {
    await using origin = await originOf(good);
    const requestHeaders = [
      { name: 'X-Plain', value: 'as  WRITTEN' },
      { name: 'x-SECRET', value: new Secret(SHARED) },
    ];
    const client = createCallbackClient({ vet: vetLoopback, caPem: undefined, timeoutMs: 10_000 });
    const callback = compiledCallback(`http://CB.test:${origin.port}/a%2Fb/?q=1#part`, { requestHeaders });
    await client.call(callback, authorityOf('API.Test.:443'));
    await client.close();
    const [request] = origin.requests;
    expect(request?.head.split('\r\n').toSorted()).toEqual(
      [
        'POST /a%2Fb/?q=1 HTTP/1.1',
        `host: cb.test:${origin.port}`,
        'connection: keep-alive',
        'Content-Type: application/json',
        'X-Plain: as  WRITTEN',
        `x-SECRET: ${SHARED}`,
        'content-length: 30',
        '',
        '',
      ].toSorted(),
    );
    expect(request?.body?.content.toString()).toBe('{"host":"api.test","port":443}');
  });

  it('an IPv6 destination without brackets', async () => {
    await using origin = await originOf(good);
    const client = createCallbackClient({ vet: vetLoopback, caPem: undefined, timeoutMs: 10_000 });
    await client.call(compiledCallback(`http://127.0.0.1:${origin.port}/`), authorityOf('[2001:DB8::1]:443'));
    await client.close();
    expect(origin.requests[0]?.body?.content.toString()).toBe('{"host":"2001:db8::1","port":443}');
  });

  it('nobody at the place that a redirect names, and never twice', async () => {
    await using elsewhere = await originOf(good);
    const location = `http://127.0.0.1:${elsewhere.port}/`;
    await using origin = await originOf(response(307, [['Location', location]]));
    const reply = await callOnce(compiledCallback(`http://127.0.0.1:${origin.port}/`, withSecret));
    expect(reply).toEqual({ ok: false, reason: 'status 307' });
    expect([origin.requests.length, elsewhere.connections]).toEqual([1, 0]);
  });

  it('again on the same connection, without the cookie that it was given', async () => {
    await using origin = await originOf(response(200, [['Set-Cookie', 'a=b']], BODY));
    const client = createCallbackClient({ vet: vetLoopback, caPem: undefined, timeoutMs: 10_000 });
    const callback = compiledCallback(`http://127.0.0.1:${origin.port}/`);
    await client.call(callback, authorityOf('a.test:443'));
    // The pool takes the connection back a turn later.
    await setImmediate();
    await client.call(callback, authorityOf('b.test:443'));
    await client.close();
    expect(origin.requests.map(({ connection }) => connection)).toEqual([0, 0]);
    expect(origin.requests[1]?.head).not.toMatch(/cookie/i);
  });
});

describe('dials what the address check returned and nothing else', () => {
  const dead = 'http://cb.test:9/';

  const refusals: readonly [string, string, VetHost, string][] = [
    ['a refused name', dead, async () => ({ refused: 'metadata' }), 'refused: metadata'],
    [
      'a refused address',
      'http://169.254.169.254/',
      async () => ({ refused: 'metadata' }),
      'refused: metadata',
    ],
    [
      'an address for which another was returned',
      'http://127.0.0.2:9/',
      vetLoopback,
      'refused: no address of it may be dialled',
    ],
    ['a check that fails', dead, () => Promise.reject(new Error(CANARY)), failed('Error')],
    [
      'a name without addresses',
      dead,
      async () => ({ addresses: [] }),
      'refused: no address of it may be dialled',
    ],
  ];

  it.each(refusals)('%s is a failure', async (_, url, vet, reason) => {
    expect(await callOnce(compiledCallback(url), { vet })).toEqual({ ok: false, reason });
  });

  it('asks with the canonical host and port, once a connection', async () => {
    await using origin = await originOf(response(200, [['Connection', 'close']], BODY));
    const vet = vi.fn(vetLoopback);
    const client = createCallbackClient({ vet, caPem: undefined, timeoutMs: 10_000 });
    const callback = compiledCallback(`http://CB.Test.:${origin.port}/`);
    for (const _ of [1, 2]) await client.call(callback, authorityOf('api.test:443'));
    await client.close();
    expect(vet.mock.calls).toEqual([
      ['cb.test', origin.port],
      ['cb.test', origin.port],
    ]);
  });

  it('tries the next address when one does not answer', async () => {
    await using origin = await originOf(good);
    const addresses = [
      { address: '127.0.0.2', family: 4 },
      { address: '127.0.0.1', family: 4 },
    ] as const;
    const reply = await callOnce(compiledCallback(`http://cb.test:${origin.port}/`), {
      vet: async () => ({ addresses }),
    });
    expect(reply.ok).toBe(true);
  });

  it('says ECONNREFUSED when nobody listens', async () => {
    const origin = await originOf(good);
    await origin.close();
    const reply = await callOnce(compiledCallback(`http://cb.test:${origin.port}/`));
    expect(reply).toEqual({ ok: false, reason: failed('ECONNREFUSED') });
  });
});

describe('whatever the environment says', () => {
  afterEach(() => vi.unstubAllEnvs());

  it.each(['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'ALL_PROXY'])('%s is not asked', async (variable) => {
    await using proxy = await originOf(good);
    await using origin = await originOf(good);
    vi.stubEnv(variable, `http://127.0.0.1:${proxy.port}`);
    vi.stubEnv('NODE_USE_ENV_PROXY', '1');
    const reply = await callOnce(compiledCallback(`http://cb.test:${origin.port}/`));
    expect([reply.ok, proxy.connections]).toEqual([true, 0]);
  });

  it('NODE_TLS_REJECT_UNAUTHORIZED=0 changes nothing', async () => {
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
    await using origin = await originOf(good, { authority: createTestAuthority(), names: ['cb.test'] });
    const reply = await callOnce(compiledCallback(`https://cb.test:${origin.port}/`));
    expect(reply.ok).toBe(false);
  });
});

describe('over TLS', () => {
  const authority = createTestAuthority();
  const trusted = [authority.certificatePem];
  const stranger = [createTestAuthority('Another').certificatePem];

  const rows: readonly [string, string, string, readonly string[] | undefined, string | undefined][] = [
    ['a name that the certificate holds', 'cb.test', 'cb.test', trusted, undefined],
    ['a name in another spelling', 'CB.Test.', 'cb.test', trusted, undefined],
    ['an address that the certificate holds', '127.0.0.1', '127.0.0.1', trusted, undefined],
    ['another name', 'cb.test', 'other.test', trusted, failed('ERR_TLS_CERT_ALTNAME_INVALID')],
    [
      'an address, and a certificate for localhost',
      '127.0.0.1',
      'localhost',
      trusted,
      failed('ERR_TLS_CERT_ALTNAME_INVALID'),
    ],
    ['an authority that is not trusted', 'cb.test', 'cb.test', stranger, failed('SELF_SIGNED_CERT_IN_CHAIN')],
    ['an authority that nobody knows', 'cb.test', 'cb.test', undefined, failed('SELF_SIGNED_CERT_IN_CHAIN')],
  ];

  it.each(rows)('%s', async (_, host, certified, caPem, reason) => {
    await using origin = await originOf(good, { authority, names: [certified] });
    const callback = compiledCallback(`https://${host}:${origin.port}/`, withSecret);
    const reply = await callOnce(callback, caPem && { caPem });
    if (reason === undefined) expect(reply.ok).toBe(true);
    else expect(reply).toEqual({ ok: false, reason });
    // Not a byte of the request, the shared secret among it, before the other end has proved its name.
    expect(origin.requests).toHaveLength(reason === undefined ? 1 : 0);
    if (reason === undefined)
      expect(origin.requests[0]?.serverName).toBe(certified === 'cb.test' ? certified : undefined);
  });

  it('a server that speaks no TLS is a failure', async () => {
    await using server = createServer((socket) => socket.resume().end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo; // A TCP server's; the other form is for pipes.
    const reply = await callOnce(compiledCallback(`https://cb.test:${port}/`), { caPem: trusted });
    expect(reply).toEqual({ ok: false, reason: failed('ERR_SSL_WRONG_VERSION_NUMBER') });
  });
});

describe('one deadline for the whole call', () => {
  const never = new Promise<never>(() => undefined);
  const drip = async (exchange: Exchange): Promise<void> => {
    await exchange.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
    for await (const _ of setInterval(5)) await exchange.send('1\r\n \r\n');
  };

  const rows: readonly [string, Script, VetHost][] = [
    ['an address check without end', good, () => never],
    ['silence', () => never, vetLoopback],
    ['a head without end', (exchange) => exchange.send('HTTP/1.1 200 OK\r\n').then(() => never), vetLoopback],
    ['a body without end', (exchange) => exchange.send(good.subarray(0, -3)).then(() => never), vetLoopback],
    ['a drip that is never idle', drip, vetLoopback],
  ];

  it.each(rows)('%s', async (_, script, vet) => {
    await using origin = await originOf(script);
    const reply = await callOnce(compiledCallback(`http://cb.test:${origin.port}/`), { vet, timeoutMs: 60 });
    expect(reply).toEqual({ ok: false, reason: 'no complete answer within 60 ms' });
  });

  it('frees the connection of a call that it ended', async () => {
    const closed = Promise.withResolvers<unknown>();
    await using origin = await originOf(async ({ reader }) => closed.resolve(await reader.finished));
    const client = createCallbackClient({ vet: vetLoopback, caPem: undefined, timeoutMs: 60 });
    await client.call(compiledCallback(`http://cb.test:${origin.port}/`), authorityOf('api.test:443'));
    await closed.promise;
    await client.close();
  });
});

describe('closing', () => {
  const shutting = { ok: false, reason: 'the proxy is shutting down' };

  it('ends the calls under way, whatever they wait for, and refuses the next', async () => {
    const never = new Promise<never>(() => undefined);
    await using origin = await originOf(() => never);
    const vetting = Promise.withResolvers<void>();
    const vet: VetHost = (host, port) => {
      if (host !== 'slow.test') return vetLoopback(host, port);
      vetting.resolve();
      return never;
    };
    const client = createCallbackClient({ vet, caPem: undefined, timeoutMs: 10_000 });
    const urls = [`http://cb.test:${origin.port}/`, `http://slow.test:${origin.port}/`];
    const calls = urls.map((url) => client.call(compiledCallback(url), authorityOf('api.test:443')));
    await Promise.all([origin.request(0), vetting.promise]);
    await client.close();
    expect(await Promise.all(calls)).toEqual([shutting, shutting]);
    expect(await client.call(compiledCallback(urls[0] ?? ''), authorityOf('api.test:443'))).toEqual(shutting);
  });

  it('is harmless before the first call', async () => {
    await createCallbackClient({ vet: vetLoopback, caPem: undefined, timeoutMs: 10_000 }).close();
  });
});
