// F-10 to F-12: chunked bodies, and bodies that contradict their framing.
import {
  type MessageExpectation,
  type MessageRow,
  accepted,
  arrival,
  chunked,
  malformed,
  post,
  refused,
  request,
  rowsOf,
} from './message-script.ts';

const coding = 'Transfer-Encoding: chunked';
const SMUGGLED = 'GET /smuggled HTTP/1.1\r\nHost: api.test\r\n\r\n';

/** The body as it arrives, with any chunks. */
const arrives = (content: string): MessageExpectation =>
  accepted(arrival('POST /x', [coding], content, 'chunked'));

/** The head has reached the host when the error is detected: nothing may follow it. */
const late: MessageExpectation = { ...malformed, mayBegin: true, unseen: ['smuggled'] };
const cut: MessageExpectation = {
  arrivals: [],
  responses: [],
  mayBegin: true,
  records: ['failed client_gone'],
};

const invalid: readonly (readonly [string, string])[] = [
  ['extension', '3;a\r\nabc\r\n0\r\n\r\n'],
  ['extension-with-value', '3;a=b\r\nabc\r\n0\r\n\r\n'],
  ['extension-in-quotes', '3;a="b"\r\nabc\r\n0\r\n\r\n'],
  ['extension-unclosed-quote', '3;a="b\r\nabc\r\n0\r\n\r\n'],
  ['extension-up-to-lf', '3;a\nabc\r\n0\r\n\r\n'],
  ['extension-up-to-cr', '3;a\rXabc\r\n0\r\n\r\n'],
  ['extension-with-lf-inside', `2;\nxx\r\n4c\r\n${SMUGGLED}0\r\n\r\n`],
  ['extension-of-64-kib', `3;${'a'.repeat(16_000)}\r\nabc\r\n0\r\n\r\n`],
  ['extension-on-last-chunk', '3\r\nabc\r\n0;a=b\r\n\r\n'],
  ['extension-with-nul', '3;a\0b\r\nabc\r\n0\r\n\r\n'],
  ['bare-semicolon', '3;\r\nabc\r\n0\r\n\r\n'],
  ['space-and-semicolon', '3 ;a\r\nabc\r\n0\r\n\r\n'],
  ['size-up-to-lf', '3\nabc\r\n0\r\n\r\n'],
  ['size-up-to-cr', '3\rabc\r\n0\r\n\r\n'],
  ['0x', '0x3\r\nabc\r\n0\r\n\r\n'],
  ['hash', '#3\r\nabc\r\n0\r\n\r\n'],
  ['leading-space', ' 3\r\nabc\r\n0\r\n\r\n'],
  ['leading-tab', '\t3\r\nabc\r\n0\r\n\r\n'],
  ['trailing-space', '3 \r\nabc\r\n0\r\n\r\n'],
  ['trailing-tab', '3\t\r\nabc\r\n0\r\n\r\n'],
  ['plus', '+3\r\nabc\r\n0\r\n\r\n'],
  ['minus', '-3\r\nabc\r\n0\r\n\r\n'],
  ['underscore', '1_0\r\n0123456789abcdef\r\n0\r\n\r\n'],
  ['not-hexadecimal', '3g\r\nabc\r\n0\r\n\r\n'],
  ['point', '3.0\r\nabc\r\n0\r\n\r\n'],
  ['unit', '3h\r\nabc\r\n0\r\n\r\n'],
  ['leading-zeros', '00000003\r\nabc\r\n0\r\n\r\n'],
  ['last-chunk-of-two-zeros', '3\r\nabc\r\n00\r\n\r\n'],
  ['last-chunk-of-many-zeros', '3\r\nabc\r\n0000000000000000\r\n\r\n'],
  ['17-digits', '10000000000000003\r\nabc\r\n0\r\n\r\n'],
  ['16-digits', 'ffffffffffffffff\r\nabc\r\n0\r\n\r\n'],
  ['over-53-bits', '20000000000003\r\nabc\r\n0\r\n\r\n'],
  ['empty-size', '\r\nabc\r\n0\r\n\r\n'],
  ['empty-line-before-size', '\r\n3\r\nabc\r\n0\r\n\r\n'],
  ['data-without-end', '3\r\nabc0\r\n\r\n'],
  ['data-ends-in-lf', '3\r\nabc\n0\r\n\r\n'],
  ['data-ends-in-cr', '3\r\nabc\r0\r\n\r\n'],
  ['data-too-long', '3\r\nabcd\r\n0\r\n\r\n'],
  ['data-ends-in-two-bytes', '3\r\nabcXX0\r\n\r\n'],
  ['data-too-short', '4\r\nabc\r\n0\r\n\r\n'],
  ['blank-line-of-lf', '3\r\nabc\r\n0\r\n\n'],
  ['last-chunk-up-to-lf', '3\r\nabc\r\n0\n\r\n'],
  ['fullwidth-digit', '\xef\xbc\x93\r\nabc\r\n0\r\n\r\n'],
  ['nul-first', '\x003\r\nabc\r\n0\r\n\r\n'],
  ['second-size-bad', '3\r\nabc\r\nx\r\nabc\r\n0\r\n\r\n'],
];

