// Own bytes, modelled on the tests of Http11Probe (https://github.com/MDA2AV/Http11Probe, MIT): one row for each of its
// request tests, with its name in lower case. Its verdicts are for servers; the expectations here are for a proxy that
// injects a credential.
import {
  type MessageExpectation,
  type MessageRow,
  accepted,
  arrival,
  malformed,
  refused,
  request,
  rowsOf,
} from './message-script.ts';

type Row = readonly [name: string, send: string, expect: MessageExpectation];

const EVIL = 'GET /evil HTTP/1.1\r\nHost: api.test\r\n\r\n';
const unsupported = refused(501, 'transfer_coding_refused');
const version = refused(505, 'version_refused');
const probe = (fields: readonly string[], body = 'hello'): string => request('POST /probe', fields, body);
const coding = (body: string): string => probe(['Transfer-Encoding: chunked'], body);
const start = (line: string): string => `${line}\r\nHost: {HOST}\r\n\r\n`;
const passes = (fields: readonly string[], body = 'hello'): MessageExpectation =>
  accepted(arrival('POST /probe', fields, body));

const lengths: readonly Row[] = [
  ['comp-cl-non-numeric', probe(['Content-Length: abc']), malformed],
  ['comp-cl-plus-sign', probe(['Content-Length: +5']), malformed],
  ['mal-cl-overflow', probe(['Content-Length: 99999999999999999999']), malformed],
  ['mal-cl-empty', probe(['Content-Length: ']), malformed],
  ['mal-cl-tab-before-value', probe(['Content-Length:\t5']), malformed],
  ['smug-cl-leading-zeros', probe(['Content-Length: 005']), malformed],
  ['smug-cl-negative', probe(['Content-Length: -1']), malformed],
  ['smug-cl-negative-zero', probe(['Content-Length: -0'], ''), malformed],
  ['smug-cl-double-zero', probe(['Content-Length: 00'], ''), malformed],
  ['smug-cl-leading-zeros-octal', probe(['Content-Length: 0200']), malformed],
  ['smug-cl-octal', probe(['Content-Length: 0o5']), malformed],
  ['smug-cl-hex-prefix', probe(['Content-Length: 0x5']), malformed],
  ['smug-cl-internal-space', probe(['Content-Length: 1 0'], 'hello12345'), malformed],
  ['smug-cl-underscore', probe(['Content-Length: 1_0'], 'hello12345'), malformed],
  ['smug-cl-trailing-space', probe(['Content-Length: 5 ']), passes(['Content-Length: 5 '])],
  ['smug-cl-extra-leading-sp', probe(['Content-Length:  5']), passes(['Content-Length:  5'])],
  ['comp-post-cl-body', probe(['Content-Length: 5']), passes(['Content-Length: 5'])],
];

const repeated: readonly Row[] = [
  ['smug-duplicate-cl', probe(['Content-Length: 5', 'Content-Length: 10']), malformed],
  ['smug-cl-comma-different', probe(['Content-Length: 5, 10']), malformed],
  ['smug-cl-comma-same', probe(['Content-Length: 5, 5']), malformed],
  ['smug-cl-comma-triple', probe(['Content-Length: 5, 5, 5']), malformed],
  [
    'smug-duplicate-cl-smuggled-get',
    probe(['Content-Length: 5', `Content-Length: ${5 + EVIL.length}`], `hello${EVIL}`),
    malformed,
  ],
];

