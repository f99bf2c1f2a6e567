// Destinations that a tunnel must not reach: own listeners (N-02, N-07), in numeric spellings (N-03) and by names, and ports
// that are not open (N-06). Rows with `at: loose` run with everything allowed that can be, so that one check decides.
import type { ConnectExpectation, ConnectRow, ConnectScript } from './connect-script.ts';
import {
  type Row,
  rowsOf,
  get,
  head,
  inside,
  refused,
  refusedInside,
  tunnelled,
  unreachable,
} from './expectations.ts';

const connect = (authority: string, more: Partial<ConnectScript> = {}): ConnectScript => ({
  ...more,
  send: [head(`CONNECT ${authority} HTTP/1.1`)],
});
const ask = (authority: string, more: Partial<ConnectScript> = {}): ConnectScript => ({
  ...more,
  send: [head(`GET http://${authority}/v1/proxy_config HTTP/1.1`, `Host: ${authority}`)],
});
const loose = { at: 'loose' } as const;

function own(lookedUp: readonly string[] = []): ConnectExpectation {
  return refused('403 address_denied', { cause: 'own listener', lookedUp });
}

/** Spellings of 127.0.0.1, with the name that is looked up for each. */
const loopbacks: readonly (readonly [name: string, host: string, lookedUp?: string])[] = [
  ['address', '127.0.0.1'],
  ['localhost', 'localhost'],
  ['localhost-with-a-dot', 'LocalHost.'],
  ['below-localhost', 'admin.localhost'],
  ['mapped', '[::ffff:127.0.0.1]'],
  ['mapped-in-hexadecimal', '[::ffff:7f00:1]'],
  ['translated', '[64:ff9b::127.0.0.1]'],
  ['6to4', '[2002:7f00:1::]'],
  ['compatible', '[::127.0.0.1]'],
  ['name', 'self.test', 'self.test'],
  ['name-of-the-mapped-address', 'mapped.test', 'mapped.test'],
  ['name-of-the-translated-address', 'translated.test', 'translated.test'],
  ['second-address-of-a-name', 'late.test', 'late.test'],
];

const adminRows: readonly Row[] = loopbacks.flatMap(([name, host, lookedUp]): Row[] => [
  [`connect-${name}`, connect(`${host}:{ADMIN}`, loose), own(lookedUp === undefined ? [] : [lookedUp])],
  [`plain-${name}`, ask(`${host}:{ADMIN}`, loose), own(lookedUp === undefined ? [] : [lookedUp])],
]);

const selfRows: readonly Row[] = loopbacks.flatMap(([name, host, lookedUp]): Row[] => [
  [`connect-${name}`, connect(`${host}:{PROXY}`, loose), own(lookedUp === undefined ? [] : [lookedUp])],
  [`other-sandbox-${name}`, connect(`${host}:{OTHER}`, loose), own(lookedUp === undefined ? [] : [lookedUp])],
]);

const unspecified = refused('403 address_denied', { cause: 'unspecified' });

const more: readonly Row[] = [
  ['strict-connect-proxy', connect('127.0.0.1:{PROXY}'), own()],
  ['strict-connect-other', connect('localhost:{OTHER}'), own()],
  ['strict-plain-proxy', ask('127.0.0.1:{PROXY}'), own()],
  ['unspecified-v4', connect('0.0.0.0:{PROXY}', loose), unspecified],
  ['unspecified-v6', connect('[::]:{PROXY}', loose), unspecified],
  ['this-network', connect('0.0.0.1:{PROXY}', loose), unspecified],
  ['nested-connect', connect('localhost:{PROXY}', { policy: 'no_proxy' }), own()],
];

/** Each is 127.0.0.1 or the metadata service for some resolver. */
const numbers: readonly string[] = [
  '127.1',
  '127.0.1',
  '127',
  '2130706433',
  '0x7f000001',
  '0x7f.1',
  '0X7F.0.0.1',
  '0x7f.0x0.0x0.0x1',
  '017700000001',
  '0177.0.0.1',
  '0177.1',
  '127.0.0.01',
  '127.0.0.001',
  '0127.0.0.1',
  '00000177.0.0.1',
  '127.0.0.0x1',
  '127.0.0.1.',
  '127.0.0.1.1',
  '127.0.0.256',
  '127.0.0.-1',
  '127.0.0.1e0',
  '1.0x',
  '0',
  '0x',
  '0x0',
  '00',
  '4294967296',
  '6425673729',
  '169.254.43518',
  '169.16689662',
  '2852039166',
  '0xa9fea9fe',
  '0251.0376.0251.0376',
  '0xa9.0xfe.0xa9.0xfe',
  '169.254.0251.0376',
  'localhost.127.1',
  'x.0x7f',
  'x.1',
];