/** The rows that `late` repeats after the head was sent: those on which hops are known to differ. */
const repeatedLate: ReadonlySet<string> = new Set([
  'extension-up-to-lf',
  'extension-with-lf-inside',
  'size-up-to-lf',
  'data-without-end',
  'data-too-long',
  'data-ends-in-lf',
  'last-chunk-of-two-zeros',
  'second-size-bad',
]);

const trailers: readonly (readonly [string, string])[] = [
  ['plain', 'X-Trailer: SEEN\r\n'],
  ['credential', 'Authorization: Bearer SEEN\r\n'],
  ['credential-underscored', 'X_Api_Key: SEEN\r\n'],
  ['host', 'Host: SEEN.test\r\n'],
  ['connection', 'Connection: close, SEEN\r\n'],
  ['url-override', 'X-Original-URL: /SEEN\r\n'],
  ['cookie', 'Cookie: a=SEEN\r\n'],
  ['content-type', 'Content-Type: text/SEEN\r\n'],
  ['forwarding', 'X-Forwarded-For: SEEN\r\n'],
  ['expect', 'Expect: 100-continue\r\nX: SEEN\r\n'],
  ['pseudo-request', 'GET: SEEN /smuggled HTTP/1.1\r\n'],
  ['many', 'SEEN: a\r\n'.repeat(50)],
];

const invalidTrailers: readonly (readonly [string, string])[] = [
  ['length', 'Content-Length: 9\r\n'],
  ['length-second', 'A: b\r\ncontent-length: 9\r\n'],
  ['length-underscored', 'Content_Length: 9\r\n'],
  ['coding', 'Transfer-Encoding: chunked\r\n'],
  ['coding-underscored', 'transfer_encoding: chunked\r\n'],
  ['no-colon', 'abc\r\n'],
  ['folded', 'A: b\r\n c\r\n'],
  ['ends-in-lf', 'A: b\n'],
  ['cr-inside', 'A: b\rC: d\r\n'],
  ['space-before-colon', 'A : b\r\n'],
  ['empty-name', ': b\r\n'],
  ['nul', 'A: \0\r\n'],
  ['request-line', 'GET /smuggled HTTP/1.1\r\n'],
];

