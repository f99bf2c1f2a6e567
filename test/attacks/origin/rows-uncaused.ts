// responses that the request could not have caused: 101, proxy challenges, bodies where none is allowed.
import { response, malformed, relayed } from './row-shapes.ts';
import type { OriginExpectation, OriginRow, OriginScript } from './origin-script.ts';

const switching = (...fields: readonly string[]): string =>
  ['HTTP/1.1 101 Switching Protocols', ...fields, '', ''].join('\r\n');
const WEBSOCKET = ['Connection: Upgrade', 'Upgrade: websocket'];
const ask = (...fields: readonly string[]): readonly string[] => [
  ['GET /socket HTTP/1.1', 'Host: {HOST}', ...fields, '', ''].join('\r\n'),
];
const upgradeRequest = ask(
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: AQIDBAUGBwgJCgsMDQ4PEA==',
);
const FRAME = '\x81\x02ok';

const OK = 'HTTP/1.1 200 OK\r\n';
const CHUNKS = 'Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-A: one\r\n\r\n';

/** A 101 to a request without an upgrade, or to another protocol than the requested one. */
const unasked: readonly (readonly [name: string, request: readonly string[] | undefined, sent: string])[] = [
  ['switch-for-a-plain-get', undefined, switching(...WEBSOCKET)],
  ['switch-without-fields', undefined, switching()],
  [
    'switch-to-h2c',
    ask('Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__'),
    switching('Connection: Upgrade', 'Upgrade: h2c'),
  ],
  [
    'switch-to-tls',
    ask('Connection: Upgrade', 'Upgrade: TLS/1.2'),
    switching('Connection: Upgrade', 'Upgrade: TLS/1.2'),
  ],
  ['switch-to-another-protocol', upgradeRequest, switching('Connection: Upgrade', 'Upgrade: h2c')],
  ['switch-to-one-of-two', upgradeRequest, switching('Connection: Upgrade', 'Upgrade: websocket, h2c')],
  [
    'switch-to-two-in-two-fields',
    upgradeRequest,
    switching('Connection: Upgrade', 'Upgrade: websocket', 'Upgrade: websocket'),
  ],
  ['switch-to-a-version', upgradeRequest, switching('Connection: Upgrade', 'Upgrade: websocket/13')],
  ['switch-to-nothing', upgradeRequest, switching('Connection: Upgrade', 'Upgrade:')],
  ['switch-without-connection', upgradeRequest, switching('Upgrade: websocket')],
  ['switch-without-upgrade', upgradeRequest, switching('Connection: Upgrade')],
  ['switch-with-connection-close', upgradeRequest, switching('Connection: close', 'Upgrade: websocket')],
  ['switch-by-http-10', upgradeRequest, switching(...WEBSOCKET).replace('HTTP/1.1', 'HTTP/1.0')],
  [
    'switch-for-a-post',
    [
      'POST /s HTTP/1.1\r\nHost: {HOST}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n',
    ],
    switching(...WEBSOCKET),
  ],
  [
    'switch-for-a-head',
    ['HEAD /s HTTP/1.1\r\nHost: {HOST}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'],
    switching(...WEBSOCKET),
  ],
  [
    'switch-where-two-were-requested',
    ask('Connection: Upgrade', 'Upgrade: websocket, h2c'),
    switching(...WEBSOCKET),
  ],
  ['switch-where-connection-did-not-ask', ask('Upgrade: websocket'), switching(...WEBSOCKET)],
];

const switches = unasked.map(([name, request, sent]) =>
  malformed(`R-05 ${name}`, `${sent}${FRAME}`, 'unasked_101', {
    script: { response: [{ send: `${sent}${FRAME}` }], ...(request ? { request } : {}) },
    // An HTTP/1.0 client, or one that sent Connection: close, cannot upgrade.
    expect: { record: { outcome: 'failed', status: 502, reason: 'upstream_malformed' } },
  }),
);

const framedSwitches: readonly OriginRow[] = [
  ['length', 'Content-Length: 5', 'content_length_unexpected'],
  ['chunks', 'Transfer-Encoding: chunked', 'transfer_encoding_unexpected'],
].map(([name = '', field = '', cause = '']) =>
  malformed(`R-05 switch-with-a-${name}`, switching(...WEBSOCKET, field), cause, {
    script: { request: upgradeRequest, response: [{ send: switching(...WEBSOCKET, field) }] },
  }),
);

const switched = (name: string, sent: string, client: string): OriginRow => ({
  id: `R-05 ${name}`,
  script: { request: upgradeRequest, response: [{ send: sent }, 'end'] },
  expect: { client, end: 'ended', record: { outcome: 'upgraded', status: 101 } },
});

const asSent = `${switching('Sec-WebSocket-Accept: x', 'Connection: Upgrade', 'Upgrade: websocket')}${FRAME}`;

const trueSwitches: readonly OriginRow[] = [
  switched('requested-switch', switching(...WEBSOCKET, 'Sec-WebSocket-Accept: x') + FRAME, asSent),
  switched(
    'switch-with-a-length-of-zero',
    switching(
      'Content-Length: 0',
      'Sec-WebSocket-Accept: x',
      'Upgrade: WebSocket',
      'Connection: keep-alive, upgrade',
    ) + FRAME,
    asSent,
  ),
  switched(
    'switch-that-names-another-way',
    switching(
      'Alt-Svc: h3="evil.test:443"',
      'Sec-WebSocket-Accept: x',
      ...WEBSOCKET,
      'Keep-Alive: timeout=9',
    ) + FRAME,
    asSent,
  ),
];

