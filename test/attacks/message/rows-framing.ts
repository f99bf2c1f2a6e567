// F-01 to F-04, F-08, F-09, F-14: lengths and codings that two hops read as different messages.
import {
  type MessageRow,
  type MessageScript,
  accepted,
  arrival,
  malformed,
  post,
  refused,
  request,
  rowsOf,
} from './message-script.ts';

const SMUGGLED = 'GET /smuggled HTTP/1.1\r\nHost: api.test\r\n\r\n';
const HIDDEN = `${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n0\r\n\r\n`;
const coding = 'Transfer-Encoding: chunked';
const unsupported = refused(501, 'transfer_coding_refused');

/** Methods that some libraries send without a body, with a body that looks like a request. */
const bodied = (method: string): (typeof chunkedBodies)[number] => [
  `chunked-${method.toLowerCase()}`,
  `${request(`${method} /v1/x`, [coding], HIDDEN)}${request('GET /next')}`,
  accepted(arrival(`${method} /v1/x`, [coding], SMUGGLED, 'chunked'), arrival('GET /next')),
];

const chunkedBodies: [string, MessageScript['send'], ReturnType<typeof accepted>][] = [];
chunkedBodies.push(...['DELETE', 'OPTIONS', 'GET', 'PROPFIND', 'PATCH', 'LOCK', 'QUERY'].map(bodied));

const lengthAndCoding: readonly (readonly [string, readonly string[], string])[] = [
  ['length-first', ['Content-Length: 5', coding], '0\r\n\r\n'],
  ['coding-first', [coding, 'Content-Length: 5'], '0\r\n\r\n'],
  ['length-of-the-chunks', [coding, `Content-Length: ${HIDDEN.length}`], HIDDEN],
  ['length-of-zero', ['Content-Length: 0', coding], HIDDEN],
  ['field-between', ['Content-Length: 6', 'X: 1', coding], '0\r\n\r\nX'],
  ['in-lower-case', ['content-length: 5', 'transfer-encoding: chunked'], '0\r\n\r\n'],
  ['identity', ['Transfer-Encoding: identity', 'Content-Length: 3'], 'abc'],
  ['unknown-coding', ['Transfer-Encoding: xchunked', 'Content-Length: 3'], 'abc'],
  ['empty-coding', ['Transfer-Encoding:', 'Content-Length: 3'], 'abc'],
  ['bad-length-beside-coding', ['Content-Length: x', coding], '0\r\n\r\n'],
  ['with-close', ['Connection: close', 'Content-Length: 5', coding], '0\r\n\r\n'],
];

const lengths: readonly (readonly [string, string])[] = [
  ['plus-sign', ' +3'],
  ['minus-sign', ' -3'],
  ['minus-zero', ' -0'],
  ['leading-zero', ' 03'],
  ['leading-zeros', ' 0000000003'],
  ['double-zero', ' 00'],
  ['hexadecimal', ' 0x3'],
  ['hexadecimal-digit', ' a'],
  ['octal-prefix', ' 0o3'],
  ['binary-prefix', ' 0b11'],
  ['inner-space', ' 3 3'],
  ['underscore', ' 1_0'],
  ['point', ' 3.0'],
  ['trailing-point', ' 3.'],
  ['exponent', ' 3e0'],
  ['empty', ''],
  ['spaces-only', '   '],
  ['over-64-bits', ' 18446744073709551617'],
  ['over-63-bits', ' 9223372036854775808'],
  ['over-53-bits', ' 9007199254740993'],
  ['over-32-bits-wrapped', ' 4294967299000000000000'],
  ['quoted', ' "3"'],
  ['word', ' three'],
  ['unit', ' 3b'],
  ['comment', ' 3 (three)'],
  ['parameter', ' 3;x=1'],
  ['tab-before', '\t3'],
  ['tab-after', ' 3\t'],
  ['tab-among-spaces', ' \t 3'],
  ['arabic-digit', ' \xd9\xa3'],
  ['fullwidth-digit', ' \xef\xbc\x93'],
  ['superscript-digit', ' \xb3'],
  ['no-break-space', ' \xa03'],
];

