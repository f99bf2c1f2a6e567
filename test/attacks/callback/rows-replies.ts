// C-03, C-04 and C-07: responses that are too large, of a wrong shape, or missing; after each the next request calls again.
import { deflateSync, gzipSync } from 'node:zlib';
import { GOOD, failing, reply, cached } from './row-shapes.ts';
import type { CallbackRow, CallbackStep } from './callback-script.ts';

const latin1 = (bytes: Buffer): string => bytes.toString('latin1');
const body = (text: string): CallbackStep => ({ send: reply('200 OK', [], text) });
const OK = 'HTTP/1.1 200 OK\r\n';
const headers = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`X-${i}`, 'v']));
const OVER = 'status 200: body over 65536 bytes';
const DECODED = 'status 200: body is not valid in its content coding, or over 65536 bytes when decoded';
const coded = (coding: string, bytes: Buffer): CallbackStep => ({
  send: `${OK}Content-Encoding: ${coding}\r\nContent-Length: ${bytes.length}\r\n\r\n${latin1(bytes)}`,
});

const bombs: readonly (readonly [name: string, steps: readonly CallbackStep[], cause: string])[] = [
  ['body-beyond-the-limit', [body(GOOD.padEnd(65_537))], OVER],
  [
    'gigabyte-announced-and-begun',
    [{ send: `${OK}Content-Length: 1073741824\r\n\r\n` }, { flood: ' '.repeat(8_192) }],
    OVER,
  ],
  [
    'chunks-without-end',
    [{ send: `${OK}Transfer-Encoding: chunked\r\n\r\n` }, { flood: `1000\r\n${' '.repeat(4_096)}\r\n` }],
    OVER,
  ],
  ['body-without-length-or-end', [{ send: `${OK}\r\n` }, { flood: '['.repeat(8_192) }], OVER],
  ['gzip-bomb', [coded('gzip', gzipSync(Buffer.alloc(30_000_000)))], DECODED],
  ['deflate-bomb', [coded('deflate', deflateSync(Buffer.alloc(30_000_000, ' ')))], DECODED],
  ['gzip-twice', [coded('gzip, gzip', gzipSync(gzipSync(GOOD)))], 'status 200: unsupported content coding'],
  [
    'gzip-twice-and-declared-once',
    [coded('gzip', gzipSync(gzipSync(GOOD)))],
    'status 200: body is not JSON in UTF-8',
  ],
  [
    'a-thousand-codings',
    [coded(`${'gzip, '.repeat(1_000)}gzip`, gzipSync(GOOD))],
    'status 200: unsupported content coding',
  ],
  ['coding-unknown', [coded('compress', Buffer.from(GOOD))], 'status 200: unsupported content coding'],
  [
    'coding-named-like-a-property',
    [coded('constructor', Buffer.from(GOOD))],
    'status 200: unsupported content coding',
  ],
  [
    'head-of-thirty-kibibytes',
    [{ send: reply('200 OK', [`X-A: ${'x'.repeat(30_000)}`], GOOD) }],
    'transport failed: UND_ERR_HEADERS_OVERFLOW',
  ],
  [
    'head-without-end',
    [{ send: OK }, { flood: `X-A: ${'x'.repeat(100)}\r\n` }],
    'transport failed: UND_ERR_HEADERS_OVERFLOW',
  ],
  ['sixty-five-headers', [{ headers: headers(65) }], 'status 200, application/json: more than 64 headers'],
  [
    'five-thousand-headers',
    [{ headers: headers(5_000) }],
    'status 200, application/json: more than 64 headers',
  ],
  [
    'value-of-eight-kibibytes-and-one',
    [{ headers: { 'X-A': 'x'.repeat(8_193) } }],
    'status 200, application/json: the value of header 1 is not a valid field value',
  ],
  [
    'values-of-forty-kibibytes',
    [{ headers: Object.fromEntries(Array.from({ length: 5 }, (_, i) => [`X-${i}`, 'x'.repeat(8_000)])) }],
    'status 200, application/json: the values together have more than 16384 bytes',
  ],
  [
    'name-of-three-hundred-bytes',
    [{ headers: { [`X-${'a'.repeat(300)}`]: 'v' } }],
    'status 200, application/json: the name of header 1 may not be injected',
  ],
  [
    'nested-thirty-thousand-deep',
    [body('['.repeat(30_000) + ']'.repeat(30_000))],
    'status 200: body is nested too deeply',
  ],
  [
    'nested-beside-the-headers',
    [body(`{"headers":{},"x":${'['.repeat(40)}${']'.repeat(40)}}`)],
    'status 200: body is nested too deeply',
  ],
  ['brackets-that-never-close', [body('['.repeat(60_000))], 'status 200: body is not JSON in UTF-8'],
  [
    'a-number-of-sixty-thousand-digits',
    [body(`{"headers":{"X-A":${'9'.repeat(60_000)}}}`)],
    'status 200: the value of header 1 is not a string',
  ],
];

