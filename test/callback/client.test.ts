import { setImmediate } from 'node:timers/promises';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { Secret } from '../../src/base/secret.ts';
import { createCallbackClient } from '../../src/callback/client.ts';
import { response } from '../support/recording-origin.ts';
import { authorityOf, compiledCallback, vetLoopback } from './compiled-callback.ts';
import {
  BODY,
  CANARY,
  callOnce,
  failed,
  good,
  originOf,
  type Script,
  SHARED,
  withSecret,
} from './single-call.ts';

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
  ['a response after 103', `HTTP/1.1 103 Early Hints\r\n\r\n${good}`],
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

const OVER = 'status 200: body over 65536 bytes';
const DECODED = 'status 200: body is not valid in its content coding, or over 65536 bytes when decoded';
const CODING = 'status 200: unsupported content coding';
const statuses = [300, 301, 302, 304, 307, 308, 400, 401, 404, 407, 429, 500, 502, 503, 599];

const refused: readonly [string, Script, string][] = [
  ...statuses.map((status): [string, Script, string] => [
    `${status}`,
    response(status, [], BODY),
    `status ${status}`,
  ]),
  ['404 with a body that never ends', 'HTTP/1.1 404 Not Found\r\nContent-Length: 99\r\n\r\nx', 'status 404'],
  ['204', 'HTTP/1.1 204 No Content\r\n\r\n', 'status 204: empty body'],
  ['an empty body', response(200, []), 'status 200: empty body'],
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
  ['text', response(200, [], CANARY), 'status 200: body is not JSON in UTF-8'],
  [
    'a page of a login',
    response(200, [['Content-Type', 'Text/HTML; charset=utf-8']], `<title>${CANARY}</title>`),
    'status 200, text/html: body is not JSON in UTF-8',
  ],
  ['an error page', response(503, [['Content-Type', 'text/html']], CANARY), 'status 503, text/html'],
  [
    'a content type that could be a credential',
    response(200, [['Content-Type', `application/${CANARY}`]], CANARY),
    'status 200, another content type: body is not JSON in UTF-8',
  ],
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
  ['gzip that is invalid', coded('gzip', BODY), DECODED],
  ['two layers, announced', coded('gzip, gzip', gzipSync(gzipSync(BODY))), CODING],
  [
    'two layers, one announced',
    coded('gzip', gzipSync(gzipSync(BODY))),
    'status 200: body is not JSON in UTF-8',
  ],
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

describe('the request', () => {
  it('by POST, with the headers as configured and the destination in canonical form', async () => {
    await using origin = await originOf(good);
    const requestHeaders = [
      { name: 'X-Plain', value: 'as  WRITTEN' },
      { name: 'x-SECRET', value: new Secret(SHARED) },
    ];
    const client = createCallbackClient({ vet: vetLoopback, trust: undefined, timeoutMs: 10_000 });
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
    const client = createCallbackClient({ vet: vetLoopback, trust: undefined, timeoutMs: 10_000 });
    await client.call(compiledCallback(`http://127.0.0.1:${origin.port}/`), authorityOf('[2001:DB8::1]:443'));
    await client.close();
    expect(origin.requests[0]?.body?.content.toString()).toBe('{"host":"2001:db8::1","port":443}');
  });

  it('is not sent to where a redirect points, and never twice', async () => {
    await using elsewhere = await originOf(good);
    const location = `http://127.0.0.1:${elsewhere.port}/`;
    await using origin = await originOf(response(307, [['Location', location]]));
    const reply = await callOnce(compiledCallback(`http://127.0.0.1:${origin.port}/`, withSecret));
    expect(reply).toEqual({ ok: false, reason: 'status 307' });
    expect([origin.requests.length, elsewhere.connections]).toEqual([1, 0]);
  });

  it('again on the same connection, without the cookie that it was given', async () => {
    await using origin = await originOf(response(200, [['Set-Cookie', 'a=b']], BODY));
    const client = createCallbackClient({ vet: vetLoopback, trust: undefined, timeoutMs: 10_000 });
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
