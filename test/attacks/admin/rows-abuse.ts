// A-09: malformed HTTP, too much of it, and clients that leave in the middle, at a port with few connections.
import { type AdminRow, BEARER, HOST, JSON_TYPE, adminRow, request } from './admin-script.ts';

const CONFIG = '/v1/proxy_config';
const head = (line: string, ...fields: readonly string[]): string =>
  `${[line, ...fields].join('\r\n')}\r\n\r\n`;
const own = (...fields: readonly string[]): string =>
  head(`PUT ${CONFIG} HTTP/1.1`, HOST, BEARER, JSON_TYPE, ...fields);
const ENDS = { ends: true } as const;

/** Heads and framings that the parser of the port rejects: one response, and the end. */
const MALFORMED: readonly (readonly [name: string, bytes: string])[] = [
  ['two-lengths', `${own('Content-Length: 2', 'Content-Length: 3')}{} `],
  ['length-list', `${own('Content-Length: 2, 2')}{}`],
  ['length-beside-chunks', `${own('Content-Length: 2', 'Transfer-Encoding: chunked')}0\r\n\r\n`],
  ['negative-length', `${own('Content-Length: -1')}{}`],
  ['signed-length', `${own('Content-Length: +2')}{}`],
  ['hex-length', `${own('Content-Length: 0x2')}{}`],
  ['endless-length', `${own('Content-Length: 99999999999999999999999')}{}`],
  ['blank-before-colon', head('GET /healthz HTTP/1.1', HOST, 'X-A : 1')],
  ['field-without-colon', head('GET /healthz HTTP/1.1', HOST, 'nonsense')],
  ['empty-name', head('GET /healthz HTTP/1.1', HOST, ': 1')],
  ['nul-in-a-value', head('GET /healthz HTTP/1.1', HOST, 'X-A: \u0000')],
  ['bare-carriage-return', 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: 1\rX-B: 2\r\n\r\n'],
  ['bare-line-feeds', 'GET /healthz HTTP/1.1\nHost: localhost\n\n'],
  [
    'folded-field',
    'GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: 1\r\n 2: 3\r\n\r\n'.replace('X-A: 1\r\n ', 'X-A\r\n '),
  ],
  ['version-1.2', head('GET /healthz HTTP/1.2', HOST)],
  ['two-versions', head('GET /healthz HTTP/1.1 HTTP/1.1', HOST)],
  ['http2-preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['tls-hello', '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003'],
  ['ssh', 'SSH-2.0-OpenSSH_9.9\r\n'],
  [
    'proxy-protocol',
    'PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n',
  ],
  ['method-unknown', head('SALLY /healthz HTTP/1.1', HOST)],
  ['method-in-small-letters', head('get /healthz HTTP/1.1', HOST)],
  ['blank-in-the-target', head('GET /health z HTTP/1.1', HOST)],
  ['smtp', 'EHLO localhost\r\nMAIL FROM:<a@b>\r\n'],
  ['redis', '*1\r\n$8\r\nFLUSHALL\r\n'],
];

/** A head that is read, and refused for its framing. */
const ODD: readonly (readonly [name: string, bytes: string, status: number, record: string])[] = [
  ['version-0.9', 'GET /healthz\r\n\r\n', 505, ''],
  ['version-2.0', head('GET /healthz HTTP/2.0', HOST, BEARER), 505, ''],
  ['version-0.9-in-words', head('GET /healthz HTTP/0.9', HOST, BEARER), 505, ''],
  [
    'chunks-in-1.0',
    `${head(`PUT ${CONFIG} HTTP/1.0`, HOST, BEARER, JSON_TYPE, 'Transfer-Encoding: chunked')}2\r\n{}\r\n0\r\n\r\n`,
    400,
    '400 framing',
  ],
  ['expect-nonsense', `${own('Content-Length: 2', 'Expect: 200-ok')}{}`, 417, '417 expectation'],
  ['encoded-body', `${own('Content-Length: 2', 'Content-Encoding: gzip')}{}`, 415, '415 content_encoding'],
  [
    'conditional-on-what-has-no-tag',
    request('PUT /v1/workspace_secrets', [HOST, BEARER, JSON_TYPE, 'If-Match: *'], '{}'),
    400,
    '400 no_etag',
  ],
  [
    'malformed-tag',
    request(`PUT ${CONFIG}`, [HOST, BEARER, JSON_TYPE, 'If-Match: nonsense'], '{}'),
    400,
    '400 malformed_etag',
  ],
  [
    'stale-tag',
    request(`PUT ${CONFIG}`, [HOST, BEARER, JSON_TYPE, 'If-Match: "nonsense"'], '{}'),
    412,
    '412 stale',
  ],
  [
    'unwanted-tag',
    request(`PUT ${CONFIG}`, [HOST, BEARER, JSON_TYPE, 'If-None-Match: *'], '{}'),
    412,
    '412 stale',
  ],
  [
    'etag-in-the-document',
    request(`PUT ${CONFIG}`, [HOST, BEARER, JSON_TYPE], '{"proxy_config":{},"etag":"\\"old\\""}'),
    412,
    '412 stale',
  ],
  [
    'bad-utf8',
    request(`PUT ${CONFIG}`, [HOST, BEARER, JSON_TYPE], '{"no_proxy":["\u00ff\u00fe"]}'),
    422,
    '422 invalid',
  ],
  [
    'overlong-utf8',
    request(`PUT ${CONFIG}`, [HOST, BEARER, JSON_TYPE], '{"no_proxy":["\u00c0\u00ae"]}'),
    422,
    '422 invalid',
  ],
  ['a-query', request(`PUT ${CONFIG}?dry_run=true`, [HOST, BEARER, JSON_TYPE], '{}'), 422, '422 invalid'],
];

const framingRows: readonly AdminRow[] = [
  ...MALFORMED.map(([name, bytes]) => adminRow(`A-09 ${name}`, bytes, 400, undefined, ENDS)),
  ...ODD.map(([name, bytes, status, record]) =>
    adminRow(`A-09 ${name}`, bytes, status, record === '' ? undefined : record),
  ),
  adminRow('A-09 trace', request('TRACE /healthz', [HOST, BEARER]), 405, '405 method'),
  adminRow('A-09 delete-the-rules', request(`DELETE ${CONFIG}`, [HOST, BEARER]), 405, '405 method'),
  adminRow(
    'A-09 unknown-path-with-a-body',
    request('POST /v1/shell', [HOST, BEARER, JSON_TYPE], '{}'),
    404,
    '404 no_route',
  ),
];

const MIB = 1_048_576;
const turnsOf = (
  id: AdminRow['id'],
  turns: AdminRow['script']['turns'],
  expect: AdminRow['expect'],
): AdminRow => ({ id, script: { turns }, expect });
const sizeRows: readonly AdminRow[] = [
  turnsOf('A-09 fifty-megabytes-announced', [[own(`Content-Length: ${50 * MIB}`)]], {
    statuses: [413],
    records: ['413 too_large'],
    ends: true,
  }),
  turnsOf('A-09 one-byte-beyond', [[own(`Content-Length: ${MIB + 1}`), ['a', MIB + 1]]], {
    statuses: [413],
    records: ['413 too_large'],
    ends: true,
  }),
  turnsOf(
    'A-09 chunks-beyond',
    [[own('Transfer-Encoding: chunked'), [`10000\r\n${'a'.repeat(65_536)}\r\n`, 17]]],
    { statuses: [413], records: ['413 too_large'], ends: true },
  ),
  turnsOf('A-09 chunks-of-one-byte', [[own('Transfer-Encoding: chunked'), ['1\r\na\r\n', 50_000]]], {
    statuses: [400],
    records: ['400 tiny_chunks'],
    ends: true,
  }),
  turnsOf(
    'A-09 beyond-without-a-token',
    [[head(`PUT ${CONFIG} HTTP/1.1`, HOST, JSON_TYPE, `Content-Length: ${50 * MIB}`), ['a', 65_536]]],
    { statuses: [401], records: ['401 no_token'], ends: true },
  ),
  turnsOf(
    'A-09 continue-is-not-asked-for-too-much',
    [[own(`Content-Length: ${50 * MIB}`, 'Expect: 100-continue')]],
    { statuses: [413], records: ['413 too_large'], ends: true },
  ),
  turnsOf(
    'A-09 continue-is-not-asked-without-a-token',
    [[head(`PUT ${CONFIG} HTTP/1.1`, HOST, JSON_TYPE, 'Content-Length: 2', 'Expect: 100-continue')]],
    { statuses: [401], records: ['401 no_token'], ends: true },
  ),
  turnsOf(
    'A-09 one-field-of-20-kilobytes',
    [['GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: ', ['a', 20_000], '\r\n\r\n']],
    { statuses: [431], ends: true },
  ),
  turnsOf(
    'A-09 thousands-of-fields',
    [['GET /healthz HTTP/1.1\r\nHost: localhost\r\n', ['X-A: 1\r\n', 3_000], '\r\n']],
    { statuses: [431], ends: true },
  ),
  turnsOf(
    'A-09 a-target-of-20-kilobytes',
    [['GET /', ['a', 20_000], ' HTTP/1.1\r\nHost: localhost\r\n\r\n']],
    { statuses: [431], ends: true },
  ),
  turnsOf(
    'A-09 a-chunk-extension-of-20-kilobytes',
    [[own('Transfer-Encoding: chunked'), '2;', ['a', 20_000], '\r\n{}\r\n0\r\n\r\n']],
    { statuses: [400], records: ['400 malformed'], ends: true },
  ),
  turnsOf('A-09 a-chunk-size-that-is-none', [[own('Transfer-Encoding: chunked'), 'zz\r\n{}\r\n0\r\n\r\n']], {
    statuses: [400],
    records: ['400 malformed'],
    ends: true,
  }),
  turnsOf(
    'A-09 a-hundred-writes-and-one-more',
    [...Array.from({ length: 101 }, () => [request('DELETE /v1/sandboxes/nobody', [HOST, BEARER])])],
    {
      statuses: [...Array.from({ length: 100 }, () => 404), 429],
      records: [...Array.from({ length: 100 }, () => '404 not_found'), '429 too_many_writes'],
    },
  ),
];

const leaving = (
  id: AdminRow['id'],
  leaves: 'FIN' | 'RST',
  bytes: AdminRow['script']['turns'][number],
  records: readonly string[],
): AdminRow => ({
  id,
  script: { turns: [bytes], leaves },
  expect: { statuses: [], records },
});
const leavingRows: readonly AdminRow[] = [
  leaving('A-09 fin-in-the-head', 'FIN', [`PUT ${CONFIG} HTTP/1.1\r\nHost: loc`], []),
  leaving('A-09 reset-in-the-head', 'RST', [`PUT ${CONFIG} HTTP/1.1\r\nHost: localh`], []),
  leaving('A-09 fin-in-the-body', 'FIN', [own('Content-Length: 12'), '{"rules":'], ['499 client_gone']),
  leaving(
    'A-09 fin-in-a-chunk',
    'FIN',
    [own('Transfer-Encoding: chunked'), '10\r\n{"rules"'],
    ['499 client_gone'],
  ),
];

export const abuseAdminRows: readonly AdminRow[] = [...framingRows, ...sizeRows, ...leavingRows];