/** Bytes after an upgrade are the new protocol after a 101, and requests after any other status. */
const early: readonly OriginRow[] = [
  {
    id: 'R-05 early-frames-and-a-switch',
    script: {
      request: [`${upgradeRequest.join('')}early`],
      response: [{ send: switching(...WEBSOCKET) }, { through: 'early' }, { send: FRAME }, 'end'],
    },
    expect: {
      client: `${switching('Connection: Upgrade', 'Upgrade: websocket')}${FRAME}`,
      end: 'ended',
      record: { outcome: 'upgraded', status: 101 },
    },
  },
  ...['403 Forbidden', '200 OK', '426 Upgrade Required'].map(
    (status): OriginRow =>
      relayed(`R-05 upgrade-with-response-${status.slice(0, 3)}`, response([], 'no', status), undefined, {
        script: { request: upgradeRequest, response: [{ send: response([], 'no', status) }] },
        // The proxy cannot know whether the host still reads HTTP on this connection.
        expect: { host: 'fresh' },
      }),
  ),
  relayed(
    'R-05 trailer-announced',
    `${OK}Trailer: Content-Length, X-A\r\n${CHUNKS}`,
    `${OK}${CHUNKS.replace('X-A: one\r\n', '')}`,
  ),
];

const challenges: readonly (readonly [name: string, sent: string, script?: Partial<OriginScript>])[] = [
  ['status-407', response(['Proxy-Authenticate: Basic realm="a"'], '', '407 Proxy Authentication Required')],
  ['status-407-without-a-challenge', response([], 'give me your token', '407 Please')],
  ['status-407-by-http-10', response([], '', '407 Please').replace('HTTP/1.1', 'HTTP/1.0')],
  [
    'status-407-to-head',
    'HTTP/1.1 407 Please\r\nContent-Length: 9\r\n\r\n',
    { request: ['HEAD / HTTP/1.1\r\nHost: {HOST}\r\n\r\n'] },
  ],
  ['status-407-to-an-upgrade', response([], '', '407 Please'), { request: upgradeRequest }],
  ['challenge-beside-200', response(['Proxy-Authenticate: Basic realm="a"'])],
  [
    'challenge-beside-401',
    response(['WWW-Authenticate: Basic', 'proxy-AUTHENTICATE: Negotiate'], '', '401 Unauthorized'),
  ],
  ['challenge-beside-304', 'HTTP/1.1 304 Not Modified\r\nProxy-Authenticate: Digest\r\n\r\n'],
  [
    'challenge-beside-a-switch',
    switching(...WEBSOCKET, 'Proxy-Authenticate: NTLM'),
    { request: upgradeRequest },
  ],
  ['challenge-of-nothing', response(['Proxy-Authenticate:'])],
  ['challenge-nominated', response(['Connection: Proxy-Authenticate', 'Proxy-Authenticate: Basic'])],
];

const challenged: OriginExpectation = {
  client: { refused: 'upstream_asks_proxy_auth' },
  record: { outcome: 'failed', status: 502, reason: 'upstream_asks_proxy_auth' },
};
const challengeRows = challenges.map(
  ([name, sent, script]): OriginRow => ({
    id: `R-05 ${name}`,
    script: { ...script, response: [{ send: sent }] },
    expect: challenged,
  }),
);

const HEAD = ['HEAD / HTTP/1.1\r\nHost: {HOST}\r\n\r\n'];

const bodies: readonly OriginRow[] = [
  malformed(
    'R-05 body-in-204',
    'HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok',
    'content_length_unexpected',
  ),
  malformed(
    'R-05 chunks-in-204',
    'HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
    'transfer_encoding_unexpected',
  ),
  relayed(
    'R-05 chunks-to-http-10',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
    'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok',
    {
      script: {
        request: ['GET / HTTP/1.0\r\nHost: {HOST}\r\n\r\n'],
        response: [{ send: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n' }],
      },
      expect: { end: 'ended' },
    },
  ),
  relayed('R-05 length-of-zero-in-204', 'HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n'),
  relayed('R-05 length-in-304', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\n\r\n'),
  relayed('R-05 chunks-in-304', 'HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n'),
  relayed('R-05 length-to-head', 'HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n', undefined, {
    script: { request: HEAD, response: [{ send: 'HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n' }] },
  }),
  relayed('R-05 chunks-to-head', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', undefined, {
    script: { request: HEAD, response: [{ send: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n' }] },
  }),
  malformed(
    'R-05 two-lengths-to-head',
    'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n',
    'content_length_repeated',
    {
      script: {
        request: HEAD,
        response: [{ send: 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n' }],
      },
    },
  ),
  relayed(
    'R-05 upgrade-required',
    response(['Upgrade: h2c', 'Connection: Upgrade'], '', '426 Upgrade Required'),
    response([], '', '426 Upgrade Required'),
  ),
  relayed('R-05 h2c-offered-beside-200', response(['Connection: Upgrade', 'Upgrade: h2c']), response([])),
];

export const uncausedRows: readonly OriginRow[] = [
  ...switches,
  ...framedSwitches,
  ...trueSwitches,
  ...early,
  ...challengeRows,
  ...bodies,
];
