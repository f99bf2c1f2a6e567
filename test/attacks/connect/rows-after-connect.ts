// F-20: bytes after a CONNECT, and a CONNECT with a body. Bytes after a refused CONNECT are discarded (RFC 9931), even if
// they look like the next request.
import type { ConnectRow } from './connect-script.ts';
import { arrivesInClear, connectTo, get, head, refused, tunnelled, withCredential } from './expectations.ts';

const smuggled = head('GET http://clear.test/v1/x HTTP/1.1', 'Host: clear.test');

/** Each is refused, and each is followed by a request that would be served on its own. */
const refusedHeads: readonly (readonly [
  name: string,
  lines: readonly string[],
  response: string,
  cause?: string,
])[] = [
  ['without-a-port', ['CONNECT clear.test HTTP/1.1'], '400 authority_invalid', 'port_missing'],
  ['to-a-closed-port', ['CONNECT 8.8.1.2:25 HTTP/1.1'], '403 port_denied'],
  ['to-the-own-proxy-port', ['CONNECT 127.0.0.1:{PROXY} HTTP/1.1'], '403 address_denied', 'own listener'],
  ['of-another-version', ['CONNECT clear.test:80 HTTP/2.0'], '505 version_refused'],
  ['in-origin-form', ['CONNECT / HTTP/1.1'], '400 authority_invalid'],
  [
    'of-two-lengths',
    ['CONNECT other.test:80 HTTP/1.1', 'Content-Length: 0', 'Content-Length: 72'],
    '400 malformed_request',
  ],
];

const framed: readonly (readonly [name: string, fields: readonly string[], body: string])[] = [
  ['length', ['Content-Length: 5'], 'hello'],
  ['length-of-the-next-head', [`Content-Length: ${smuggled.length}`], smuggled],
  ['chunks', ['Transfer-Encoding: chunked'], '0\r\n\r\n'],
  [
    'chunks-around-the-next-head',
    ['Transfer-Encoding: chunked'],
    `${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`,
  ],
  ['length-and-chunks', ['Content-Length: 5', 'Transfer-Encoding: chunked'], '0\r\n\r\n'],
  ['identity-coding', ['Transfer-Encoding: identity'], ''],
  ['coding-in-capitals', ['TRANSFER-ENCODING: CHUNKED'], '0\r\n\r\n'],
  ['length-that-is-no-number', ['Content-Length: none'], ''],
];

export const behindConnectRows: readonly ConnectRow[] = [
  ...refusedHeads.map(([name, lines, response, cause]): ConnectRow => {
    const send = [head(...lines) + smuggled];
    return {
      id: `F-20 after-a-connect-${name}`,
      script: { send },
      expect: refused(response, cause === undefined ? {} : { cause }),
    };
  }),
  ...framed.map(([name, fields, body]): ConnectRow => {
    const send = [head('CONNECT other.test:80 HTTP/1.1', 'Host: other.test:80', ...fields) + body];
    return { id: `F-20 connect-with-${name}`, script: { send }, expect: refused('400 malformed_request') };
  }),
  {
    id: 'F-20 connect-with-length-to-an-intercepted-host',
    script: { send: [head('CONNECT api.test:443 HTTP/1.1', 'Content-Length: 3') + 'abc'] },
    expect: refused('400 malformed_request', { cause: 'connect_with_body' }),
  },
  {
    id: 'F-20 refused-then-a-second-segment',
    script: { send: [head('CONNECT other.test:0 HTTP/1.1'), smuggled] },
    expect: refused('400 authority_invalid'),
  },
  {
    id: 'F-20 refused-then-a-second-connect',
    script: { send: [connectTo('nowhere.test') + connectTo('other.test:80')] },
    expect: refused('400 authority_invalid', { cause: 'port_missing' }),
  },
  {
    id: 'F-20 unreachable-with-a-request-after-it',
    script: { send: [head('CONNECT nowhere.test:443 HTTP/1.1') + smuggled] },
    expect: {
      connect: '502 upstream_unreachable',
      dialled: ['8.8.4.4:443'],
      lookedUp: ['nowhere.test'],
      records: [{ outcome: 'refused', reason: 'upstream_unreachable' }],
    },
  },
  {
    id: 'F-20 too-much-after-a-blind-connect',
    script: { send: [head('CONNECT other.test:80 HTTP/1.1') + 'x'.repeat(20_000)] },
    // Unframed bytes wait for the 200; above the limit of waiting bytes the tunnel is refused, because it would lose some.
    expect: refused('400 malformed_request', { cause: 'too_much_before_200' }),
  },
  {
    id: 'F-20 blind-tunnel-takes-what-came-early',
    script: {
      send: [connectTo('other.test:80') + get('other.test')],
      then: { kind: 'clear', requests: [''] },
    },
    expect: tunnelled('8.8.1.2:80', get('other.test'), { lookedUp: ['other.test'] }),
  },
  {
    // Some clients announce an empty body; what follows the head belongs to the tunnel all the same.
    id: 'F-20 connect-with-empty-length',
    script: {
      send: [
        head('CONNECT other.test:80 HTTP/1.1', 'Host: other.test:80', 'Content-Length: 0') +
          get('other.test'),
      ],
      then: { kind: 'clear', requests: [''] },
    },
    expect: tunnelled('8.8.1.2:80', get('other.test'), { lookedUp: ['other.test'] }),
  },
  {
    id: 'F-20 blind-tunnel-adds-nothing-to-a-second-connect',
    script: {
      send: [connectTo('other.test:80') + connectTo('api.test:443')],
      then: { kind: 'clear', requests: [''] },
    },
    expect: tunnelled('8.8.1.2:80', connectTo('api.test:443'), { lookedUp: ['other.test'] }),
  },
  {
    id: 'F-20 clear-request-after-an-intercepted-connect',
    script: {
      send: [connectTo('clear.test:80') + get('clear.test')],
      then: { kind: 'clear', requests: [''] },
    },
    expect: arrivesInClear('clear.test', withCredential(get('clear.test'))),
  },
  {
    id: 'F-20 connect-inside-an-intercepted-tunnel',
    script: {
      send: [connectTo('clear.test:80') + connectTo('other.test:80')],
      then: { kind: 'clear', requests: [''] },
    },
    expect: {
      connect: '200',
      responses: ['405 method_refused'],
      records: [{ outcome: 'refused', reason: 'method_refused' }],
    },
  },
];