const both: readonly Row[] = [
  ['smug-cl-te-both', probe(['Content-Length: 6', 'Transfer-Encoding: chunked'], '0\r\n\r\n'), malformed],
  ['smug-clte-pipeline', probe(['Content-Length: 4', 'Transfer-Encoding: chunked'], '0\r\n\r\n'), malformed],
  ['smug-tecl-pipeline', probe(['Transfer-Encoding: chunked', 'Content-Length: 30'], '0\r\n\r\n'), malformed],
  [
    'smug-clte-conn-close',
    probe(['Connection: close', 'Content-Length: 6', 'Transfer-Encoding: chunked'], '0\r\n\r\n'),
    malformed,
  ],
  [
    'smug-tecl-conn-close',
    probe(['Transfer-Encoding: chunked', 'Content-Length: 6', 'Connection: close'], '0\r\n\r\n'),
    malformed,
  ],
  ['smug-clte-desync', probe(['Content-Length: 6', 'Transfer-Encoding: chunked'], '0\r\n\r\nX'), malformed],
  ['smug-tecl-desync', probe(['Transfer-Encoding: chunked', 'Content-Length: 6'], '0\r\n\r\nX'), malformed],
  [
    'smug-clte-smuggled-get',
    probe([`Content-Length: ${EVIL.length + 5}`, 'Transfer-Encoding: chunked'], `0\r\n\r\n${EVIL}`),
    malformed,
  ],
  [
    'smug-clte-smuggled-head',
    probe(['Content-Length: 60', 'Transfer-Encoding: chunked'], `0\r\n\r\n${EVIL.replace('GET', 'HEAD')}`),
    malformed,
  ],
  [
    'smug-clte-smuggled-get-cl-plus',
    probe(['Content-Length: +50', 'Transfer-Encoding: chunked'], `0\r\n\r\n${EVIL}`),
    malformed,
  ],
  [
    'smug-clte-smuggled-get-cl-non-numeric',
    probe(['Content-Length: N', 'Transfer-Encoding: chunked'], `0\r\n\r\n${EVIL}`),
    malformed,
  ],
  [
    'smug-clte-smuggled-get-te-trailing-space',
    probe(['Content-Length: 50', 'Transfer-Encoding: chunked '], `0\r\n\r\n${EVIL}`),
    malformed,
  ],
  [
    'smug-clte-smuggled-get-te-leading-comma',
    probe(['Content-Length: 50', 'Transfer-Encoding: , chunked'], `0\r\n\r\n${EVIL}`),
    malformed,
  ],
  [
    'smug-clte-smuggled-get-te-case-mismatch',
    probe(['Content-Length: 50', 'Transfer-Encoding: Chunked'], `0\r\n\r\n${EVIL}`),
    malformed,
  ],
  [
    'smug-clte-smuggled-get-te-obs-fold',
    probe(['Content-Length: 50', 'Transfer-Encoding:', ' chunked'], `0\r\n\r\n${EVIL}`),
    malformed,
  ],
  [
    'smug-tecl-smuggled-get',
    probe(
      ['Transfer-Encoding: chunked', 'Content-Length: 4'],
      `${EVIL.length.toString(16)}\r\n${EVIL}\r\n0\r\n\r\n`,
    ),
    malformed,
  ],
];

