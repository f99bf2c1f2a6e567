// F-15 to F-17, F-21, F-22: bodies and bytes after a request that some hop does not expect.
import {
  type ExpectedResponse,
  type MessageExpectation,
  type MessageRow,
  accepted,
  arrival,
  malformed,
  post,
  refused,
  request,
  rowsOf,
} from './message-script.ts';

const SMUGGLED = 'GET /smuggled HTTP/1.1\r\nHost: api.test\r\n\r\n';
const length = `Content-Length: ${SMUGGLED.length}`;
const failedExpectation = refused(417, 'expectation_failed');
const hello = ['Connection: Upgrade', 'Upgrade: websocket'];
const key = ['Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='];
const proceed: ExpectedResponse = { status: 100 };

/** Methods whose body some servers do not read: the body must not become a request there. */
const carried = (method: string): MessageExpectation => ({
  ...accepted(arrival(`${method} /x`, [length], SMUGGLED), arrival('GET /next')),
  apart: true,
});

/** Two requests of one client; the second is sent early. */
const then = (first: string): string => first + request('GET /next');

const plainUpgrades: readonly (readonly [string, readonly string[]])[] = [
  ['unknown-protocol', ['Connection: Upgrade', 'Upgrade: foo']],
  ['tls', ['Connection: Upgrade', 'Upgrade: TLS/1.2']],
  ['choice', ['Connection: Upgrade', 'Upgrade: websocket, foo']],
  ['two-fields', ['Connection: Upgrade', 'Upgrade: websocket', 'Upgrade: foo']],
  ['not-nominated', ['Upgrade: websocket']],
  ['nominated-but-absent', ['Connection: Upgrade']],
  ['empty', ['Connection: Upgrade', 'Upgrade:']],
  ['versioned', ['Connection: Upgrade', 'Upgrade: websocket/13']],
  ['quoted', ['Connection: Upgrade', 'Upgrade: "websocket"']],
];