export const chunkRows: readonly MessageRow[] = [
  ...rowsOf(
    'F-10',
    invalid.map(([name, body]) => [name, chunked(body + SMUGGLED), malformed]),
  ),
  ...rowsOf(
    'F-10',
    invalid
      .filter(([name]) => repeatedLate.has(name))
      .map(([name, body]) => [
        `late-${name}`,
        [post('/x', [coding]), { wait: 'arrival' }, body + SMUGGLED],
        late,
      ]),
  ),
  ...rowsOf('F-10', [
    ['one-byte-chunks', chunked(`${'1\r\na\r\n'.repeat(1000)}0\r\n\r\n`), arrives('a'.repeat(1000))],
    ['upper-case-size', chunked(`A\r\n0123456789\r\n0\r\n\r\n`), arrives('0123456789')],
    ['lower-case-size', chunked(`a\r\n0123456789\r\n0\r\n\r\n`), arrives('0123456789')],
    ['data-that-spells-chunks', chunked('5\r\n0\r\n\r\n\r\n0\r\n\r\n'), arrives('0\r\n\r\n')],
    [
      'size-cut-in-two',
      [post('/x', [coding]), { wait: 'arrival' }, '1', '0', '\r', '\n0123456789abcdef\r\n0\r\n\r\n'],
      arrives('0123456789abcdef'),
    ],
    [
      'end-cut-in-pieces',
      [post('/x', [coding], '3\r\nabc'), { wait: 'arrival' }, '\r', '\n0', '\r\n', '\r', '\n'],
      arrives('abc'),
    ],
  ]),
  ...rowsOf('F-11', [
    [
      'short-of-length',
      [post('/x', ['Content-Length: 10'], 'abc'), { wait: 'arrival' }, { leave: 'fin' }],
      cut,
    ],
    [
      'short-and-reset',
      [post('/x', ['Content-Length: 11'], 'abc'), { wait: 'arrival' }, { leave: 'rst' }],
      cut,
    ],
    ['no-last-chunk', [chunked('3\r\nabc\r\n'), { wait: 'arrival' }, { leave: 'fin' }], cut],
    ['no-blank-line', [chunked('3\r\nabc\r\n0\r\n'), { wait: 'arrival' }, { leave: 'fin' }], cut],
    ['half-of-the-blank-line', [chunked('3\r\nabc\r\n0\r\n\r'), { wait: 'arrival' }, { leave: 'fin' }], cut],
    ['inside-a-trailer', [chunked('0\r\nA: b'), { wait: 'arrival' }, { leave: 'fin' }], cut],
    ['inside-a-chunk', [chunked('ff\r\nabc'), { wait: 'arrival' }, { leave: 'rst' }], cut],
    [
      'greatest-length',
      [post('/x', ['Content-Length: 9007199254740991'], 'abc'), { wait: 'arrival' }, { leave: 'fin' }],
      cut,
    ],
    [
      'bytes-after-the-last-chunk',
      chunked('3\r\nabc\r\n0\r\n\r\nxyz\r\n\r\n'),
      {
        ...arrives('abc'),
        responses: [{ status: 200 }, { status: 400, code: 'malformed_request' }],
        ends: true,
      },
    ],
    [
      'length-of-zero-and-a-body',
      post('/x', ['Content-Length: 0'], 'abc\r\n\r\n'),
      {
        arrivals: [arrival('POST /x', ['Content-Length: 0'], '', 'length')],
        responses: [{ status: 200 }, { status: 400, code: 'malformed_request' }],
        ends: true,
      },
    ],
    [
      'body-without-framing',
      post('/x', [], 'abc\r\n\r\n'),
      {
        ...accepted(arrival('POST /x')),
        responses: [{ status: 200 }, { status: 400, code: 'malformed_request' }],
        ends: true,
      },
    ],
  ]),
  ...rowsOf(
    'F-11',
    [
      [
        'longer-than-length',
        post('/x', ['Content-Length: 3'], `abc${SMUGGLED}`),
        // The bytes that follow are the next request, whose Host does not match the tunnel or the target.
        {
          arrivals: [arrival('POST /x', ['Content-Length: 3'], 'abc')],
          responses: [{ status: 200 }, { status: 421, code: 'authority_mismatch' }],
          ends: true,
        },
      ],
    ],
    { on: ['tunnel'] },
  ),
  ...rowsOf(
    'F-12',
    trailers.map(([name, lines]) => [
      name,
      `${chunked(`3\r\nabc\r\n0\r\n${lines}\r\n`)}${request('GET /next')}`,
      {
        ...accepted(arrival('POST /x', [coding], 'abc', 'chunked'), arrival('GET /next')),
        unseen: ['SEEN'],
      },
    ]),
  ),
  ...rowsOf(
    'F-12',
    invalidTrailers.map(([name, lines]) => [name, chunked(`3\r\nabc\r\n0\r\n${lines}\r\n`), malformed]),
  ),
  ...rowsOf('F-12', [
    ['over-8-kib', chunked(`0\r\nA: ${'b'.repeat(8192)}\r\n\r\n`), refused(431, 'head_too_large')],
    [
      'late-length',
      [post('/x', [coding], '3\r\nabc\r\n'), { wait: 'arrival' }, '0\r\nContent-Length: 9\r\n\r\n'],
      late,
    ],
    [
      'announced',
      chunked('3\r\nabc\r\n0\r\nAuthorization: SEEN\r\n\r\n', ['Trailer: Authorization']),
      { ...arrives('abc'), unseen: ['SEEN', 'Trailer'] },
    ],
    [
      'asked-for',
      request('GET /x', ['TE: trailers', 'Connection: TE']),
      { ...accepted(arrival('GET /x')), unseen: ['trailers'] },
    ],
  ]),
];