const codings: readonly (readonly [string, string, typeof malformed])[] = [
  ['x-prefix', ' xchunked', unsupported],
  ['identity', ' identity', unsupported],
  ['chunked-identity', ' chunked, identity', unsupported],
  ['identity-chunked', ' identity, chunked', unsupported],
  ['chunked-twice-in-list', ' chunked, chunked', unsupported],
  ['trailing-comma', ' chunked,', unsupported],
  ['leading-comma', ' ,chunked', unsupported],
  ['spaced-leading-comma', ' , chunked', unsupported],
  ['gzip-chunked', ' gzip, chunked', unsupported],
  ['deflate-chunked', ' deflate,chunked', unsupported],
  ['empty', '', unsupported],
  ['quoted', ' "chunked"', unsupported],
  ['single-quoted', " 'chunked'", unsupported],
  ['parameter', ' chunked;q=1', unsupported],
  ['bare-semicolon', ' chunked;', unsupported],
  ['tab-before', '\tchunked', unsupported],
  ['tab-after', ' chunked\t', unsupported],
  ['doubled', ' chunkedchunked', unsupported],
  ['plural', ' chunks', unsupported],
  ['cut', ' chunke', unsupported],
  ['two-words', ' chunked x', unsupported],
  ['equals', ' =chunked', unsupported],
  ['no-break-space', ' \xa0chunked', unsupported],
  ['long-s', ' \xc5\xbfchunked', unsupported],
  ['kelvin-sign', ' chun\xe2\x84\xaaed', unsupported],
  ['vertical-tab', ' \x0bchunked', malformed],
  ['form-feed', ' \x0cchunked', malformed],
  ['nul-after', ' chunked\0', malformed],
  ['escape', ' \x1bchunked', malformed],
  ['backspace', ' xchunked\x08', malformed],
  ['folded', '\r\n chunked', malformed],
  ['folded-tab', '\r\n\tchunked', malformed],
  ['split-by-cr', ' chu\rnked', malformed],
];

const lookalikes: readonly (readonly [string, readonly string[]])[] = [
  ['coding', ['Transfer_Encoding: chunked']],
  ['coding-in-lower-case', ['transfer_encoding: chunked']],
  ['coding-in-upper-case', ['TRANSFER_ENCODING: chunked']],
  ['length', ['Content_Length: 3']],
  ['length-in-mixed-case', ['cOnTeNt_LeNgTh: 3']],
  ['coding-beside-length', ['Transfer_Encoding: chunked', 'Content-Length: 3']],
  ['length-beside-coding', ['Content_Length: 3', coding]],
  ['length-twice', ['Content-Length: 3', 'Content_Length: 30']],
];

