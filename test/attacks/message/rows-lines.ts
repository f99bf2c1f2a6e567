// F-05 to F-07, F-13: lines that two hops count differently; F-18, F-19: versions other than HTTP/1.1.
import {
  type MessageRow,
  type MessageScript,
  accepted,
  arrival,
  malformed,
  refused,
  request,
  rowsOf,
} from './message-script.ts';

const SMUGGLED = 'GET /smuggled HTTP/1.1\r\nHost: api.test\r\n\r\n';
const tooLarge = refused(431, 'head_too_large');
const version = refused(505, 'version_refused');

const lines: readonly (readonly [string, string])[] = [
  ['space-before-colon', 'X : a'],
  ['tab-before-colon', 'X\t: a'],
  ['credential-before-space', 'Authorization : Bearer AGENT'],
  ['host-before-space', 'Host : evil.test'],
  ['length-before-space', 'Content-Length : 30'],
  ['length-before-tab', 'Content-Length\t: 30'],
  ['no-colon', 'X-A'],
  ['no-colon-but-equals', 'X=a'],
  ['empty-name', ': a'],
  ['two-colons-first', ':authority: evil.test'],
  ['space-in-name', 'X A: b'],
  ['space-in-credential-name', 'X-Ignore Authorization: Bearer AGENT'],
  ['brackets-in-name', 'X[0]: a'],
  ['slash-in-name', 'X/A: b'],
  ['quote-in-name', '"X": a'],
  ['comma-in-name', 'X,Authorization: a'],
  ['semicolon-in-name', 'X;a: b'],
  ['at-in-name', 'X@a: b'],
  ['equals-in-name', 'X=a: b'],
  ['latin1-in-name', 'X\xe9: a'],
  ['utf8-in-name', 'X\xc3\xa9: a'],
  ['no-break-space-in-name', 'Authorization\xa0: a'],
  ['request-line-as-field', 'GET /smuggled HTTP/1.1'],
];

const folds: readonly (readonly [string, readonly string[]])[] = [
  ['space', ['X: a', ' b']],
  ['tab', ['X: a', '\tb']],
  ['many-spaces', ['X: a', '        b']],
  ['field-in-the-fold', ['X: a', ' Authorization: Bearer AGENT']],
  ['empty-fold', ['X: a', ' ']],
  ['tab-fold-only', ['X: a', '\t']],
  ['host', ['X: 1', ' Host: evil.test']],
  ['length', ['Content-Length:', ' 3']],
  ['connection', ['Connection: keep-alive,', ' Authorization']],
  ['twice', ['X: a', ' b', ' c']],
  ['value-begins-in-the-fold', ['X:', '\ta']],
];

const breaks: readonly (readonly [string, string])[] = [
  ['lf-in-value', 'X: a\nb'],
  ['cr-in-value', 'X: a\rb'],
  ['nul-in-value', 'X: a\0b'],
  ['lf-hides-a-field', 'X: a\nAuthorization: Bearer AGENT'],
  ['cr-hides-a-field', 'X: a\rAuthorization: Bearer AGENT'],
  ['lf-ends-the-head', `X: a\n\n${SMUGGLED}`],
  ['cr-ends-the-head', `X: a\r\r${SMUGGLED}`],
  ['lf-cr', 'X: a\n\rY: b'],
  ['cr-cr-lf', 'X: a\r\r\nY: b'],
  ['cr-at-the-end-of-a-value', 'X: a\r \r\nY: b'],
  ['lf-cr-lf-ends-the-head', `X: a\n\r\n${SMUGGLED}`],
  ['cr-lf-lf-ends-the-head', `X: a\r\n\n${SMUGGLED}`],
  ['lf-in-name', 'X\nA: b'],
  ['cr-in-name', 'X\rA: b'],
  ['nul-in-name', 'X\0A: b'],
  ['nul-before-name', '\0X: b'],
  ['nul-after-name', 'Authorization\0: Bearer AGENT'],
  ['vertical-tab-in-value', 'X: a\x0bb'],
  ['form-feed-in-value', 'X: a\x0cb'],
  ['escape-in-value', 'X: \x1b[31ma'],
  ['bell-in-value', 'X: \x07'],
  ['backspace-in-value', 'X: ab\x08'],
  ['soh-in-value', 'X: \x01'],
  ['unit-separator-in-value', 'X: \x1f'],
  ['del-in-value', 'X: \x7f'],
];

