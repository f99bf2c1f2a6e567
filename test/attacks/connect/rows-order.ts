// What a client sends before a CONNECT, with it, and after it: other requests on its connection, fields that have a meaning
// elsewhere, an early ClientHello, a disconnect (F-20, D-02, D-17, D-18, N-02).
import type { ClearPart, ConnectExpectation, ConnectRow, ConnectScript } from './connect-script.ts';
import {
  type Row,
  DECODE_ERROR,
  UNRECOGNIZED_NAME,
  connectTo,
  get,
  head,
  inClear,
  injected,
  inside,
  otherName,
  refused,
  refusedInClear,
  refusedInside,
  rowsOf,
  tunnelled,
  turnedAway,
  withCredential,
} from './expectations.ts';

const API = 'api.test:443';
const plainGet = head('GET http://clear.test/v1/x HTTP/1.1', 'Host: clear.test');
const credential = withCredential(get('clear.test'));

/** The response to the previous request, then the outcome of the CONNECT. */
function after(responses: readonly string[], more: Partial<ConnectExpectation> = {}): ConnectExpectation {
  return {
    connect: '200',
    responses,
    arrived: [{ at: 'clear', bytes: credential }],
    requestedNames: [''],
    dialled: ['8.8.1.1:80'],
    mayReuse: true,
    lookedUp: ['clear.test'],
    records: [{ outcome: 'injected' }, { outcome: 'refused' }],
    ...more,
  };
}

const then = (...requests: readonly string[]): ClearPart => ({ kind: 'clear', requests });

const before: readonly Row[] = [
  [
    'refused-after-an-exchange',
    { send: [plainGet], then: then(connectTo('evil.test')) },
    after(['400 authority_invalid']),
  ],
  [
    'own-proxy-port-after-an-exchange',
    { send: [plainGet], then: then(connectTo('localhost:{PROXY}')) },
    after(['403 address_denied']),
  ],
  [
    'refused-with-an-exchange',
    { send: [plainGet + connectTo('evil.test:0') + plainGet], then: then('') },
    after(['400 authority_invalid']),
  ],
  [
    'blind-after-an-exchange',
    { send: [plainGet], then: then(connectTo('other.test:80'), get('api.test')) },
    after(['200', '200'], {
      arrived: [
        { at: 'clear', bytes: credential },
        { at: 'clear', bytes: get('api.test') },
      ],
      requestedNames: ['', ''],
      dialled: ['8.8.1.1:80', '8.8.1.2:80'],
      lookedUp: ['clear.test', 'other.test'],
      records: [{ outcome: 'injected' }, { outcome: 'tunnelled' }],
    }),
  ],
  [
    'plain-request-after-the-tunnel-began',
    inClear('clear.test:80', [get('clear.test'), plainGet.replace('clear.test/', 'evil.test/')]),
    after(['200', '421 authority_mismatch']),
  ],
];