export const framingRows: readonly MessageRow[] = [
  ...rowsOf('F-01', chunkedBodies),
  ...rowsOf('F-01', [
    [
      'chunked-delete-in-two-writes',
      [request('DELETE /v1/x', [coding]), { wait: 'arrival' }, `${HIDDEN}${request('GET /next')}`],
      accepted(arrival('DELETE /v1/x', [coding], SMUGGLED, 'chunked'), arrival('GET /next')),
    ],
    [
      'delete-with-length',
      `${request('DELETE /v1/x', [`Content-Length: ${SMUGGLED.length}`], SMUGGLED)}${request('GET /next')}`,
      accepted(
        arrival('DELETE /v1/x', [`Content-Length: ${SMUGGLED.length}`], SMUGGLED),
        arrival('GET /next'),
      ),
    ],
  ]),
  ...rowsOf(
    'F-02',
    lengthAndCoding.map(([name, fields, body]) => [name, post('/x', fields, body) + SMUGGLED, malformed]),
  ),
  ...rowsOf('F-03', [
    ['equal-twice', post('/x', ['Content-Length: 3', 'Content-Length: 3'], 'abc'), malformed],
    [
      'different',
      post('/x', ['Content-Length: 0', `Content-Length: ${SMUGGLED.length}`], SMUGGLED),
      malformed,
    ],
    ['cases', post('/x', ['Content-Length: 3', 'content-length: 3'], 'abc'), malformed],
    ['far-apart', post('/x', ['Content-Length: 3', 'X: 1', 'Y: 2', 'Content-Length: 4'], 'abcd'), malformed],
    ['empty-beside', post('/x', ['Content-Length:', 'Content-Length: 3'], 'abc'), malformed],
    ['list-of-equals', post('/x', ['Content-Length: 3, 3'], 'abc'), malformed],
    ['list-of-different', post('/x', ['Content-Length: 3, 4'], 'abcd'), malformed],
    ['list-without-space', post('/x', ['Content-Length: 3,3'], 'abc'), malformed],
    ['list-of-three', post('/x', ['Content-Length: 3,3,3'], 'abc'), malformed],
    ['trailing-comma', post('/x', ['Content-Length: 3,'], 'abc'), malformed],
    ['leading-comma', post('/x', ['Content-Length: ,3'], 'abc'), malformed],
    ['semicolon', post('/x', ['Content-Length: 3;3'], 'abc'), malformed],
    ['zero-twice', post('/x', ['Content-Length: 0', 'Content-Length: 0']), malformed],
    ['on-get', request('GET /x', ['Content-Length: 3', 'Content-Length: 3'], 'abc'), malformed],
  ]),
  ...rowsOf(
    'F-04',
    lengths.map(([name, value]) => [name, post('/x', [`Content-Length:${value}`], 'abc'), malformed]),
  ),
  ...rowsOf('F-04', [
    [
      'spaces-around',
      post('/x', ['Content-Length:   3  '], 'abc'),
      accepted(arrival('POST /x', ['Content-Length:   3  '], 'abc')),
    ],
    [
      'no-space',
      post('/x', ['Content-Length:3'], 'abc'),
      accepted(arrival('POST /x', ['Content-Length:3'], 'abc')),
    ],
    [
      'zero',
      post('/x', ['Content-Length: 0']),
      accepted(arrival('POST /x', ['Content-Length: 0'], '', 'length')),
    ],
  ]),
  ...rowsOf(
    'F-08',
    codings.map(([name, value, expect]) => [
      name,
      post('/x', [`Transfer-Encoding:${value}`], HIDDEN),
      expect,
    ]),
  ),
  ...rowsOf('F-08', [
    ['two-fields', post('/x', [coding, coding], HIDDEN), malformed],
    ['two-fields-of-two-cases', post('/x', [coding, 'transfer-encoding: Chunked'], HIDDEN), malformed],
    ['chunked-then-identity', post('/x', [coding, 'Transfer-Encoding: identity'], HIDDEN), malformed],
    ['identity-then-chunked', post('/x', ['Transfer-Encoding: identity', coding], HIDDEN), malformed],
    ['chunked-then-cow', post('/x', [coding, 'Transfer-Encoding: cow'], HIDDEN), malformed],
    ['empty-then-chunked', post('/x', ['Transfer-Encoding:', coding], HIDDEN), malformed],
    ['space-before-colon', post('/x', ['Transfer-Encoding : chunked'], HIDDEN), malformed],
    ['after-bare-lf', post('/x', ['X: 1\nTransfer-Encoding: chunked'], HIDDEN), malformed],
    ['after-bare-cr', post('/x', ['X: 1\rTransfer-Encoding: chunked'], HIDDEN), malformed],
    ['name-after-nul', post('/x', ['\0Transfer-Encoding: chunked'], HIDDEN), malformed],
    [
      'upper-case',
      post('/x', ['Transfer-Encoding: CHUNKED'], HIDDEN),
      accepted(arrival('POST /x', ['Transfer-Encoding: CHUNKED'], SMUGGLED, 'chunked')),
    ],
    [
      'mixed-case-name',
      post('/x', ['tRANSFER-eNCODING: Chunked'], HIDDEN),
      accepted(arrival('POST /x', ['tRANSFER-eNCODING: Chunked'], SMUGGLED, 'chunked')),
    ],
    [
      'trailing-space',
      post('/x', ['Transfer-Encoding: chunked '], HIDDEN),
      accepted(arrival('POST /x', ['Transfer-Encoding: chunked '], SMUGGLED, 'chunked')),
    ],
    [
      'another-name',
      post('/x', ['X-Transfer-Encoding: chunked', 'Content-Length: 3'], 'abc'),
      accepted(arrival('POST /x', ['X-Transfer-Encoding: chunked', 'Content-Length: 3'], 'abc')),
    ],
  ]),
  ...rowsOf(
    'F-09',
    (
      [
        ['alone', [coding]],
        ['kept-alive', ['Connection: keep-alive', coding]],
        ['with-length', [coding, `Content-Length: ${HIDDEN.length}`]],
        ['identity', ['Transfer-Encoding: identity', 'Content-Length: 3']],
        ['upper-case', ['TRANSFER-ENCODING: CHUNKED']],
        ['with-proxy-keep-alive', ['Proxy-Connection: keep-alive', coding]],
      ] as const
    ).map(([name, fields]) => [
      name,
      post('/x', fields, HIDDEN).replace(' HTTP/1.1', ' HTTP/1.0'),
      malformed,
    ]),
  ),
  ...rowsOf(
    'F-14',
    lookalikes.map(([name, fields]) => [name, post('/x', fields, `abc${SMUGGLED}`), malformed]),
  ),
];