const codings: readonly Row[] = [
  ['comp-unknown-te-501', probe(['Transfer-Encoding: gzip'], ''), unsupported],
  ['smug-te-xchunked', probe(['Transfer-Encoding: xchunked']), unsupported],
  ['smug-te-identity', probe(['Transfer-Encoding: identity']), unsupported],
  ['smug-te-empty-value', probe(['Transfer-Encoding: ']), unsupported],
  ['smug-te-leading-comma', probe(['Transfer-Encoding: , chunked'], '0\r\n\r\n'), unsupported],
  ['smug-te-trailing-comma', probe(['Transfer-Encoding: chunked,'], '0\r\n\r\n'), unsupported],
  ['smug-te-double-chunked', probe(['Transfer-Encoding: chunked, chunked'], '0\r\n\r\n'), unsupported],
  ['smug-te-not-final-chunked', probe(['Transfer-Encoding: chunked, gzip'], '0\r\n\r\n'), unsupported],
  ['smug-chunked-with-params', probe(['Transfer-Encoding: chunked;ext=val'], '0\r\n\r\n'), unsupported],
  ['smug-te-tab-before-value', probe(['Transfer-Encoding:\tchunked'], '0\r\n\r\n'), unsupported],
  [
    'smug-te-duplicate-headers',
    probe(['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'], '0\r\n\r\n'),
    malformed,
  ],
  [
    'smug-te-duplicate-headers-smuggled-get',
    probe(['Transfer-Encoding: chunked', 'Transfer-Encoding: x'], `0\r\n\r\n${EVIL}`),
    malformed,
  ],
  ['smug-te-vtab', probe(['Transfer-Encoding: \x0bchunked'], '0\r\n\r\n'), malformed],
  ['smug-te-formfeed', probe(['Transfer-Encoding: \x0cchunked'], '0\r\n\r\n'), malformed],
  ['smug-te-null', probe(['Transfer-Encoding: chunked\0'], '0\r\n\r\n'), malformed],
  ['smug-te-sp-before-colon', probe(['Transfer-Encoding : chunked'], '0\r\n\r\n'), malformed],
  ['smug-te-obs-fold', probe(['Transfer-Encoding:', ' chunked'], '0\r\n\r\n'), malformed],
  [
    'smug-options-te-obs-fold',
    request('OPTIONS /probe', ['Transfer-Encoding:', '\tchunked'], '0\r\n\r\n'),
    malformed,
  ],
];

const chunks: readonly Row[] = [
  ['smug-chunk-bare-semicolon', coding('5;\r\nhello\r\n0\r\n\r\n'), malformed],
  ['smug-chunk-ext-invalid-token', coding('5;bad[=x\r\nhello\r\n0\r\n\r\n'), malformed],
  ['smug-chunk-ext-lf', coding('5;\nhello\r\n0\r\n\r\n'), malformed],
  ['smug-chunk-ext-ctrl', coding('5;\0\r\nhello\r\n0\r\n\r\n'), malformed],
  ['smug-chunk-ext-cr', coding('5;a\rb\r\nhello\r\n0\r\n\r\n'), malformed],
  ['smug-chunk-underscore', coding('1_0\r\nhello\r\n0\r\n\r\n'), malformed],
  ['smug-chunk-hex-prefix', coding('0x5\r\nhello\r\n0\r\n\r\n'), malformed],
  ['smug-chunk-size-plus', coding('+5\r\nhello\r\n0\r\n\r\n'), malformed],
  ['smug-chunk-size-trailing-ows', coding('5 \r\nhello\r\n0\r\n\r\n'), malformed],
  ['smug-chunk-leading-sp', coding(' 5\r\nhello\r\n0\r\n\r\n'), malformed],
  ['smug-chunk-missing-trailing-crlf', coding('5\r\nhello0\r\n\r\n'), malformed],
  ['smug-chunk-spill', coding('5\r\nhello!!\r\n0\r\n\r\n'), malformed],
  ['smug-chunk-lf-term', coding('5\r\nhello\n0\r\n\r\n'), malformed],
  ['smug-chunk-bare-cr-term', coding('5\rhello\r\n0\r\n\r\n'), malformed],
  ['smug-chunk-negative', coding('-1\r\nhello\r\n0\r\n\r\n'), malformed],
  ['smug-chunk-invalid-size-desync', coding(`5z\r\nhello\r\n0\r\n\r\n${EVIL}`), malformed],
  ['mal-chunk-size-overflow', coding('FFFFFFFFFFFFFFFF0\r\nhello\r\n0\r\n\r\n'), malformed],
  ['mal-chunk-ext-64k', coding(`5;ext=${'e'.repeat(9000)}\r\nhello\r\n0\r\n\r\n`), malformed],
];

const trailers: readonly Row[] = [
  ['smug-chunk-lf-trailer', coding('5\r\nhello\r\n0\r\n\n'), malformed],
  ['smug-trailer-cl', coding('5\r\nhello\r\n0\r\nContent-Length: 50\r\n\r\n'), malformed],
  ['smug-trailer-te', coding('5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n'), malformed],
];

