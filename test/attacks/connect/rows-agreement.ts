// The host of the CONNECT is the destination: SNI and Host must agree with it (D-01 to D-04); without SNI the CONNECT alone
// decides (D-19).
import type { ConnectExpectation, ConnectRow, ConnectScript } from './connect-script.ts';
import {
  type Row,
  rowsOf,
  head,
  get,
  withCredential,
  inside,
  greeting,
  refused,
  otherName,
  badName,
  refusedInside,
  arrives,
  injected,
  arrivesAt,
  tunnelled,
} from './expectations.ts';

const API = 'api.test:443';
const MISMATCH = '421 authority_mismatch';

/** In a tunnel to `api.test:443`, TLS under its name: the Host field, and the outcome of the request. */
function hosts(
  id: string,
  rows: readonly (readonly [name: string, host: string, response: string, cause?: string])[],
): readonly ConnectRow[] {
  return rowsOf(
    id,
    rows.map(([name, host, response, cause]) => [
      name,
      inside(API, 'api.test', [get(host)]),
      refusedInside(response, cause),
    ]),
  );
}

const hostDiffers = hosts('D-01', [
  ['another-host', 'evil.test', MISMATCH, 'Host'],
  ['another-bound-host', 'a.wild.test', MISMATCH, 'Host'],
  ['address-of-the-host', '8.8.1.1', MISMATCH, 'Host'],
  ['address-of-another', '8.8.1.3:443', MISMATCH, 'Host'],
  ['metadata', '169.254.169.254', MISMATCH, 'Host'],
  ['own-proxy-port', '127.0.0.1:{PROXY}', MISMATCH, 'Host'],
  ['admin-api', 'localhost:{ADMIN}', MISMATCH, 'Host'],
  ['name-below', 'x.api.test', MISMATCH, 'Host'],
  ['name-above', 'test', MISMATCH, 'Host'],
  ['name-that-begins-so', 'api.test.evil.test', MISMATCH, 'Host'],
  ['name-that-ends-so', 'evil-api.test', MISMATCH, 'Host'],
  ['another-port', 'api.test:8443', MISMATCH, 'Host'],
  ['port-of-http', 'api.test:80', MISMATCH, 'Host'],
  ['truncated-port', 'api.test:44', MISMATCH, 'Host'],
  ['tab-after-the-name', 'api.test\tevil.test', '400 host_invalid'],
]);

const hostDiffersLater: readonly Row[] = [
  [
    'second-request',
    inside(API, 'api.test', [get('api.test'), get('evil.test')]),
    {
      ...injected(),
      responses: ['200', MISMATCH],
      records: [{ outcome: 'injected' }, { outcome: 'refused', reason: 'authority_mismatch' }],
    },
  ],
  [
    'third-request-to-another-bound-host',
    inside(API, 'api.test', [get('api.test'), get('API.test:443'), get('b.wild.test')]),
    {
      ...injected(),
      responses: ['200', '200', MISMATCH],
      arrived: [{ at: 'api', bytes: withCredential(get('api.test')) + withCredential(get('API.test:443')) }],
      requestedNames: ['api.test', 'api.test'],
      records: [{ outcome: 'injected' }, { outcome: 'injected' }, { outcome: 'refused' }],
    },
  ],
  [
    'path-that-names-another-host',
    inside(API, 'api.test', [head('GET //evil.test/v1/x HTTP/1.1', 'Host: api.test')]),
    arrives('api.test', withCredential(head('GET //evil.test/v1/x HTTP/1.1', 'Host: api.test'))),
  ],
  [
    'host-field-of-the-connect-head-is-ignored',
    inside(API, 'api.test', [get('api.test')], {
      send: [head(`CONNECT ${API} HTTP/1.1`, 'Host: evil.test:443')],
    }),
    injected(),
  ],
  [
    'connect-head-to-another-with-the-host-of-a-bound-one',
    inside('evil.test:443', 'evil.test', [get('evil.test')], {
      send: [head('CONNECT evil.test:443 HTTP/1.1', `Host: ${API}`)],
    }),
    {
      ...tunnelled('8.8.1.3:443', get('evil.test'), { lookedUp: ['evil.test'] }),
      certificateIssuer: 'origin',
      requestedNames: ['evil.test'],
    },
  ],
  [
    'two-hosts-in-the-connect-head',
    inside(API, 'api.test', [get('evil.test')], {
      send: [head(`CONNECT ${API} HTTP/1.1`, 'Host: api.test:443', 'Host: evil.test:443')],
    }),
    refusedInside(MISMATCH),
  ],
];