const inLine = (bytes: string): MessageScript['send'] => `${bytes}Host: {HOST}\r\n\r\n`;

/** N fields, then one that a parser with a limit on fields does not see. */
const after = (count: number, line: string): string =>
  request('POST /x', [...Array.from({ length: count }, (_, i) => `X-${i}: a`), line], 'abc');

export const lineRows: readonly MessageRow[] = [
  ...rowsOf(
    'F-05',
    lines.map(([name, line]) => [name, request('GET /x', [line]), malformed]),
  ),
  ...rowsOf('F-05', [
    ['space-before-first-field', inLine('GET {AT}/x HTTP/1.1\r\n X: a\r\n'), malformed],
    ['space-before-host', 'GET {AT}/x HTTP/1.1\r\n Host: {HOST}\r\n\r\n', malformed],
    ['two-spaces-before-target', inLine('GET  {AT}/x HTTP/1.1\r\n'), malformed],
    ['two-spaces-after-target', inLine('GET {AT}/x  HTTP/1.1\r\n'), malformed],
    ['tab-after-method', inLine('GET\t{AT}/x HTTP/1.1\r\n'), malformed],
    ['tab-after-target', inLine('GET {AT}/x\tHTTP/1.1\r\n'), malformed],
    ['space-before-method', inLine(' GET {AT}/x HTTP/1.1\r\n'), malformed],
    ['space-after-version', inLine('GET {AT}/x HTTP/1.1 \r\n'), malformed],
    ['word-after-version', inLine('GET {AT}/x HTTP/1.1 x\r\n'), malformed],
    ['form-feed-after-target', inLine('GET {AT}/x\x0cHTTP/1.1\r\n'), malformed],
    ['target-missing', inLine('GET HTTP/1.1\r\n'), malformed],
    ['empty-target', inLine('GET  HTTP/1.1\r\n'), malformed],
  ]),
  ...rowsOf(
    'F-06',
    folds.map(([name, fields]) => [name, request('GET /x', fields), malformed]),
  ),
  ...rowsOf(
    'F-07',
    breaks.map(([name, line]) => [name, request('GET /x', [line]), malformed]),
  ),
  ...rowsOf('F-07', [
    ['lf-after-request-line', inLine('GET {AT}/x HTTP/1.1\n'), malformed],
    ['cr-after-request-line', inLine('GET {AT}/x HTTP/1.1\r'), malformed],
    ['lf-before-request-line', inLine('\nGET {AT}/x HTTP/1.1\r\n'), malformed],
    ['cr-before-request-line', inLine('\rGET {AT}/x HTTP/1.1\r\n'), malformed],
    ['nul-before-request-line', inLine('\0GET {AT}/x HTTP/1.1\r\n'), malformed],
    ['two-empty-lines-first', inLine('\r\n\r\nGET {AT}/x HTTP/1.1\r\n'), malformed],
    ['lf-only', 'GET {AT}/x HTTP/1.1\nHost: {HOST}\n\n', malformed],
    ['cr-only', 'GET {AT}/x HTTP/1.1\rHost: {HOST}\r\r', malformed],
    ['lf-in-target', inLine('GET {AT}/x\n HTTP/1.1\r\n'), malformed],
    ['cr-in-target', inLine('GET {AT}/x\r HTTP/1.1\r\n'), malformed],
    ['nul-in-target', inLine('GET {AT}/x\0 HTTP/1.1\r\n'), malformed],
    ['nul-in-method', inLine('G\0ET {AT}/x HTTP/1.1\r\n'), malformed],
    ['nul-in-version', inLine('GET {AT}/x HTTP/1.1\0\r\n'), malformed],
    ['byte-order-mark', inLine('\xef\xbb\xbfGET {AT}/x HTTP/1.1\r\n'), malformed],
    ['one-empty-line-first', `\r\n${request('GET /x')}`, accepted(arrival('GET /x'))],
    [
      'one-empty-line-between',
      `${request('GET /1')}\r\n${request('GET /2')}`,
      accepted(arrival('GET /1'), arrival('GET /2')),
    ],
    [
      'latin1-and-tabs-in-value',
      request('GET /x', ['X: a\tb \xc3\xa9 \xff']),
      accepted(arrival('GET /x', ['X: a\tb \xc3\xa9 \xff'])),
    ],
  ]),
  ...rowsOf('F-13', [
    ['length-after-2000', after(2000, 'Content-Length: 3').slice(0, 16_000), tooLarge],
    ['length-after-200', after(200, 'Content-Length: 3'), tooLarge],
    ['length-as-101st', after(99, 'Content-Length: 3'), tooLarge],
    ['coding-after-120', after(120, 'Transfer-Encoding: chunked'), tooLarge],
    ['host-after-120', after(120, 'Host: evil.test'), tooLarge],
    ['credential-after-110', after(110, 'Authorization: Bearer AGENT'), tooLarge],
    [
      'length-as-100th',
      after(98, 'Content-Length: 3'),
      accepted(
        arrival(
          'POST /x',
          [...Array.from({ length: 98 }, (_, i) => `X-${i}: a`), 'Content-Length: 3'],
          'abc',
        ),
      ),
    ],
  ]),
  ...rowsOf('F-18', [
    ['preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', version],
    ['preface-and-settings', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0', version],
    ['pri-as-http-1.1', 'PRI * HTTP/1.1\r\nHost: {HOST}\r\n\r\n', version],
    ['http-2.0-as-text', inLine('GET {AT}/x HTTP/2.0\r\n'), version],
    ['http-3.0', inLine('GET {AT}/x HTTP/3.0\r\n'), version],
    ['http-1.2', inLine('GET {AT}/x HTTP/1.2\r\n'), version],
    ['http-1.9', inLine('GET {AT}/x HTTP/1.9\r\n'), version],
    ['http-0.9-spelled', inLine('GET {AT}/x HTTP/0.9\r\n'), version],
    ['http-9.9', inLine('GET {AT}/x HTTP/9.9\r\n'), version],
    ['no-minor', inLine('GET {AT}/x HTTP/1\r\n'), malformed],
    ['two-digits', inLine('GET {AT}/x HTTP/1.10\r\n'), malformed],
    ['leading-zero', inLine('GET {AT}/x HTTP/01.1\r\n'), malformed],
    ['comma', inLine('GET {AT}/x HTTP/1,1\r\n'), malformed],
    ['lower-case', inLine('GET {AT}/x http/1.1\r\n'), malformed],
    ['inner-space', inLine('GET {AT}/x HTTP/ 1.1\r\n'), malformed],
    ['another-protocol', inLine('GET {AT}/x ICY/1.1\r\n'), malformed],
    ['rtsp', inLine('GET {AT}/x RTSP/1.0\r\n'), malformed],
    ['shouted', inLine('GET {AT}/x HTTPS/1.1\r\n'), malformed],
  ]),
  ...rowsOf('F-19', [
    ['bare', 'GET {AT}/x\r\n\r\n', malformed],
    ['with-lf', 'GET {AT}/x\n', malformed],
    ['trailing-space', 'GET {AT}/x \r\n\r\n', malformed],
    ['with-host', 'GET {AT}/x\r\nHost: {HOST}\r\n\r\n', malformed],
    ['then-a-request', `GET {AT}/x\r\n\r\n${SMUGGLED}`, malformed],
    ['post', 'POST {AT}/x\r\nContent-Length: 3\r\n\r\nabc', malformed],
    ['credential', 'GET {AT}/x\r\nAuthorization: Bearer AGENT\r\n\r\n', malformed],
  ]),
];