const JSON_ERROR = 'status 200: body is not JSON in UTF-8';
const SHAPE = 'status 200: body is not an object with "headers"';
const OBJECT = 'status 200: "headers" is not an object';
const STRING = 'status 200: the value of header 1 is not a string';

const shapes: readonly (readonly [name: string, text: string, cause: string])[] = [
  ['nothing', '', 'status 200: empty body'],
  ['text', 'Bearer {CREDENTIAL}', JSON_ERROR],
  ['html', '<!doctype html><title>Log in</title>', JSON_ERROR],
  ['half', '{"headers":{"Authorization":"{CREDENTIAL}"', JSON_ERROR],
  ['two-documents', `${GOOD}${GOOD}`, JSON_ERROR],
  ['lines-of-documents', `${GOOD}\n${GOOD}`, JSON_ERROR],
  ['byte-order-mark', `\xef\xbb\xbf${GOOD}`, JSON_ERROR],
  ['utf-16', latin1(Buffer.from('{"headers":{}}', 'utf16le')), JSON_ERROR],
  ['latin-1', '{"headers":{"X-A":"\xe9"}}', JSON_ERROR],
  ['overlong-utf-8', '{"headers":{"X-A":"\xc0\xaf"}}', JSON_ERROR],
  ['half-a-character', '{"headers":{"X-A":"\xe2\x82"}}', JSON_ERROR],
  ['comment', `/* */${GOOD}`, JSON_ERROR],
  ['comma-after', '{"headers":{"X-A":"v",}}', JSON_ERROR],
  ['single-quotes', "{'headers':{'X-A':'v'}}", JSON_ERROR],
  ['not-a-number', '{"headers":{"X-A":NaN}}', JSON_ERROR],
  ['yaml', 'headers:\n  X-A: v\n', JSON_ERROR],
  ['padded-callback', `cb(${GOOD})`, JSON_ERROR],
  ['guarded-against-inclusion', `)]}',\n${GOOD}`, JSON_ERROR],
  ['null', 'null', SHAPE],
  ['true', 'true', SHAPE],
  ['string', '"headers"', SHAPE],
  ['list', '[{"headers":{}}]', SHAPE],
  ['empty-object', '{}', SHAPE],
  ['headers-in-capitals', '{"Headers":{"X-A":"v"}}', SHAPE],
  ['headers-one-level-down', '{"data":{"headers":{"X-A":"v"}}}', SHAPE],
  ['headers-by-prototype', '{"__proto__":{"headers":{"X-A":"v"}}}', SHAPE],
  ['headers-null', '{"headers":null}', OBJECT],
  ['headers-list', '{"headers":[]}', OBJECT],
  ['headers-list-of-pairs', '{"headers":[["X-A","v"]]}', OBJECT],
  ['headers-text', '{"headers":"X-A: v"}', OBJECT],
  ['headers-true', '{"headers":true}', OBJECT],
  [
    'headers-twice',
    '{"headers":{"X-A":"v"},"headers":{"X-B":"v"}}',
    'status 200: body repeats a member name',
  ],
  [
    'headers-twice-by-escape',
    '{"headers":{"X-A":"v"},"he\\u0061ders":{}}',
    'status 200: body repeats a member name',
  ],
  ['one-header-twice', '{"headers":{"X-A":"v","X-A":"w"}}', 'status 200: body repeats a member name'],
  ['value-number', '{"headers":{"X-A":1}}', STRING],
  ['value-null', '{"headers":{"X-A":null}}', STRING],
  ['value-true', '{"headers":{"X-A":true}}', STRING],
  ['value-list', '{"headers":{"X-A":["v"]}}', STRING],
  ['value-object', '{"headers":{"X-A":{"value":"v"}}}', STRING],
];