/** The CONNECT names a host without a rule: bytes are relayed to that host, whatever names are inside. */
const connectDiffers: readonly Row[] = [
  [
    'claims-a-bound-host-in-a-blind-tunnel',
    inside('evil.test:443', 'evil.test', [get('api.test')]),
    {
      ...tunnelled('8.8.1.3:443', get('api.test'), { lookedUp: ['evil.test'] }),
      certificateIssuer: 'origin',
      requestedNames: ['evil.test'],
    },
  ],
  [
    'claims-a-bound-host-in-clear',
    { send: [head('CONNECT evil.test:80 HTTP/1.1')], then: { kind: 'clear', requests: [get('api.test')] } },
    tunnelled('8.8.1.3:80', get('api.test'), { lookedUp: ['evil.test'] }),
  ],
  [
    'denied-host-whatever-is-inside',
    inside('evil.test:443', 'api.test', [get('api.test')], { policy: 'denied' }),
    refused('403 access_denied'),
  ],
  [
    'denied-subdomain',
    inside('a.evil.test:443', 'api.test', [get('api.test')], { policy: 'denied' }),
    refused('403 access_denied'),
  ],
  [
    'unlisted-host',
    inside('evil.test:443', 'api.test', [get('api.test')], { policy: 'listed' }),
    refused('403 access_denied'),
  ],
  [
    'name-above-a-listed-wildcard',
    inside('sub.test:443', 'a.sub.test', [get('a.sub.test')], { policy: 'listed' }),
    refused('403 access_denied'),
  ],
  [
    'bound-host-claims-another',
    inside(API, 'api.test', [get('blocked.test')], { policy: 'listed' }),
    refusedInside(MISMATCH),
  ],
  ['bound-host-asks-for-a-denied-one', greeting(API, ['evil.test'], { policy: 'denied' }), otherName],
];

const serverNames = (
  rows: readonly (readonly [name: string, serverName: string, more?: Partial<ConnectScript>])[],
  expect: ConnectExpectation,
): readonly Row[] =>
  rows.map(([name, serverName, more]) => [name, greeting(API, [serverName], more ?? {}), expect]);

const sniDiffers: readonly Row[] = [
  ...serverNames(
    [
      ['another-host', 'evil.test'],
      ['another-bound-host', 'a.wild.test'],
      ['name-below', 'x.api.test'],
      ['name-above', 'test'],
      ['name-that-begins-so', 'api.test.evil.test'],
      ['name-that-ends-so', 'evil.test.api.test'],
      ['one-letter-more', 'aapi.test'],
      ['one-letter-less', 'pi.test'],
      ['underscore-for-the-dot', 'api_test'],
      ['localhost', 'localhost'],
      ['name-of-our-certificate', 'sallyport'],
    ],
    otherName,
  ),
  ...serverNames(
    [
      ['address', '8.8.1.1'],
      ['ipv6-address', '[2606:4700::1111]'],
      ['name-with-port', API],
      ['name-with-user', 'u@api.test'],
      ['url', 'https://api.test/'],
      ['wildcard', '*.test'],
      ['list', 'api.test,evil.test'],
      ['space-after', 'api.test '],
      ['space-before', ' api.test'],
      ['line-break', 'api.test\r\nHost: evil.test'],
      ['empty', ''],
    ],
    badName,
  ),
  ['two-names-the-right-one-first', greeting(API, ['api.test', 'evil.test']), badName],
  ['two-names-the-right-one-last', greeting(API, ['evil.test', 'api.test']), badName],
  ['address-tunnel-with-a-bound-name', greeting('8.8.1.9:443', ['api.test']), otherName],
  ['ipv6-tunnel-with-a-bound-name', greeting('[2606:4700::1111]:443', ['api.test']), otherName],
  ['handshake-of-a-real-client', greeting('a.wild.test:443', ['b.wild.test']), otherName],
];