/** The proxy drops all trailers. */
const dropped = ['Host: evil.test', 'Authorization: Bearer evil', 'Content-Type: evil/evil'].map(
  (line): Row => [
    `smug-trailer-${line.slice(0, line.indexOf(':')).toLowerCase()}`,
    coding(`5\r\nhello\r\n0\r\n${line}\r\n\r\n`),
    {
      ...accepted(arrival('POST /probe', ['Transfer-Encoding: chunked'], 'hello', 'chunked')),
      unseen: ['evil'],
    },
  ],
);

const lines: readonly Row[] = [
  ['rfc9112-2.2-bare-lf-request-line', 'GET {AT}/probe HTTP/1.1\nHost: {HOST}\r\n\r\n', malformed],
  ['rfc9112-2.2-bare-lf-header', 'GET {AT}/probe HTTP/1.1\r\nHost: {HOST}\n\r\n', malformed],
  ['rfc9112-3-cr-only-line-ending', 'GET {AT}/probe HTTP/1.1\rHost: {HOST}\r\n\r\n', malformed],
  ['smug-bare-cr-header-value', probe(['X-Test: val\rue']), malformed],
  ['mal-nul-in-url', start('GET {AT}/probe\0evil HTTP/1.1'), malformed],
  ['mal-control-chars-header', probe(['X-Test: a\x01\x02b']), malformed],
  ['mal-nul-in-header-value', probe(['X-Test: a\0b']), malformed],
  ['mal-non-ascii-url', start('GET {AT}/pr\xc3\xb6be HTTP/1.1'), malformed],
  ['mal-binary-garbage', '\x80\xff\x01\xfe\0garbage\r\n\r\n', malformed],
  ['mal-whitespace-only-line', '   \r\n\r\n', malformed],
  ['comp-leading-crlf', `\r\n${start('GET {AT}/probe HTTP/1.1')}`, accepted(arrival('GET /probe'))],
];

const names: readonly Row[] = [
  ['rfc9110-5.6.2-sp-before-colon', probe(['X-Test : value']), malformed],
  ['rfc9112-3-multi-sp-request-line', start('GET  {AT}/probe HTTP/1.1'), malformed],
  ['rfc9112-5-empty-header-name', probe([': value']), malformed],
  ['rfc9112-5-invalid-header-name', probe(['Bad[Name]: value']), malformed],
  ['rfc9112-5-header-no-colon', probe(['NoColonHere']), malformed],
  ['rfc9112-3-missing-target', start('POST HTTP/1.1'), malformed],
  ['comp-whitespace-before-headers', `GET {AT}/probe HTTP/1.1\r\n \r\nHost: {HOST}\r\n\r\n`, malformed],
  ['comp-request-line-tab', start('GET\t{AT}/probe\tHTTP/1.1'), malformed],
  ['comp-space-in-target', start('GET {AT}/pro be HTTP/1.1'), malformed],
  ['mal-non-ascii-header-name', probe(['X-T\xebst: value']), malformed],
  ['norm-sp-before-colon-cl', probe(['Content-Length : 5']), malformed],
  ['norm-tab-in-name', probe(['Content\t-Length: 5']), malformed],
];

const versions: readonly Row[] = [
  ['rfc9112-2.3-invalid-version', start('GET {AT}/probe HTTP/9.9'), version],
  ['comp-http12-version', start('GET {AT}/probe HTTP/1.2'), version],
  ['mal-h2-preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0', version],
  ['comp-version-missing-minor', start('GET {AT}/probe HTTP/1'), malformed],
  ['comp-version-leading-zeros', start('GET {AT}/probe HTTP/001.001'), malformed],
  ['comp-version-whitespace', start('GET {AT}/probe HTTP/ 1.1'), malformed],
  ['comp-version-case', start('GET {AT}/probe hTTP/1.1'), malformed],
];

