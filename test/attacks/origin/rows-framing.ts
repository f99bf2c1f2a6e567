// heads with an ambiguous body length, and invalid status lines.
import { response, malformed, relayed } from './row-shapes.ts';
import type { OriginRow } from './origin-script.ts';

const OK = 'HTTP/1.1 200 OK\r\n';
const chunked = (fields: string, body = '2\r\nok\r\n0\r\n\r\n'): string => `${OK}${fields}\r\n\r\n${body}`;

const lengths: readonly (readonly [name: string, value: string])[] = [
  ['plus-sign', '+2'],
  ['minus-sign', '-2'],
  ['leading-zero', '02'],
  ['hexadecimal', '0x2'],
  ['fraction', '2.0'],
  ['exponent', '2e0'],
  ['list-of-equals', '2, 2'],
  ['list-of-two', '5, 6'],
  ['list-with-nothing', '2,'],
  ['parameter', '2;charset=utf-8'],
  ['nothing', ''],
  ['quoted', '"2"'],
  ['inner-space', '2 0'],
  ['tab-before', '\t2'],
  ['tab-after', '2\t'],
  ['thousands', '1_0'],
  ['arabic-digit', '\xd9\xa2'],
  ['fullwidth-digit', '\xef\xbc\x92'],
  ['two-to-the-53', '9007199254740992'],
  ['two-to-the-64-and-two', '18446744073709551618'],
  ['a-hundred-digits', '0'.repeat(99) + '2'],
];

const refusedLengths = lengths.map(([name, value]) =>
  malformed(`R-02 length-${name}`, `${OK}Content-Length:${value}\r\n\r\nok`, 'content_length_malformed'),
);

const codings: readonly (readonly [name: string, value: string])[] = [
  ['identity', 'identity'],
  ['gzip-then-chunked', 'gzip, chunked'],
  ['chunked-then-gzip', 'chunked, gzip'],
  ['chunked-twice', 'chunked, chunked'],
  ['comma-after', 'chunked,'],
  ['comma-before', ',chunked'],
  ['prefix', 'xchunked'],
  ['suffix', 'chunkedx'],
  ['parameter', 'chunked;q=1'],
  ['quoted', '"chunked"'],
  ['nothing', ''],
  ['tab-before', '\tchunked'],
  ['tab-after', 'chunked\t'],
  ['inner-nul-look-alike', 'chun\x80ked'],
  ['kelvin-sign', 'chun\xe2\x84\xaaed'],
];

const refusedCodings = codings.map(([name, value]) =>
  malformed(`R-02 coding-${name}`, chunked(`Transfer-Encoding:${value}`), 'transfer_encoding_unsupported'),
);

const together: readonly OriginRow[] = [
  malformed(
    'R-02 length-and-chunked',
    chunked('Content-Length: 3\r\nTransfer-Encoding: chunked'),
    'length_and_encoding',
  ),
  malformed(
    'R-02 chunked-and-length',
    chunked('Transfer-Encoding: chunked\r\nContent-Length: 13'),
    'length_and_encoding',
  ),
  malformed(
    'R-02 chunked-and-length-of-zero',
    chunked('transfer-encoding: CHUNKED\r\ncontent-length: 0'),
    'length_and_encoding',
  ),
  malformed(
    'R-02 identity-and-length',
    `${OK}Transfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nok`,
    'length_and_encoding',
  ),
  malformed(
    'R-02 two-equal-lengths',
    `${OK}Content-Length: 2\r\nContent-Length: 2\r\n\r\nok`,
    'content_length_repeated',
  ),
  malformed(
    'R-02 two-lengths-apart',
    `${OK}Content-Length: 2\r\nX-A: one\r\nCONTENT-LENGTH: 3\r\n\r\nok`,
    'content_length_repeated',
  ),
  malformed(
    'R-02 two-codings',
    chunked('Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked'),
    'transfer_encoding_repeated',
  ),
  malformed(
    'R-02 identity-then-chunked',
    chunked('Transfer-Encoding: identity\r\nTransfer-Encoding: chunked'),
    'transfer_encoding_repeated',
  ),
  malformed('R-02 length-underscored', `${OK}Content_Length: 2\r\n\r\nok`, 'framing_lookalike'),
  malformed('R-02 coding-underscored', chunked('Transfer_Encoding: chunked'), 'framing_lookalike'),
  malformed(
    'R-02 underscored-beside-a-length',
    response(['transfer_ENCODING: chunked']),
    'framing_lookalike',
  ),
  malformed('R-02 space-after-length', `${OK}Content-Length : 2\r\n\r\nok`, 'space_before_colon'),
  malformed(
    'R-02 chunked-in-http-10',
    'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
    'transfer_encoding_unexpected',
  ),
];