/** Names that do not end in a number are ordinary names: only the resolved address decides. */
const isName = new Set(['127.0.0.-1', '127.0.0.1e0']);

const numericRows: readonly Row[] = numbers.flatMap((text): Row[] => {
  const isV4 = !isName.has(text);
  const expect = isV4
    ? refused('400 authority_invalid', { cause: 'ipv4_invalid' })
    : text.includes('-')
      ? refused('400 authority_invalid', { cause: 'label_invalid' })
      : unreachable('8.8.4.4:80', [text]);
  return [[`connect-${text}`, connect(`${text}:80`), expect]];
});

const numericInside: readonly Row[] = [
  ['plain-short', ask('127.1:80'), refused('400 authority_invalid')],
  ['plain-number', ask('2130706433:{ADMIN}', loose), refused('400 authority_invalid')],
  ['plain-octal', ask('0177.0.0.1:{ADMIN}', loose), refused('400 authority_invalid')],
  [
    'host-inside',
    inside('8.8.1.9:443', '8.8.1.9', [get('8.8.265')]),
    refusedInside('400 host_invalid', 'ipv4_invalid'),
  ],
  [
    'host-inside-as-number',
    inside('8.8.1.9:443', '8.8.1.9', [get('134742281')]),
    refusedInside('400 host_invalid', 'ipv4_invalid'),
  ],
  [
    'bound-address-in-octal',
    connect('010.010.1.011:443'),
    refused('400 authority_invalid', { cause: 'ipv4_invalid' }),
  ],
];

/** The proxy itself has no tunnel, whatever a rule or DNS says about its name. */
const reservedRows: readonly Row[] = [
  ['reserved', 'sallyport.internal:443'],
  ['reserved-in-capitals', 'SALLYPORT.Internal:443'],
  ['reserved-with-a-dot', 'sallyport.internal.:443'],
  ['reserved-on-port-80', 'sallyport.internal:80'],
  ['reserved-on-another-port', 'sallyport.internal:22'],
].map(([name = '', authority = '']): Row => [name, connect(authority, loose), refused('403 reserved_host')]);

const shut = (lookedUp: readonly string[] = []): ConnectExpectation =>
  refused('403 port_denied', { lookedUp });

const closedPorts: readonly Row[] = [
  ...[1, 21, 22, 23, 25, 53, 79, 81, 444, 2375, 3128, 3306, 5432, 6379, 8080, 8443, 9200, 11_211, 65_535].map(
    (port): Row => [`closed-${port}`, connect(`8.8.1.2:${port}`), shut()],
  ),
  ['closed-for-a-name', connect('other.test:22'), shut(['other.test'])],
  ['closed-for-ipv6', connect('[2606:4700::1112]:22'), shut()],
  ['closed-for-http', ask('other.test:6379'), shut(['other.test'])],
  ['closed-above-a-rule-on-another-port', connect('narrow.test:22'), shut(['narrow.test'])],
  ['closed-with-no-proxy', connect('api.test:22', { policy: 'no_proxy' }), shut(['api.test'])],
  ['closed-for-a-listed-host', connect('other.test:22', { policy: 'listed' }), shut(['other.test'])],
  ['closed-before-the-private-address', connect('intra.test:22', { policy: 'empty' }), shut(['intra.test'])],
  ['closed-before-metadata', connect('meta.test:22', { policy: 'empty' }), shut(['meta.test'])],
  ['denied-port-of-a-host', connect('other.test:8443', { policy: 'denied' }), refused('403 access_denied')],
  [
    'listed-port-of-a-host',
    inside('other.test:8443', 'other.test', [get('x')], { policy: 'listed' }),
    {
      ...tunnelled('8.8.1.2:8443', get('x'), { lookedUp: ['other.test'] }),
      certificateIssuer: 'origin',
      requestedNames: ['other.test'],
    },
  ],
  ['port-of-every-host-where-the-operator-says-so', connect('8.8.4.4:22', loose), unreachable('8.8.4.4:22')],
  ['loopback-has-every-port', connect('127.0.0.2:9'), unreachable('127.0.0.2:9')],
];

export const reachRows: readonly ConnectRow[] = [
  ...rowsOf('N-02', adminRows),
  ...rowsOf('N-02', [['strict-admin', connect('127.0.0.1:{ADMIN}'), own()]]),
  ...rowsOf('N-07', selfRows),
  ...rowsOf('N-07', more),
  ...rowsOf('N-07', reservedRows),
  ...rowsOf('N-03', numericRows),
  ...rowsOf('N-03', numericInside),
  ...rowsOf('N-06', closedPorts),
];