const h2c: readonly (readonly [string, readonly string[]])[] = [
  [
    'as-specified',
    ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__'],
  ],
  ['settings-not-nominated', ['Connection: Upgrade', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__']],
  ['settings-alone', ['HTTP2-Settings: AAMAAABkAAQAAP__']],
  ['upper-case', ['Connection: upgrade, http2-settings', 'Upgrade: H2C', 'http2-settings: AAMAAABkAAQAAP__']],
  [
    'with-websocket',
    ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c, websocket', 'HTTP2-Settings: AA'],
  ],
  [
    'two-settings',
    ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: A', 'HTTP2-Settings: B'],
  ],
  ['h2-over-tls-name', ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2', 'HTTP2-Settings: AA']],
];

const many = (count: number, path: (i: number) => string): readonly string[] =>
  Array.from({ length: count }, (_, i) => path(i));

const expectations: readonly (readonly [string, readonly string[]])[] = [
  ['unknown', ['Expect: foo']],
  ['continue-and-unknown', ['Expect: 100-continue, foo']],
  ['twice', ['Expect: 100-continue', 'Expect: 100-continue']],
  ['list-of-twice', ['Expect: 100-continue, 100-continue']],
  ['unknown-beside', ['Expect: 100-continue', 'Expect: y']],
  ['empty', ['Expect:']],
  ['parameter', ['Expect: 100-continue; q=1']],
  ['prefix', ['Expect: x 100-continue']],
  ['cut', ['Expect: 100-continu']],
  ['quoted', ['Expect: "100-continue"']],
  ['another-status', ['Expect: 101-switching']],
  ['underscored-value', ['Expect: 100_continue']],
];

export const bodyRows: readonly MessageRow[] = [
  ...rowsOf(
    'F-15',
    ['GET', 'DELETE', 'OPTIONS', 'PROPFIND', 'get', 'QUERY'].map((method) => [
      `body-on-${method === 'get' ? 'unknown-method' : method.toLowerCase()}`,
      then(request(`${method} /x`, [length], SMUGGLED)),
      carried(method),
    ]),
  ),
  ...rowsOf('F-15', [
    [
      'body-on-head',
      request('HEAD /x', [length], SMUGGLED),
      accepted(arrival('HEAD /x', [length], SMUGGLED)),
    ],
    [
      'get-with-an-early-response',
      then(request('GET /early', [length], SMUGGLED)),
      {
        ...accepted(arrival('GET /early', [length], SMUGGLED), arrival('GET /next')),
        apart: true,
      },
    ],
    [
      'response-before-the-body',
      [request('POST /early', ['Content-Length: 10'], '12345'), { wait: 'response' }, `67890${SMUGGLED}`],
      {
        arrivals: [],
        responses: [{ status: 200, body: 'POST /early' }],
        ends: true,
        mayBegin: true,
        unseen: ['67890', 'smuggled'],
        records: ['injected'],
      },
    ],
    [
      'length-of-zero-on-get',
      then(request('GET /x', ['Content-Length: 0'])),
      accepted(arrival('GET /x', ['Content-Length: 0'], '', 'length'), arrival('GET /next')),
    ],
  ]),
  ...rowsOf(
    'F-16',
    plainUpgrades.map(([name, fields]) => [
      name,
      then(request('GET /ws', fields)),
      { ...accepted(arrival('GET /ws'), arrival('GET /next')), unseen: ['pgrade'] },
    ]),
  ),
  ...rowsOf('F-16', [
    [
      'host-does-not-switch',
      then(request('GET /x', [...hello, ...key])),
      accepted(arrival('GET /x', [...key, ...hello]), arrival('GET /next')),
    ],
    [
      'early-frames-wait-for-the-101',
      [
        `${request('GET /ws', [...hello, ...key])}\x81\x05early`,
        { wait: 'response' },
        '\x81\x05later',
        { leave: 'fin' },
      ],
      {
        arrivals: [arrival('GET /ws', [...key, ...hello])],
        responses: [{ status: 101 }],
        records: ['upgraded'],
        rest: '',
      },
    ],
    ['with-a-length', request('GET /ws', [...hello, length], SMUGGLED), malformed],
    ['with-chunks', request('GET /ws', [...hello, 'Transfer-Encoding: chunked'], '0\r\n\r\n'), malformed],
    [
      'post',
      then(request('POST /ws', [...hello, 'Content-Length: 3'], 'abc')),
      accepted(arrival('POST /ws', ['Content-Length: 3'], 'abc'), arrival('GET /next')),
    ],
    [
      'http-1.0',
      request('GET /ws', hello).replace(' HTTP/1.1', ' HTTP/1.0'),
      {
        arrivals: [
          {
            ...arrival('GET /ws'),
            head: ['GET /ws HTTP/1.1', 'Host: {HOST}', 'Connection: close', '{AUTH}'],
          },
        ],
        responses: [{ status: 200, body: 'GET /ws' }],
        ends: true,
      },
    ],
  ]),
  ...rowsOf(
    'F-17',
    h2c.map(([name, fields]) => [
      name,
      then(request('GET /ws', fields)),
      {
        ...accepted(arrival('GET /ws'), arrival('GET /next')),
        unseen: ['pgrade', 'h2c', 'HTTP2', 'http2'],
      },
    ]),
  ),
  ...rowsOf('F-17', [
    [
      'preface-after-it',
      `${request('GET /ws', h2c[0]?.[1])}PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n`,
      {
        arrivals: [arrival('GET /ws')],
        responses: [{ status: 200 }, { status: 505, code: 'version_refused' }],
        ends: true,
        unseen: ['PRI'],
      },
    ],
  ]),
  ...rowsOf('F-21', [
    [
      '100-at-once',
      many(100, (i) => request(`GET /${i}`)).join(''),
      accepted(...many(100, (i) => `GET /${i}`).map((start) => arrival(start))),
    ],
    [
      'bodies-between',
      many(20, (i) => post(`/${i}`, [`Content-Length: ${String(i).length}`], String(i))).join(''),
      accepted(...many(20, String).map((i) => arrival(`POST /${i}`, [`Content-Length: ${i.length}`], i))),
    ],
    [
      'chunks-between',
      many(20, (i) => post(`/${i}`, ['Transfer-Encoding: chunked'], '1\r\nx\r\n0\r\n\r\n')).join(''),
      accepted(
        ...many(20, (i) => `POST /${i}`).map((start) =>
          arrival(start, ['Transfer-Encoding: chunked'], 'x', 'chunked'),
        ),
      ),
    ],
    [
      'refused-in-the-middle',
      `${request('GET /1')}${request('GET /2', ['X : a'])}${request('GET /3')}`,
      {
        arrivals: [arrival('GET /1')],
        responses: [{ status: 200 }, { status: 400, code: 'malformed_request' }],
        ends: true,
      },
    ],
    [
      'close-in-the-middle',
      `${request('GET /1')}${request('GET /2', ['Connection: close'])}${request('GET /3')}`,
      { ...accepted(arrival('GET /1'), arrival('GET /2')), ends: true },
    ],
    [
      'too-far-ahead',
      request('GET /ahead', [`X: ${'a'.repeat(900)}`]).repeat(100),
      { ...accepted(arrival('GET /ahead', [`X: ${'a'.repeat(900)}`])), ends: true },
    ],
    [
      'bytes-of-two-requests-crossed',
      [`${request('GET /1')}GET {AT}/2 HT`, { wait: 'response' }, 'TP/1.1\r\nHost: {HOST}\r\n\r\n'],
      accepted(arrival('GET /1'), arrival('GET /2')),
    ],
    [
      'head-then-get',
      `${request('HEAD /1')}${request('HEAD /2')}`,
      accepted(arrival('HEAD /1'), arrival('HEAD /2')),
    ],
  ]),
  ...rowsOf(
    'F-22',
    expectations.map(([name, fields]) => [
      name,
      post('/x', [...fields, 'Content-Length: 3'], 'abc'),
      failedExpectation,
    ]),
  ),
  ...rowsOf('F-22', [
    [
      'body-at-once',
      then(post('/x', ['Expect: 100-continue', length], SMUGGLED)),
      {
        ...accepted(arrival('POST /x', ['Expect: 100-continue', length], SMUGGLED), arrival('GET /next')),
        responses: [proceed, { status: 200 }, { status: 200 }],
      },
    ],
    [
      'body-after-100',
      [post('/x', ['Expect: 100-continue', 'Content-Length: 3']), { wait: 'response' }, 'abc'],
      {
        ...accepted(arrival('POST /x', ['Expect: 100-continue', 'Content-Length: 3'], 'abc')),
        responses: [proceed, { status: 200 }],
      },
    ],
    [
      'agent-credential-beside-it',
      post('/x', ['Expect: 100-continue', 'Authorization: Bearer AGENT', 'Content-Length: 3'], 'abc'),
      {
        ...accepted(arrival('POST /x', ['Expect: 100-continue', 'Content-Length: 3'], 'abc')),
        responses: [proceed, { status: 200 }],
        unseen: ['AGENT'],
      },
    ],
    [
      'chunked',
      post('/x', ['Expect: 100-continue', 'Transfer-Encoding: chunked'], '3\r\nabc\r\n0\r\n\r\n'),
      {
        ...accepted(
          arrival('POST /x', ['Expect: 100-continue', 'Transfer-Encoding: chunked'], 'abc', 'chunked'),
        ),
        responses: [proceed, { status: 200 }],
      },
    ],
    [
      'upper-case',
      post('/x', ['EXPECT: 100-CONTINUE', 'Content-Length: 3'], 'abc'),
      {
        ...accepted(arrival('POST /x', ['EXPECT: 100-CONTINUE', 'Content-Length: 3'], 'abc')),
        responses: [proceed, { status: 200 }],
      },
    ],
    [
      'declined',
      post('/declines', ['Expect: 100-continue', length], `${SMUGGLED}${SMUGGLED}`),
      {
        arrivals: [],
        responses: [{ status: 401, body: 'POST /declines' }],
        ends: true,
        mayBegin: true,
        unseen: ['smuggled'],
        records: ['injected'],
      },
    ],
    [
      'nominated',
      post('/x', ['Connection: Expect', 'Expect: 100-continue', 'Content-Length: 3'], 'abc'),
      malformed,
    ],
  ]),
  ...rowsOf('F-22', [
    [
      'without-a-body',
      request('GET /x', ['Expect: 100-continue']),
      { ...accepted(arrival('GET /x', ['Expect: 100-continue'])) },
    ],
  ]),
];