const statuses = ['400', '401', '403', '404', '407', '408', '418', '429', '500', '502', '503', '511', '599'];

const refusedBodies: readonly CallbackRow[] = [
  ...shapes.map(([name, text, cause]) => failing(`C-04 ${name}`, [body(text)], cause)),
  ...statuses.map((status) =>
    failing(`C-04 status-${status}`, [{ send: reply(`${status} No`, [], GOOD) }], `status ${status}`),
  ),
  failing('C-04 no-content', [{ send: 'HTTP/1.1 204 No Content\r\n\r\n' }], 'status 204: empty body'),
  failing('C-04 reset-content', [{ send: reply('205 Reset Content', [], '') }], 'status 205: empty body'),
];

const accepted: readonly CallbackRow[] = [
  cached('C-04 other-members-are-ignored', [
    body('{"v":1,"headers":{"Authorization":"{CREDENTIAL}"},"ttl":9}'),
  ]),
  cached('C-04 another-content-type', [{ send: reply('200 OK', ['Content-Type: text/html'], GOOD) }]),
  cached('C-04 status-of-partial-content', [
    { send: reply('206 Partial', ['Content-Range: bytes 0-1/2'], GOOD) },
  ]),
  cached('C-04 space-around', [body(` \r\n\t${GOOD}\n`)]),
  cached('C-04 no-headers-to-inject', [{ headers: {} }], { outcomes: ['plain', 'plain'] }),
  cached('C-04 cookie-of-the-endpoint', [{ send: reply('200 OK', ['Set-Cookie: a=b'], GOOD) }], {
    injected: ['Authorization: Bearer call-1-sesame>>open??now~~42~'],
  }),
  cached('C-03 body-at-the-limit', [body(GOOD.padEnd(65_400))]),
  cached('C-03 gzip', [coded('gzip', gzipSync('{"headers":{}}'))], { outcomes: ['plain', 'plain'] }),
];

const silent = (name: string, steps: readonly CallbackStep[]): CallbackRow =>
  failing(`C-03 ${name}`, steps, 'no complete response within 400 ms', { config: 'impatient' });

const slow: readonly CallbackRow[] = [
  silent('silence', ['closed']),
  silent('silence-after-a-status-line', [{ send: OK }, 'closed']),
  silent('silence-within-a-field', [{ send: `${OK}Content-Le` }, 'closed']),
  silent('silence-within-the-body', [{ send: `${OK}Content-Length: 44\r\n\r\n{"headers":` }, 'closed']),
  silent('silence-before-the-last-chunk', [
    { send: `${OK}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n` },
    'closed',
  ]),
  silent('body-that-never-ends-in-crumbs', [{ send: `${OK}\r\n` }, { drip: '[' }, 'closed']),
  silent('hints-without-end', [{ send: 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(50) }, 'closed']),
];

