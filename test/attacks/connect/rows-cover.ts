// How a host with a rule can be reached: no credential over http:// for a claimed Host (D-05), no blind tunnel to a host with
// a rule (D-17), no relay of bytes that are neither TLS nor HTTP (D-18).
import type { ConnectExpectation, ConnectRow, ConnectScript } from './connect-script.ts';
import {
  type Row,
  rowsOf,
  arrives,
  arrivesInClear,
  connectTo,
  get,
  head,
  inClear,
  inside,
  refused,
  refusedInClear,
  tunnelled,
  turnedAway,
  withCredential,
} from './expectations.ts';

const API = 'api.test:443';
const CLEARTEXT = '403 cleartext_refused';
const credential = withCredential(get('clear.test'));

const ask = (target: string, host: string): ConnectScript => ({
  send: [head(`GET ${target} HTTP/1.1`, `Host: ${host}`)],
});

/** Forwarded unchanged in plaintext: another host, without a credential. */
function passes(address: string, bytes: string, lookedUp: readonly string[]): ConnectExpectation {
  const { certificateIssuer: _, ...rest } = arrives('', bytes, { address, lookedUp });
  return { ...rest, arrived: [{ at: 'clear', bytes }], connect: '200', responses: [] };
}

const spoofedHost: readonly Row[] = [
  ['bound-host-in-the-target', ask('http://api.test/v1/x', 'api.test'), refused(CLEARTEXT)],
  ['bound-host-on-443', ask('http://api.test:443/v1/x', 'api.test:443'), refused(CLEARTEXT)],
  ['bound-host-in-capitals', ask('HTTP://API.test./v1/x', 'api.test'), refused(CLEARTEXT)],
  ['bound-address-in-the-target', ask('http://8.8.1.9/v1/x', '8.8.1.9'), refused(CLEARTEXT)],
  ['bound-host-of-a-callback', ask('http://back.test/v1/x', 'back.test'), refused(CLEARTEXT)],
  ['address-with-the-bound-host', ask('http://8.8.1.3/v1/x', 'api.test'), refused('400 host_mismatch')],
  ['address-with-the-listed-host', ask('http://8.8.1.3/v1/x', 'clear.test'), refused('400 host_mismatch')],
  [
    'evil-host-with-the-listed-host',
    ask('http://evil.test/v1/x', 'clear.test'),
    refused('400 host_mismatch'),
  ],
  ['origin-form-with-the-listed-host', ask('/v1/x', 'clear.test'), refused('400 not_a_proxy_request')],
  [
    'listed-host-on-a-port-that-is-not',
    ask('http://clear.test:8080/v1/x', 'clear.test:8080'),
    refused(CLEARTEXT),
  ],
  [
    'name-that-only-resolves-to-loopback',
    ask('http://narrow.test:8443/v1/x', 'narrow.test:8443'),
    refused(CLEARTEXT),
  ],
  ['address-for-itself', ask('http://8.8.1.3/v1/x', '8.8.1.3'), passes('8.8.1.3:80', get('8.8.1.3'), [])],
  [
    'evil-host-for-itself',
    ask('http://evil.test/v1/x', 'evil.test'),
    passes('8.8.1.3:80', get('evil.test'), ['evil.test']),
  ],
  ['bound-host-in-a-tunnel-to-port-80', inClear('api.test:80', [get('api.test')]), refusedInClear(CLEARTEXT)],
  [
    'bound-host-in-a-tunnel-to-an-address',
    inClear('8.8.1.3:80', [get('api.test')]),
    tunnelled('8.8.1.3:80', get('api.test')),
  ],
  [
    'listed-host-in-its-tunnel',
    inClear('clear.test:80', [get('clear.test')]),
    arrivesInClear('clear.test', credential),
  ],
  [
    'another-host-in-the-tunnel-of-the-listed',
    inClear('clear.test:80', [get('evil.test')]),
    refusedInClear('421 authority_mismatch'),
  ],
  [
    'the-listed-host-by-tls-on-its-clear-port',
    inClear('clear.test:443', [get('clear.test:443')]),
    refusedInClear(CLEARTEXT),
  ],
  [
    'path-without-a-rule-leaves-bare',
    inClear('api.test:80', [get('api.test').replace('/v1/', '/v2/')], { policy: 'paths' }),
    arrivesInClear('api.test', get('api.test').replace('/v1/', '/v2/')),
  ],
  [
    'path-with-a-rule',
    inClear('api.test:80', [get('api.test')], { policy: 'paths' }),
    refusedInClear(CLEARTEXT),
  ],
];