/** Fields of a CONNECT have no effect: they belong to this hop, or are ignored. */
const fields: readonly (readonly [name: string, field: string])[] = [
  ['upgrade', 'Connection: Upgrade\r\nUpgrade: websocket'],
  ['h2c', 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__'],
  ['expect', 'Expect: 100-continue'],
  ['close', 'Connection: close'],
  ['authorization', 'Authorization: Bearer mine'],
  ['forwarded-host', 'X-Forwarded-Host: evil.test'],
  ['alt-used', 'Alt-Used: evil.test:443'],
  ['alpn', 'ALPN: h2, http%2F1.1'],
  ['original-url', 'X-Original-URL: https://evil.test/'],
];

const withFields: readonly Row[] = fields.map(([name, field]) => [
  `connect-with-${name}`,
  inside(API, 'api.test', [get('api.test')], {
    send: [head(`CONNECT ${API} HTTP/1.1`, `Host: ${API}`, field)],
  }),
  injected(),
]);

const pieces: readonly Row[] = [
  [
    'connect-in-single-bytes',
    inside(API, 'api.test', [get('api.test')], { send: [...connectTo(API)] }),
    injected(),
  ],
  [
    'connect-cut-in-the-host',
    inside(API, 'api.test', [get('api.test')], {
      send: ['CONNECT api.te', 'st:443 HTTP/1.1\r\n', 'Host: x\r\n\r', '\n'],
    }),
    injected(),
  ],
  [
    'connect-of-http-1.0',
    inside(API, 'api.test', [get('api.test')], { send: ['CONNECT api.test:443 HTTP/1.0\r\n\r\n'] }),
    injected(),
  ],
  [
    'connect-with-bare-line-feeds',
    { send: [`CONNECT ${API} HTTP/1.1\nHost: ${API}\n\n`] },
    refused('400 malformed_request'),
  ],
  [
    'connect-with-a-folded-line',
    { send: [`CONNECT ${API}\r\n HTTP/1.1\r\n\r\n`] },
    refused('400 malformed_request'),
  ],
  [
    'connect-after-a-line-break',
    { send: [`\r\n${connectTo('evil.test')}`] },
    refused('400 authority_invalid'),
  ],
];

const greet = (authority: string, serverNames: readonly string[]): ConnectScript => ({
  send: [connectTo(authority)],
  then: { kind: 'hello', serverNames, isEarly: true },
});

const earlyHello: readonly Row[] = [
  ['early-hello-for-another-host', greet(API, ['evil.test']), otherName],
  [
    'early-hello-for-a-sibling',
    greet('a.wild.test:443', ['b.wild.test']),
    turnedAway(UNRECOGNIZED_NAME, 'sni_mismatch'),
  ],
  ['early-hello-with-a-nul', greet(API, ['api.test\0']), turnedAway(DECODE_ERROR, 'client_hello_malformed')],
  ['early-hello-after-a-refused-connect', greet('api.test', ['api.test']), refused('400 authority_invalid')],
  [
    'early-hello-after-a-denied-connect',
    { ...greet('evil.test:443', ['api.test']), policy: 'denied' },
    refused('403 access_denied'),
  ],
];

const gone = (reason: string): ConnectExpectation => ({
  connect: '200',
  records: [{ outcome: 'failed', reason }],
});
const leaves = (by: 'fin' | 'rst', bytes: string): ConnectScript => ({
  send: [connectTo(API)],
  then: { kind: 'leave', by, bytes },
});

const leaving: readonly Row[] = [
  ['leaves-by-fin', leaves('fin', ''), gone('client_gone')],
  ['leaves-by-reset', leaves('rst', ''), gone('client_gone')],
  ['leaves-in-a-record-head', leaves('fin', '\x16\x03\x01'), gone('client_gone')],
  ['leaves-in-a-hello', leaves('fin', '\x16\x03\x01\0\x80\x01\0\0\x7c\x03\x03'), gone('client_gone')],
  [
    'leaves-in-a-hello-by-reset',
    leaves('rst', '\x16\x03\x01\0\x80\x01\0\0\x7c\x03\x03'),
    gone('client_gone'),
  ],
];

/** Inside TLS, instead of HTTP. */
const notHttp: readonly (readonly [name: string, bytes: string, response: string])[] = [
  ['ssh', 'SSH-2.0-OpenSSH_9.9\r\n\r\n', '400 malformed_request'],
  ['http2-preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', '505 version_refused'],
  ['http-0.9', 'GET /v1/x\r\n\r\n', '400 malformed_request'],
  ['http-1.2', `${get('api.test').replace('/1.1', '/1.2')}`, '505 version_refused'],
  ['proxy-protocol', `PROXY TCP4 127.0.0.1 8.8.1.1 5 443\r\n${get('api.test')}`, '400 malformed_request'],
  ['hello', '\x16\x03\x01\0\x05\x01\0\0\x01\x03\r\n\r\n', '400 malformed_request'],
  ['connect', connectTo('evil.test:443'), '405 method_refused'],
  ['connect-to-the-same', connectTo(API), '405 method_refused'],
];

const insideTls: readonly Row[] = notHttp.map(([name, bytes, response]) => [
  `inside-tls-${name}`,
  inside(API, 'api.test', [bytes]),
  refusedInside(response),
]);

/** A host with a rule, so that the tunnel opens before the dial; the request inside is refused. */
const ownByRule: readonly Row[] = ['self.test', 'mapped.test', 'late.test', 'localhost', '127.0.0.1'].flatMap(
  (host): Row[] => {
    const lookedUp = host.endsWith('.test') ? [host] : [];
    const more = { policy: 'own', at: 'loose' } as const;
    const expected = { ...refusedInside('403 address_denied', 'own listener'), lookedUp };
    return [
      [`rule-for-${host}`, inside(`${host}:{ADMIN}`, host, [get(`${host}:{ADMIN}`)], more), expected],
      [
        `rule-for-${host}-at-the-proxy`,
        inside(`${host}:{PROXY}`, host, [get(`${host}:{PROXY}`)], more),
        expected,
      ],
    ];
  },
);

const ownInClear: readonly Row[] = [
  [
    'rule-for-localhost-in-clear',
    inClear('localhost:{ADMIN}', [get('localhost:{ADMIN}')], { policy: 'own', at: 'loose' }),
    refusedInClear('403 address_denied', 'own listener'),
  ],
  [
    'rule-for-an-address-in-clear',
    inClear('127.0.0.1:{ADMIN}', [get('127.0.0.1:{ADMIN}')], { policy: 'own', at: 'loose' }),
    refusedInClear('403 address_denied', 'own listener'),
  ],
  [
    'rule-for-a-name-in-clear',
    inClear('self.test:{ADMIN}', [get('self.test:{ADMIN}')], { policy: 'own', at: 'loose' }),
    refusedInClear('403 cleartext_refused'),
  ],
  [
    'no-proxy-for-a-name',
    inClear('self.test:{ADMIN}', [], { policy: 'no_proxy', at: 'loose' }),
    refused('403 address_denied', { cause: 'own listener', lookedUp: ['self.test'] }),
  ],
];

const blind: readonly Row[] = [
  [
    'early-bytes-claim-a-bound-host',
    { send: [connectTo('evil.test:80') + get('api.test')], then: then('') },
    tunnelled('8.8.1.3:80', get('api.test'), { lookedUp: ['evil.test'] }),
  ],
];

export const orderRows: readonly ConnectRow[] = [
  ...rowsOf('F-20', [...before, ...earlyHello]),
  ...rowsOf('D-17', [...withFields, ...pieces]),
  ...rowsOf('D-18', [...leaving, ...insideTls]),
  ...rowsOf('N-02', [...ownByRule, ...ownInClear]),
  ...rowsOf('D-02', blind),
];