const startLines: readonly (readonly [name: string, line: string, cause: string])[] = [
  ['status-099', 'HTTP/1.1 099 Odd', 'status_malformed'],
  ['status-000', 'HTTP/1.1 000 None', 'status_malformed'],
  ['status-600', 'HTTP/1.1 600 Beyond', 'status_malformed'],
  ['status-999', 'HTTP/1.1 999 Denied', 'status_malformed'],
  ['status-of-two-digits', 'HTTP/1.1 20 OK', 'status_malformed'],
  ['status-of-four-digits', 'HTTP/1.1 2000 OK', 'status_malformed'],
  ['status-with-letters', 'HTTP/1.1 2OO OK', 'status_malformed'],
  ['status-with-a-sign', 'HTTP/1.1 +20 OK', 'status_malformed'],
  ['status-with-a-fraction', 'HTTP/1.1 200.1 OK', 'status_malformed'],
  ['status-glued-to-its-reason', 'HTTP/1.1 200OK', 'status_malformed'],
  ['two-spaces-before-status', 'HTTP/1.1  200 OK', 'status_malformed'],
  ['tab-before-status', 'HTTP/1.1\t200 OK', 'status_malformed'],
  ['no-status', 'HTTP/1.1', 'status_malformed'],
  ['no-status-but-a-reason', 'HTTP/1.1 OK', 'status_malformed'],
  ['version-09', 'HTTP/0.9 200 OK', 'version_unsupported'],
  ['version-12', 'HTTP/1.2 200 OK', 'version_unsupported'],
  ['version-20', 'HTTP/2.0 200 OK', 'version_unsupported'],
  ['version-2', 'HTTP/2 200 OK', 'version_malformed'],
  ['version-of-two-digits', 'HTTP/1.10 200 OK', 'status_malformed'],
  ['version-with-zeros', 'HTTP/01.1 200 OK', 'version_malformed'],
  ['lower-case-name', 'http/1.1 200 OK', 'version_malformed'],
  ['another-protocol', 'ICY 200 OK', 'version_malformed'],
  ['a-request', 'GET / HTTP/1.1', 'version_malformed'],
  ['no-head', '<html>hello</html>', 'version_malformed'],
];

const refusedLines = startLines.map(([name, line, cause]) =>
  malformed(`R-02 ${name}`, `${line}\r\nContent-Length: 2\r\n\r\nok`, cause),
);

const closing = { expect: { end: 'ended', host: 'fresh' } } as const;

const accepted: readonly OriginRow[] = [
  relayed('R-02 no-reason', 'HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok'),
  relayed('R-02 no-space-after-status', 'HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok'),
  relayed('R-02 status-599', response([], 'ok', '599 Odd')),
  relayed('R-02 length-between-spaces', `${OK}Content-Length:   2   \r\n\r\nok`),
  relayed('R-02 chunked-in-capitals', chunked('Transfer-Encoding: CHUNKED')),
  relayed(
    'R-02 http-10-with-a-length',
    'HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok',
    `${OK}Content-Length: 2\r\n\r\nok`,
    {
      expect: { host: 'fresh' },
    },
  ),
  relayed(
    'R-02 http-10-keep-alive',
    'HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok',
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
    { expect: { host: 'fresh' } },
  ),
  relayed('R-02 no-length', `${OK}X-A: one\r\n\r\nok`, `${OK}X-A: one\r\nConnection: close\r\n\r\nok`, {
    script: { response: [{ send: `${OK}X-A: one\r\n\r\nok` }, 'end'] },
    ...closing,
  }),
  relayed(
    'R-02 no-length-and-keep-alive',
    `${OK}Connection: keep-alive\r\n\r\nok`,
    `${OK}Connection: close\r\n\r\nok`,
    { script: { response: [{ send: `${OK}Connection: keep-alive\r\n\r\nok` }, 'end'] }, ...closing },
  ),
  relayed('R-02 connection-names-the-length', response(['Connection: Content-Length']), response([])),
  relayed(
    'R-02 connection-names-the-coding',
    chunked('Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked'),
    chunked('Transfer-Encoding: chunked'),
  ),
];

export const framingRows: readonly OriginRow[] = [
  ...refusedLengths,
  ...refusedCodings,
  ...together,
  ...refusedLines,
  ...accepted,
];
