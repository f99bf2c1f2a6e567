// bytes that belong to no request. They must not become the response to a waiting request or to the next one.
import { response, relayed } from './row-shapes.ts';
import type { OriginRow, OriginScript } from './origin-script.ts';

const FORGED = response(['X-Forged: yes'], 'forged');
const get = (target: string): string => `GET ${target} HTTP/1.1\r\nHost: {HOST}\r\n\r\n`;
const plain = (target: string): string =>
  `HTTP/1.1 200 OK\r\nContent-Length: ${target.length}\r\nX-Plain: yes\r\n\r\n${target}`;

/** `own` is the complete response; `surplus` follows it. */
const behind: readonly (readonly [
  name: string,
  own: string,
  surplus: string,
  script?: Partial<OriginScript>,
])[] = [
  ['after-a-length', response([]), FORGED],
  ['after-a-length-of-zero', response([], ''), FORGED],
  ['after-chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n', FORGED],
  ['after-204', 'HTTP/1.1 204 No Content\r\n\r\n', FORGED],
  ['after-304', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 6\r\n\r\n', 'forged'],
  ['after-304-a-whole-response', 'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n\r\n', FORGED],
  [
    'after-head',
    'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n',
    'forged',
    { request: ['HEAD / HTTP/1.1\r\nHost: {HOST}\r\n\r\n'] },
  ],
  [
    'after-head-of-chunks',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n',
    '0\r\n\r\n',
    { request: ['HEAD /c HTTP/1.1\r\nHost: {HOST}\r\n\r\n'] },
  ],
  ['one-byte', response([]), 'x'],
  ['one-nul', response([]), '\0'],
  ['a-line-end', response([]), '\r\n'],
  ['a-line-feed', response([]), '\n'],
  ['an-interim-head', response([]), 'HTTP/1.1 100 Continue\r\n\r\n'],
  ['an-early-hint', response([]), 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'],
  ['a-second-last-chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', '0\r\n\r\n'],
  ['the-head-of-a-long-response', response([]), 'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n'],
  ['half-a-head', response([]), 'HTTP/1.1 200 OK\r\nX-Prefix: '],
  ['sixty-four-kibibytes', response([]), 'x'.repeat(65_536)],
];

const inOneWrite = behind.map(([name, own, surplus, script]) =>
  relayed(`R-03 ${name}`, own + surplus, own, {
    script: { ...script, response: [{ send: own + surplus }] },
    expect: { host: 'fresh' },
  }),
);

const inTheNextWrite = behind.slice(0, 6).map(([name, own, surplus, script]) =>
  relayed(`R-03 ${name}-in-a-write-of-its-own`, own, own, {
    script: { ...script, response: [{ send: own }, { send: surplus }, 'closed'] },
    expect: { host: 'fresh' },
  }),
);

const afterTheResponseWasRead = behind.slice(0, 12).map(([name, own, surplus, script]) =>
  relayed(`R-03 ${name}-on-the-idle-connection`, own, own, {
    script: { ...script, response: [{ send: own }, 'responded', { send: surplus }, 'closed'] },
    expect: { host: 'fresh' },
  }),
);

const own = response([]);

const others: readonly OriginRow[] = [
  relayed('R-03 poison-for-a-request-that-waits', own + FORGED, own + plain('/second'), {
    script: { request: [get('/first') + get('/second')], reads: 2, response: [{ send: own + FORGED }] },
    expect: { host: 'fresh' },
  }),
  relayed('R-03 poison-in-two-records-for-a-request-that-waits', own, own + plain('/second'), {
    script: {
      request: [get('/a') + get('/second')],
      reads: 2,
      response: [{ send: own.slice(0, -1) }, { send: own.slice(-1) + FORGED }],
    },
    expect: { host: 'fresh' },
  }),
  relayed('R-03 a-deep-queue-of-poison', own + FORGED.repeat(3), own + plain('/2') + plain('/3'), {
    script: {
      request: [get('/1') + get('/2') + get('/3')],
      reads: 3,
      response: [{ send: own + FORGED.repeat(3) }],
    },
    expect: { host: 'fresh' },
  }),
  relayed('R-03 an-end-on-the-idle-connection', own, own, {
    script: { response: [{ send: own }, 'responded', 'end', 'closed'] },
    expect: { host: 'fresh' },
  }),
  relayed('R-03 a-reset-on-the-idle-connection', own, own, {
    script: { response: [{ send: own }, 'responded', 'reset', 'closed'] },
    expect: { host: 'fresh' },
  }),
  relayed('R-03 a-timeout-sent-on-the-idle-connection', own, own, {
    script: {
      response: [
        { send: own },
        'responded',
        { send: response(['Connection: close'], '', '408 Request Timeout') },
        'end',
        'closed',
      ],
    },
    expect: { host: 'fresh' },
  }),
  relayed('R-03 close-announced-and-not-done', response(['Connection: close']), own, {
    expect: { host: 'fresh' },
  }),
  relayed('R-03 close-in-a-list', response(['Connection: keep-alive, Close']), own, {
    expect: { host: 'fresh' },
  }),
  relayed('R-03 close-in-a-second-field', response(['Connection: keep-alive', 'Connection: close']), own, {
    expect: { host: 'fresh' },
  }),
  relayed(
    'R-03 a-connection-that-has-logged-in',
    response(['WWW-Authenticate: NTLM'], '', '401 Unauthorized'),
    undefined,
    { expect: { host: 'fresh' } },
  ),
  relayed(
    'R-03 a-connection-that-negotiates',
    response(
      ['WWW-Authenticate: Basic realm="a"', 'www-authenticate: NEGOTIATE abc'],
      '',
      '401 Unauthorized',
    ),
    undefined,
    { expect: { host: 'fresh' } },
  ),
  relayed('R-03 keep-alive-of-no-time', response(['Keep-Alive: timeout=0']), own, {
    expect: { host: 'fresh' },
  }),
  relayed('R-03 keep-alive-of-one-second', response(['Keep-Alive: timeout=1, max=1']), own, {
    expect: { host: 'fresh' },
  }),
  relayed('R-03 keep-alive-of-a-number-too-long', response([`Keep-Alive: timeout=${'9'.repeat(40)}`]), own),
];

export const queueRows: readonly OriginRow[] = [
  ...inOneWrite,
  ...inTheNextWrite,
  ...afterTheResponseWasRead,
  ...others,
];