const broken: readonly (readonly [name: string, steps: readonly CallbackStep[]])[] = [
  ['end-before-the-head', ['end']],
  ['reset-before-the-head', ['reset']],
  ['end-within-the-head', [{ send: `${OK}Content-Length: 4` }, 'end']],
  ['end-within-the-body', [{ send: `${OK}Content-Length: 99\r\n\r\n${GOOD}` }, 'end']],
  ['reset-within-the-body', [{ send: `${OK}Content-Length: 99\r\n\r\n${GOOD}` }, 'reset']],
  ['end-before-the-last-chunk', [{ send: `${OK}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n` }, 'end']],
  [
    'length-and-chunks',
    [{ send: `${OK}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n` }],
  ],
  ['two-lengths', [{ send: `${OK}Content-Length: 2\r\nContent-Length: 14\r\n\r\n{"headers":{}}` }]],
  ['chunk-size-that-is-none', [{ send: `${OK}Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n` }]],
  ['bare-line-feeds', [{ send: 'HTTP/1.1 200 OK\nContent-Length: 14\n\n{"headers":{}}' }]],
  ['another-protocol', [{ send: 'SSH-2.0-OpenSSH_9.2\r\n' }]],
  ['bytes-of-tls', [{ send: '\x15\x03\x01\0\x02\x02\x28' }, 'end']],
  [
    'switch-of-protocols',
    [{ send: 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n' }],
  ],
];

/** The endpoint fails, and no request is sent without the headers that it must return. */
const closed: readonly CallbackRow[] = [
  ...broken.map(([name, steps]) => failing(`C-07 ${name}`, steps)),
  ...(
    [
      [
        'certificate-of-another-name',
        'https://any.test:{SECURE}/',
        'transport failed: ERR_TLS_CERT_ALTNAME_INVALID',
      ],
      ['no-listener', 'http://127.0.0.1:1/', 'transport failed: ECONNREFUSED'],
    ] as const
  ).map(
    ([name, url, cause]): CallbackRow => ({
      id: `C-07 ${name}`,
      script: { entry: { url }, play: [{ ask: 2 }] },
      expect: { outcomes: ['failed', 'failed'], calls: 0, cause },
    }),
  ),
  {
    id: 'C-07 tls-to-a-plaintext-endpoint',
    script: { config: 'impatient', entry: { url: 'https://cb.test:{CALLBACK}/' }, play: [{ ask: 1 }] },
    expect: { outcomes: ['failed'], calls: 0, cause: 'no complete response within 400 ms' },
  },
  {
    id: 'C-07 plaintext-to-a-tls-endpoint',
    script: { entry: { url: 'http://cb.test:{SECURE}/' }, play: [{ ask: 2 }] },
    expect: { outcomes: ['failed', 'failed'], calls: 0 },
  },
  {
    id: 'C-07 four-sequential-failures',
    script: { responses: [['end'], ['reset'], [body('{}')], [{ json: [] }]], play: [{ ask: 5 }] },
    expect: { outcomes: ['failed', 'failed', 'failed', 'failed', 'call-5'], calls: 5 },
  },
  {
    id: 'C-07 failure-after-the-cached-result-expired',
    script: { responses: [[body(GOOD)], ['reset']], play: [{ ask: 2 }, { advanceMs: 60_000 }, { ask: 2 }] },
    expect: { outcomes: ['call-1', 'call-1', 'failed', 'call-3'], calls: 3 },
  },
  {
    id: 'C-07 silence-after-the-cached-result-expired',
    script: {
      config: 'impatient',
      responses: [[body(GOOD)], ['closed']],
      play: [{ ask: 1 }, { advanceMs: 60_000 }, { ask: 1 }, { ask: 1 }],
    },
    expect: { outcomes: ['call-1', 'failed', 'call-3'], calls: 3 },
  },
  {
    id: 'C-07 failure-for-one-host-while-another-is-cached',
    script: {
      responses: [[body(GOOD)], ['end']],
      play: [{ ask: 1 }, { ask: 1, to: 'h0.api.test' }, { ask: 1 }],
    },
    expect: { outcomes: ['call-1', 'failed', 'call-1'], calls: 2 },
  },
];

export const replyRows: readonly CallbackRow[] = [
  ...bombs.map(([name, steps, cause]) => failing(`C-03 ${name}`, steps, cause)),
  ...slow,
  ...refusedBodies,
  ...accepted,
  ...closed,
];