/** A leaf of the proxy shows that the tunnel is not blind; no port and no list makes it blind except `no_proxy`. */
const covered: readonly Row[] = [
  [
    'a-port-that-is-not-https',
    inside('api.test:8443', 'api.test', [get('api.test:8443')], { at: 'loose' }),
    injectedAt('api.test', 'api.test:8443', '8.8.1.1:8443'),
  ],
  [
    'a-port-of-http-with-tls',
    inside('api.test:80', 'api.test', [get('evil.test')]),
    inTunnel('421 authority_mismatch'),
  ],
  [
    'host-of-a-callback',
    inside('back.test:443', 'back.test', [get('evil.test')]),
    inTunnel('421 authority_mismatch'),
  ],
  [
    'deep-name-under-a-wildcard',
    inside('a.b.wild.test:443', 'a.b.wild.test', [get('a.b.wild.test')]),
    injectedAt('a.b.wild.test', 'a.b.wild.test', '8.8.1.1:443'),
  ],
  [
    'path-that-no-rule-matches',
    inside(API, 'api.test', [get('api.test').replace('/v1/', '/admin/')], { policy: 'paths' }),
    arrives('api.test', get('api.test').replace('/v1/', '/admin/')),
  ],
  [
    'client-credential-where-no-rule-matches',
    inside(API, 'api.test', [get('api.test', 'Authorization: mine').replace('/v1/', '/admin/')], {
      policy: 'paths',
    }),
    arrives('api.test', get('api.test', 'Authorization: mine').replace('/v1/', '/admin/')),
  ],
  [
    'listed-beside-the-rule',
    inside(API, 'api.test', [get('api.test')], { policy: 'listed' }),
    injectedAt('api.test', 'api.test', '8.8.1.1:443'),
  ],
  [
    'by-the-loose-operator',
    inside(API, 'api.test', [get('api.test')], { at: 'loose' }),
    injectedAt('api.test', 'api.test', '8.8.1.1:443'),
  ],
  [
    'apex-is-not-covered',
    inside('wild.test:443', 'wild.test', [get('wild.test')]),
    {
      ...tunnelled('8.8.1.3:443', get('wild.test'), { lookedUp: ['wild.test'] }),
      certificateIssuer: 'origin',
      requestedNames: ['wild.test'],
    },
  ],
  [
    'no-proxy-is-blind-and-bare',
    inside(API, 'api.test', [get('api.test')], { policy: 'no_proxy' }),
    blindTo('api.test'),
  ],
  [
    'no-proxy-in-another-spelling',
    inside('API.test.:443', 'api.test', [get('api.test')], { policy: 'no_proxy' }),
    blindTo('api.test'),
  ],
  [
    'no-proxy-by-wildcard',
    inside('a.wild.test:443', 'a.wild.test', [get('a.wild.test')], { policy: 'no_proxy' }),
    blindTo('a.wild.test'),
  ],
  [
    'disabled-rule-covers-nothing',
    inside(API, 'api.test', [get('api.test')], { policy: 'disabled' }),
    blindTo('api.test'),
  ],
  ['no-rules-at-all', inside(API, 'api.test', [get('api.test')], { policy: 'empty' }), blindTo('api.test')],
];

function inTunnel(response: string): ConnectExpectation {
  return { ...refusedInClear(response), certificateIssuer: 'proxy' };
}

function injectedAt(name: string, host: string, address: string): ConnectExpectation {
  return arrives(name, withCredential(get(host)), { address });
}

function blindTo(name: string): ConnectExpectation {
  const arrived = [{ at: 'api', bytes: get(name) }];
  const blind = tunnelled('8.8.1.1:443', get(name), { lookedUp: [name], arrived });
  return { ...blind, certificateIssuer: 'origin', requestedNames: [name] };
}

const closed = turnedAway('none', 'not_tls_nor_http');
const MALFORMED = refusedInClear('400 malformed_request');

const neither: readonly Row[] = [
  ['http-without-tls', inClear(API, [get('api.test:443')]), refusedInClear(CLEARTEXT)],
  // Without TLS the default port is 80.
  ['http-without-tls-nor-port', inClear(API, [get('api.test')]), refusedInClear('421 authority_mismatch')],
  [
    'http-in-absolute-form',
    inClear(API, [get('api.test:443').replace('/v1', 'http://api.test:443/v1')]),
    refusedInClear(CLEARTEXT),
  ],
  [
    'https-url-without-tls',
    inClear(API, [get('api.test:443').replace('/v1', 'https://api.test:443/v1')]),
    refusedInClear('400 target_invalid'),
  ],
  ['lower-case-method', inClear(API, ['get /v1/x HTTP/1.1\r\nHost: api.test:443\r\n\r\n']), closed],
  ['line-break-before-the-request', inClear(API, [`\r\n${get('api.test:443')}`]), closed],
  ['nul', inClear(API, ['\0']), closed],
  ['ssh', inClear(API, ['SSH-2.0-OpenSSH_9.9\r\n\r\n']), MALFORMED],
  ['smtp', inClear(API, ['EHLO api.test\r\n\r\n']), MALFORMED],
  ['redis', inClear(API, ['*1\r\n$4\r\nPING\r\n']), closed],
  ['postgres', inClear(API, ['\0\0\0\b\x04\xd2\x16/']), closed],
  ['socks5', inClear(API, ['\x05\x01\0']), closed],
  ['proxy-protocol-1', inClear(API, [`PROXY TCP4 127.0.0.1 8.8.1.1 5 443\r\n${get('api.test')}`]), MALFORMED],
  ['proxy-protocol-2', inClear(API, ['\r\n\r\n\0\r\nQUIT\n!\x11\0\f']), closed],
  [
    'http2-without-tls',
    inClear(API, ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n']),
    refusedInClear('505 version_refused'),
  ],
  ['http-0.9', inClear(API, ['GET /v1/x\r\n\r\n']), MALFORMED],
  ['ssl-2-hello', inClear(API, ['\x80.\x01\x03\x01\0\x15\0\0\0\x10']), closed],
  ['tls-alert-first', inClear(API, ['\x15\x03\x03\0\x02\x02\x28']), closed],
  ['tls-data-first', inClear(API, ['\x17\x03\x03\0\x05hello']), closed],
  ['websocket-frame', inClear(API, ['\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58']), closed],
  ['a-second-connect', inClear(API, [connectTo('evil.test:443')]), refusedInClear('405 method_refused')],
  [
    'trace',
    inClear(API, [get('api.test:443').replace('GET', 'TRACE')]),
    refusedInClear('405 method_refused'),
  ],
];

export const coverRows: readonly ConnectRow[] = [
  ...rowsOf('D-05', spoofedHost),
  ...rowsOf('D-17', covered),
  ...rowsOf('D-18', neither),
];