/** All of these hosts have one address and one rule; each must be reached only by its own name. */
const fronting: readonly Row[] = [
  [
    'sibling-in-host',
    inside('a.wild.test:443', 'a.wild.test', [get('b.wild.test')]),
    refusedInside(MISMATCH),
  ],
  [
    'deeper-sibling-in-host',
    inside('a.wild.test:443', 'a.wild.test', [get('a.b.wild.test')]),
    refusedInside(MISMATCH),
  ],
  [
    'sibling-without-sni',
    inside('a.wild.test:443', 'a.wild.test', [get('b.wild.test')], { serverName: '' }),
    refusedInside(MISMATCH),
  ],
  [
    'other-rule-same-address',
    inside('a.wild.test:443', 'a.wild.test', [get('api.test')]),
    refusedInside(MISMATCH),
  ],
  [
    'address-tunnel-names-a-host-after-it',
    inside('8.8.1.9:443', '8.8.1.9', [get('api.test')]),
    refusedInside(MISMATCH),
  ],
  [
    'ipv6-tunnel-names-a-host-after-it',
    inside('[2606:4700::1111]:443', '2606:4700::1111', [get('api.test')]),
    refusedInside(MISMATCH),
  ],
  ['apex-in-host', inside('a.wild.test:443', 'a.wild.test', [get('wild.test')]), refusedInside(MISMATCH)],
  [
    'sibling-after-an-honest-request',
    inside('a.wild.test:443', 'a.wild.test', [get('a.wild.test'), get('b.wild.test')]),
    {
      ...arrives('a.wild.test', withCredential(get('a.wild.test'))),
      responses: ['200', MISMATCH],
      records: [{ outcome: 'injected' }, { outcome: 'refused', reason: 'authority_mismatch' }],
    },
  ],
];

const noServerName: readonly Row[] = [
  ['connect-alone-decides', inside(API, 'api.test', [get('api.test')], { serverName: '' }), injected()],
  [
    'host-of-another',
    inside(API, 'api.test', [get('evil.test')], { serverName: '' }),
    refusedInside(MISMATCH),
  ],
  [
    'wildcard-host',
    inside('a.b.wild.test:443', 'a.b.wild.test', [get('a.b.wild.test')], { serverName: '' }),
    arrives('a.b.wild.test', withCredential(get('a.b.wild.test'))),
  ],
  [
    'bound-address',
    inside('8.8.1.9:443', '8.8.1.9', [get('8.8.1.9')], { serverName: '' }),
    arrivesAt('four', withCredential(get('8.8.1.9')), '8.8.1.9:443'),
  ],
  [
    'no-host-either',
    inside(API, 'api.test', [head('GET /v1/x HTTP/1.1')], { serverName: '' }),
    refusedInside('400 host_invalid', 'missing'),
  ],
  [
    'blind-host',
    inside('evil.test:443', 'evil.test', [get('api.test')], { serverName: '' }),
    {
      ...tunnelled('8.8.1.3:443', get('api.test'), { lookedUp: ['evil.test'] }),
      certificateIssuer: 'origin',
    },
  ],
];

export const agreementRows: readonly ConnectRow[] = [
  ...hostDiffers,
  ...rowsOf('D-01', hostDiffersLater),
  ...rowsOf('D-02', connectDiffers),
  ...rowsOf('D-03', sniDiffers),
  ...rowsOf('D-04', fronting),
  ...rowsOf('D-19', noServerName),
];