export const http11ProbeRows: readonly MessageRow[] = [
  ...rowsOf('F-04', lengths),
  ...rowsOf('F-03', repeated),
  ...rowsOf('F-02', both),
  ...rowsOf('F-08', codings),
  ...rowsOf('F-09', [['smug-te-http10', coding('0\r\n\r\n').replace('HTTP/1.1', 'HTTP/1.0'), malformed]]),
  ...rowsOf('F-10', chunks),
  ...rowsOf('F-12', [...trailers, ...dropped]),
  ...rowsOf('F-07', lines),
  ...rowsOf('F-05', names),
  ...rowsOf('F-06', [['rfc9112-5.1-obs-fold', probe(['X-Test: value', ' folded']), malformed]]),
  ...rowsOf('F-18', versions),
  ...rowsOf('F-19', [['rfc9112-2.3-http09-request', 'GET {AT}/probe\r\n', malformed]]),
  ...rowsOf('F-14', [
    ['norm-underscore-cl', probe(['Content_Length: 5']), malformed],
    [
      'norm-underscore-te',
      probe(['Transfer_Encoding: chunked', 'Content-Length: 5'], '0\r\n\r\n'),
      malformed,
    ],
  ]),
  ...rowsOf('F-22', [
    [
      'comp-expect-unknown',
      probe(['Expect: 200-ok', 'Content-Length: 5']),
      refused(417, 'expectation_failed'),
    ],
  ]),
  ...rowsOf('D-08', [
    [
      'comp-host-with-userinfo',
      'GET {AT}/probe HTTP/1.1\r\nHost: user@{HOST}\r\n\r\n',
      refused(400, 'host_invalid'),
    ],
    [
      'comp-host-with-path',
      'GET {AT}/probe HTTP/1.1\r\nHost: {HOST}/p\r\n\r\n',
      refused(400, 'host_invalid'),
    ],
    ['rfc9110-5.4-duplicate-host', probe(['Host: other.test']), refused(400, 'host_invalid')],
    ['comp-duplicate-host-same', probe(['Host: {HOST}']), refused(400, 'host_invalid')],
    ['rfc9112-7.1-missing-host', 'GET {AT}/probe HTTP/1.1\r\n\r\n', refused(400, 'host_invalid')],
    [
      'smug-multiple-host-comma',
      'GET {AT}/probe HTTP/1.1\r\nHost: {HOST}, evil\r\n\r\n',
      refused(400, 'host_invalid'),
    ],
    ['comp-host-empty-value', 'GET {AT}/probe HTTP/1.1\r\nHost: \r\n\r\n', refused(400, 'host_invalid')],
  ]),
  ...rowsOf('H-08', [
    ['comp-method-trace', request('TRACE /probe'), refused(405, 'method_refused')],
    [
      'comp-trace-with-body',
      request('TRACE /probe', ['Content-Length: 5'], 'hello'),
      refused(405, 'method_refused'),
    ],
    ['comp-trace-sensitive', request('TRACE /probe', ['Cookie: a=b']), refused(405, 'method_refused')],
  ]),
  ...rowsOf('H-13', [
    ['mal-long-url', start(`GET {AT}/${'p'.repeat(10_000)} HTTP/1.1`), refused(414, 'uri_too_long')],
    ['mal-long-header-value', probe([`X-Big: ${'B'.repeat(20_000)}`]), refused(431, 'head_too_large')],
    ['mal-long-header-name', probe([`${'B'.repeat(20_000)}: v`]), refused(431, 'head_too_large')],
    [
      'mal-many-headers',
      probe(Array.from({ length: 1000 }, (_, i) => `H-${i}: v`)),
      refused(431, 'head_too_large'),
    ],
    ['mal-long-method', start(`${'A'.repeat(10_000)} {AT}/probe HTTP/1.1`), refused(405, 'method_refused')],
  ]),
];
