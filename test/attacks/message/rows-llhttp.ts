// Own bytes, modelled on the fixtures of llhttp (https://github.com/nodejs/llhttp, test/request, MIT) for its strict and its
// lenient parsers, each under its class. The expectations are those of this proxy.
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

const unsupported = refused(501, 'transfer_coding_refused');
const put = (fields: readonly string[], body = ''): string => request('PUT /url', fields, body);
const chunks = (body: string): string => put(['Transfer-Encoding: chunked'], body);
const arrives = (content: string): MessageExpectation =>
  accepted(arrival('PUT /url', ['Transfer-Encoding: chunked'], content, 'chunked'));
const start = (line: string): string => `${line}\r\nHost: {HOST}\r\n\r\n`;
const passes = (...fields: readonly string[]): MessageExpectation => accepted(arrival('PUT /url', fields));

export const llhttpRows: readonly MessageRow[] = [
  ...rowsOf('F-10', [
    ['llhttp-lower-case-size', chunks('b\r\nhello world\r\n0\r\n\r\n'), arrives('hello world')],
    ['llhttp-upper-case-size', chunks('B\r\nhello world\r\n0\r\n\r\n'), arrives('hello world')],
    ['llhttp-two-digits', chunks(`1e\r\n${'w'.repeat(30)}\r\n0\r\n\r\n`), arrives('w'.repeat(30))],
    ['llhttp-triple-zero-end', chunks('5\r\nhello\r\n6\r\n world\r\n000\r\n\r\n'), malformed],
    ['llhttp-extensions', chunks('5;a;b=c;d=e\r\nhello\r\n6;f;g\r\n world\r\n0\r\n\r\n'), malformed],
    ['llhttp-no-semicolon', chunks('2 erf\r\naa\r\n0 rrr\r\n\r\n'), malformed],
    ['llhttp-nothing-after-semicolon', chunks('2;\r\naa\r\n0\r\n\r\n'), malformed],
    ['llhttp-quoted-extension', chunks('5;a="b \\"c\\"; d";e=f\r\nhello\r\n0\r\n\r\n'), malformed],
    ['llhttp-unbalanced-quote', chunks('5;a="b";c="d; e\r\nhello\r\n0\r\n\r\n'), malformed],
    ['llhttp-parameter-with-control', chunks('5;a\x1a=b\r\nhello\r\n0\r\n\r\n'), malformed],
    ['llhttp-size-not-ended-by-crlf', chunks('a \n0123456789\r\n0\r\n\r\n'), malformed],
    ['llhttp-data-not-ended-by-crlf', chunks('5\r\nhello0\r\n\r\n'), malformed],
    ['llhttp-space-after-size', chunks('a \r\n0123456789\r\n0\r\n\r\n'), malformed],
    ['llhttp-lf-only', chunks('1\nA\n1;abc\nB\n0\n\n'), malformed],
  ]),
  ...rowsOf('F-12', [
    [
      'llhttp-trailing-headers',
      chunks('5\r\nhello\r\n0\r\nVary: *\r\nContent-Type: text/plain\r\n\r\n'),
      { ...arrives('hello'), unseen: ['Vary', 'text/plain'] },
    ],
  ]),
  ...rowsOf('F-08', [
    ['llhttp-pigeons', put(['Transfer-Encoding: pigeons']), unsupported],
    ['llhttp-chunked-deflate', put(['Transfer-Encoding: chunked, deflate'], 'World'), unsupported],
    [
      'llhttp-deflate-chunked',
      put(['Transfer-Encoding: deflate, chunked'], '5\r\nWorld\r\n0\r\n\r\n'),
      unsupported,
    ],
    [
      'llhttp-chunkedchunked',
      put(['Transfer-Encoding: chunkedchunked'], '5\r\nWorld\r\n0\r\n\r\n'),
      unsupported,
    ],
    [
      'llhttp-chunked-then-deflate',
      put(['Transfer-Encoding: chunked', 'Transfer-Encoding: deflate'], 'World'),
      malformed,
    ],
    [
      'llhttp-deflate-then-chunked',
      put(['Transfer-Encoding: deflate', 'Transfer-Encoding: chunked'], '5\r\nWorld\r\n0\r\n\r\n'),
      malformed,
    ],
    [
      'llhttp-fold-after-chunked',
      put(['Transfer-Encoding: chunked', ' abc'], '5\r\nWorld\r\n0\r\n\r\n'),
      malformed,
    ],
  ]),
  ...rowsOf('F-02', [
    [
      'llhttp-identity-and-length',
      put(['Transfer-Encoding: identity', 'Content-Length: 5'], 'World'),
      malformed,
    ],
    ['llhttp-length-and-identity', put(['Content-Length: 1', 'Transfer-Encoding: identity'], 'W'), malformed],
    [
      'llhttp-length-and-empty-codings',
      put(['Content-Length: 10', 'Transfer-Encoding:', 'Transfer-Encoding:'], '2\r\nAA\r\n0\r\n'),
      malformed,
    ],
  ]),
  ...rowsOf('F-03', [
    ['llhttp-duplicate', put(['Content-Length: 1', 'Content-Length: 2'], 'ab'), malformed],
    [
      'llhttp-followed-by-another-field',
      put(['Content-Length: 1', 'Ohai: world', 'Content-Length: 1'], 'a'),
      malformed,
    ],
  ]),
  ...rowsOf('F-04', [
    ['llhttp-zeroes', put(['Content-Length: 003'], 'abc'), malformed],
    ['llhttp-overflow', put(['Content-Length: 1000000000000000000000']), malformed],
    ['llhttp-surrounding-tabs', put(['Content-Length:\t42\t  '], 'x'.repeat(42)), malformed],
    ['llhttp-space-inside', put(['Content-Length: 4 2'], 'x'.repeat(42)), malformed],
    ['llhttp-space-inside-more', put(['Content-Length: 13 37'], 'x'.repeat(13)), malformed],
    ['llhttp-empty', put(['Content-Length:'], 'abc'), malformed],
    [
      'llhttp-funky-name',
      request('PUT /url', ['conTENT-Length: 5'], 'HELLO'),
      accepted(arrival('PUT /url', ['conTENT-Length: 5'], 'HELLO')),
    ],
    [
      'llhttp-surrounding-spaces',
      put(['Content-Length:  42 '], 'x'.repeat(42)),
      accepted(arrival('PUT /url', ['Content-Length:  42 '], 'x'.repeat(42))),
    ],
  ]),
  ...rowsOf('F-05', [
    [
      'llhttp-space-before-colon-of-length',
      put(['Connection: upgrade', 'Content-Length : 4', 'Upgrade: ws'], 'abcd'),
      malformed,
    ],
    [
      'llhttp-space-before-colon-of-connection',
      put(['Connection : upgrade', 'Content-Length: 4'], 'abcd'),
      malformed,
    ],
    ['llhttp-at-in-name', put(['Fo@: Failure']), malformed],
    ['llhttp-soh-in-name', put(['Foo\x01test: Bar']), malformed],
    ['llhttp-empty-name', put([': Bar']), malformed],
    ['llhttp-space-before-first-field', `PUT {AT}/url HTTP/1.1\r\n Host: {HOST}\r\n\r\n`, malformed],
    [
      'llhttp-space-before-length',
      put(['Foo: bar', ' Content-Length: 38'], 'GET /bye HTTP/1.1\r\n\r\n'),
      malformed,
    ],
    ['llhttp-name-folded-before-colon', put(['name', ' : value']), malformed],
    ['llhttp-space-in-uri', start('GET {AT}/foo bar/ HTTP/1.1'), malformed],
  ]),
  ...rowsOf('F-06', [
    ['llhttp-many-kinds-of-folds', put(['L: a', '\tb', ' c', '\t\td', '  e ', '\t \tf']), malformed],
    [
      'llhttp-fold-in-connection',
      put(['Connection: Something,', ' Upgrade, ,Keep-Alive', 'Upgrade: WebSocket']),
      malformed,
    ],
    ['llhttp-value-only-in-the-fold', put(['Line3:', ' line3']), malformed],
    ['llhttp-certificate', put(['X-SSL-Nonsense:   -----BEGIN', '\tMIIF', '\t-----END']), malformed],
  ]),
  ...rowsOf('F-07', [
    ['llhttp-fields-parted-by-cr', put(['Foo: 1\rBar: 2']), malformed],
    [
      'llhttp-fields-parted-by-lf',
      put(['x:x\nTransfer-Encoding: chunked'], '1\r\nA\r\n0\r\n\r\n'),
      malformed,
    ],
    ['llhttp-parted-by-cr-and-a-letter', put(['Connection: close', '\rZGET /evil: HTTP/1.1']), malformed],
    ['llhttp-empty-value-and-cr', put(['x:\rTransfer-Encoding: chunked'], '1\r\nA\r\n0\r\n\r\n'), malformed],
    ['llhttp-empty-value-and-lf', put(['x:\nTransfer-Encoding: chunked'], '1\r\nA\r\n0\r\n\r\n'), malformed],
    ['llhttp-lf-hides-a-length', put(['Dummy: x\nContent-Length: 23'], 'GET / HTTP/1.1\r\n\r\n'), malformed],
    ['llhttp-corrupted-connection', put(['Connection\r\x1b5\xd5eep-Alive']), malformed],
    ['llhttp-corrupted-name', put(['X-Some-Header\r\x1b5\xd5eep-Alive']), malformed],
    ['llhttp-cr-for-hyphen', put(['Content\rLength: 3'], 'abc'), malformed],
    ['llhttp-cr-in-connection', put(['Connection: keep\ralive']), malformed],
    [
      'llhttp-cr-before-body',
      'PUT {AT}/url HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 3\r\n\rabc',
      malformed,
    ],
    ['llhttp-no-lf-after-cr', 'GET {AT}/url HTTP/1.1\rLine: 1\r\n\r\n', malformed],
    ['llhttp-only-lf', 'PUT {AT}/url HTTP/1.1\nTransfer-Encoding: chunked\n\n1\nA\n0\n\n', malformed],
    [
      'llhttp-obs-text',
      put(['Test: D\xfcsseldorf', 'Header2: \xffValue2']),
      passes('Test: D\xfcsseldorf', 'Header2: \xffValue2'),
    ],
  ]),
  ...rowsOf('F-16', [
    [
      'llhttp-upgrade-of-put',
      put(['Connection: upgrade', 'Upgrade: ws']),
      { ...passes(), unseen: ['pgrade'] },
    ],
    [
      'llhttp-upgrade-with-body',
      `${put(['Connection: upgrade', 'Content-Length: 4', 'Upgrade: ws'], 'abcd')}${request('GET /next')}`,
      {
        ...accepted(arrival('PUT /url', ['Content-Length: 4'], 'abcd'), arrival('GET /next')),
        unseen: ['pgrade'],
      },
    ],
    [
      'llhttp-upgrade-to-http2-by-post',
      request(
        'POST /url',
        ['Connection: Upgrade', 'Upgrade: HTTP/2.0', 'Content-Length: 15'],
        'sweet post body',
      ),
      { ...accepted(arrival('POST /url', ['Content-Length: 15'], 'sweet post body')), unseen: ['pgrade'] },
    ],
    [
      'llhttp-many-connection-tokens',
      put(['Connection: close, token, upgrade, token, keep-alive']),
      { ...passes(), ends: true, unseen: ['token'] },
    ],
  ]),
  ...rowsOf('F-18', [
    ['llhttp-ice', start('GET {AT}/url ICE/1.0'), malformed],
    ['llhttp-not-really-ice', start('GET {AT}/url IHTTP/1.0'), malformed],
    ['llhttp-rtsp', start('PUT {AT}/url RTSP/1.0'), malformed],
    ['llhttp-options-of-rtsp', start('OPTIONS {AT}/url RTSP/1.0'), malformed],
    ['llhttp-http-5.6', start('GET {AT}/url HTTP/5.6'), refused(505, 'version_refused')],
    ['llhttp-pri', 'PRI * HTTP/1.1\r\n\r\nSM\r\n\r\n', refused(505, 'version_refused')],
  ]),
  ...rowsOf('F-19', [['llhttp-no-version', 'GET {AT}/\r\n\r\n', malformed]]),
  ...rowsOf('F-21', [
    [
      'llhttp-three-with-bodies',
      `${request('POST /aaa', ['Content-Length: 3'], 'AAA')}${request('PUT /bbb', ['Content-Length: 4'], 'BBBB')}${request('PATCH /ccc', ['Content-Length: 5'], 'CCCCC')}`,
      accepted(
        arrival('POST /aaa', ['Content-Length: 3'], 'AAA'),
        arrival('PUT /bbb', ['Content-Length: 4'], 'BBBB'),
        arrival('PATCH /ccc', ['Content-Length: 5'], 'CCCCC'),
      ),
    ],
    [
      'llhttp-crlf-between',
      `${request('POST /url', ['Content-Length: 4'], 'q=42')}\r\n${request('GET /next')}`,
      accepted(arrival('POST /url', ['Content-Length: 4'], 'q=42'), arrival('GET /next')),
    ],
    [
      'llhttp-close-followed-by-tab',
      `${request('POST /url', ['Content-Length: 4', 'Connection: close\t'], 'q=42')}\r\n${request('GET /next')}`,
      { ...accepted(arrival('POST /url', ['Content-Length: 4'], 'q=42')), ends: true },
    ],
  ]),
  ...rowsOf('F-11', [
    [
      'llhttp-finish-inside-a-body',
      [request('PUT /', ['Content-Length: 100'], 'a'), { wait: 'arrival' }, { leave: 'fin' }],
      { arrivals: [], responses: [], mayBegin: true, records: ['failed client_gone'] },
    ],
  ]),
  ...rowsOf(
    'F-11',
    [
      [
        'llhttp-finish-inside-a-head',
        ['PUT {AT}/ HTTP/1.1\r\nContent-Leng', { leave: 'fin' }],
        { arrivals: [], responses: [], records: [] },
      ],
    ],
    { on: ['plain'] },
  ),
  ...rowsOf(
    'F-11',
    [
      [
        'llhttp-finish-inside-a-head-of-a-tunnel',
        ['PUT {AT}/ HTTP/1.1\r\nContent-Leng', { leave: 'fin' }],
        // The record of the tunnel, which carried nothing.
        { arrivals: [], responses: [], records: ['failed client_gone'] },
      ],
    ],
    { on: ['tunnel'] },
  ),
];
