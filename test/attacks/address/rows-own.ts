// N-02, N-07, N-10: loopback, own listeners (3128 of the proxy, 3129 of the admin API) and Unix sockets.
import type { Expectation } from './address-script.ts';
import { type AddressRow, addressRow } from './address-script.ts';

type Seen = Expectation['seen'];

const ownListener: Seen = {
  default: ['address_denied: own listener'],
  loopback: ['address_denied: own listener'],
  everything: ['address_denied: own listener'],
};
/** In a form that is not loopback itself, only a closed port refuses it. */
const ownInside: Seen = { ...ownListener, default: ['port_denied'], loopback: ['port_denied'] };
const headers = [{ name: 'X-Key', type: 'plaintext', value: 'one' }];
const rule = (host: string, more: object = {}): unknown => ({
  rules: [{ match_hosts: [host], headers, ...more }],
});
const named = (name: string, verdict: string): readonly string[] => [`lookup ${name}`, verdict];

const loopbackRows: readonly AddressRow[] = [
  addressRow(
    'N-02 loopback-is-shut-where-others-connect',
    { by: 'tunnel', to: ['127.0.0.1:9', '[::1]:9', '127.255.255.254:443'] },
    {
      exposed: ['port_denied', 'port_denied', 'address_private: loopback'],
      never: ['port_denied', 'port_denied', 'address_private: loopback'],
    },
  ),
  addressRow(
    'N-02 localhost-needs-no-lookup',
    { by: 'tunnel', to: ['localhost:443', 'a.localhost:443', 'LOCALHOST.:443'] },
    { exposed: ['address_private: loopback', 'address_private: loopback', 'address_private: loopback'] },
  ),
  addressRow(
    'N-02 localhost-with-a-forged-lookup',
    { by: 'tunnel', to: ['x.localhost:443'], responses: { 'x.localhost': [['8.8.8.8']] } },
    { exposed: ['address_private: loopback'] },
  ),
  addressRow(
    'N-02 a-rule-is-no-licence-for-loopback',
    { by: 'https', to: ['127.0.0.1:9'], document: rule('127.0.0.1') },
    { exposed: ['address_private: loopback'], listed: ['address_private: loopback'] },
  ),
  addressRow(
    'N-02 a-name-that-leads-to-loopback-gets-no-credential',
    {
      by: 'http',
      to: ['inner.test'],
      document: rule('inner.test'),
      responses: { 'inner.test': [['127.0.0.1']] },
    },
    { default: ['cleartext_refused'], loopback: ['cleartext_refused'], everything: ['cleartext_refused'] },
  ),
  addressRow(
    'N-02 a-name-that-ends-like-localhost',
    { by: 'http', to: ['notlocalhost', 'localhost.test'], document: rule('localhost.test') },
    { default: ['lookup notlocalhost', 'dial 192.0.43.7:80', 'cleartext_refused'] },
  ),
];

const ownRowsByLiteral: readonly AddressRow[] = (
  [
    ['admin-quad', 'tunnel', '127.0.0.1:3129', ownListener],
    ['admin-by-name', 'tunnel', 'localhost:3129', ownListener],
    ['admin-by-http', 'http', 'admin.localhost:3129', ownListener],
    ['admin-mapped', 'tunnel', '[::ffff:127.0.0.1]:3129', ownInside],
    ['admin-6to4', 'http', '[2002:7f00:1::]:3129', ownInside],
    ['admin-nat64', 'tunnel', '[64:ff9b::7f00:1]:3129', ownInside],
    ['admin-teredo', 'tunnel', '[2001:0:7f00:1::1]:3129', ownInside],
  ] as const
).map(([name, by, authority, seen]) => addressRow(`N-02 ${name}`, { by, to: [authority] }, seen));

const ownRowsByName: readonly AddressRow[] = [
  addressRow(
    'N-02 admin-by-a-rebound-name',
    { by: 'tunnel', to: ['a.test:3129'], responses: { 'a.test': [['127.0.0.1']] } },
    {
      default: named('a.test', 'address_denied: own listener'),
      everything: named('a.test', 'address_denied: own listener'),
    },
  ),
  addressRow(
    'N-02 admin-after-fifteen-public-responses',
    {
      by: 'tunnel',
      to: ['a.test:3129'],
      responses: { 'a.test': [[...Array.from({ length: 15 }, (_, i) => `8.8.4.${i}`), '127.0.0.1']] },
    },
    { everything: named('a.test', 'address_denied: own listener') },
  ),
  addressRow(
    'N-02 admin-named-by-a-rule',
    { by: 'https', to: ['127.0.0.1:3129'], document: rule('127.0.0.1:3129') },
    ownListener,
  ),
  addressRow(
    'N-02 admin-in-no-proxy-and-allow-list',
    {
      by: 'tunnel',
      to: ['127.0.0.1:3129'],
      document: { no_proxy: ['127.0.0.1:3129'], access_control: { allow_list: ['127.0.0.1:3129'] } },
    },
    ownListener,
  ),
];

/** Bound to 0.0.0.0, so that every address of this machine belongs to the proxy. */
const selfRows: readonly AddressRow[] = [
  ...(
    [
      ['proxy-by-any-loopback', 'tunnel', '127.45.67.89:3128', 'address_denied: own listener'],
      ['proxy-by-v6-loopback', 'tunnel', '[::1]:3128', 'address_denied: own listener'],
      ['proxy-by-localhost', 'http', 'localhost:3128', 'address_denied: own listener'],
      ['proxy-by-mapped', 'tunnel', '[::ffff:127.45.67.89]:3128', 'port_denied'],
      ['proxy-by-compatible', 'tunnel', '[::127.0.0.1]:3128', 'port_denied'],
    ] as const
  ).map(([name, by, authority, loopback]) =>
    addressRow(
      `N-07 ${name}`,
      { by, to: [authority] },
      { loopback: [loopback], everything: ['address_denied: own listener'] },
    ),
  ),
  addressRow(
    'N-07 proxy-by-the-unspecified-address',
    { by: 'tunnel', to: ['0.0.0.0:3128', '[::]:3128'] },
    { everything: ['address_denied: unspecified', 'address_denied: unspecified'] },
  ),
  addressRow(
    'N-07 proxy-as-a-callback',
    {
      by: 'https',
      to: ['c.test:443'],
      document: { callbacks: [{ match_hosts: ['c.test'], url: 'http://127.0.0.1:3128/', ttl_seconds: 60 }] },
    },
    {
      default: ['callback_failed: refused: own listener'],
      everything: ['callback_failed: refused: own listener'],
    },
  ),
  addressRow(
    'N-07 admin-as-a-callback-by-name',
    {
      by: 'https',
      to: ['c.test:443'],
      responses: { 'cb.test': [['127.0.0.1']] },
      document: {
        callbacks: [{ match_hosts: ['c.test'], url: 'http://cb.test:3129/v1/proxy_config', ttl_seconds: 60 }],
      },
    },
    {
      default: ['lookup cb.test', 'callback_failed: refused: own listener'],
      'strict-callbacks': ['lookup cb.test', 'callback_failed: refused: own listener'],
    },
  ),
];

const place = '422 rules.0.match_hosts.0 value_error';
const unrepresentable = (id: AddressRow['id'], document: unknown, seen: string): AddressRow =>
  addressRow(id, { by: 'tunnel', to: ['never.test:443'], document }, { everything: [seen] });
const callbackTo = (url: string): unknown => ({
  callbacks: [{ match_hosts: ['c.test'], url, ttl_seconds: 60 }],
});

const socketRows: readonly AddressRow[] = [
  unrepresentable('N-10 rule-host-unix-url', rule('unix:///var/run/docker.sock'), place),
  unrepresentable('N-10 rule-host-unix-path', rule('unix:/var/run/docker.sock'), place),
  unrepresentable('N-10 rule-host-absolute-path', rule('/var/run/docker.sock'), place),
  unrepresentable('N-10 rule-host-abstract-socket', rule('\u0000docker'), place),
  unrepresentable('N-10 rule-host-at-abstract', rule('@docker'), place),
  unrepresentable(
    'N-10 callback-http-unix',
    callbackTo('http+unix://%2Fvar%2Frun%2Fdocker.sock/v1'),
    '422 callbacks.0.url value_error',
  ),
  unrepresentable(
    'N-10 callback-unix',
    callbackTo('unix:/run/docker.sock'),
    '422 callbacks.0.url value_error',
  ),
  unrepresentable('N-10 callback-file', callbackTo('file:///etc/shadow'), '422 callbacks.0.url value_error'),
  unrepresentable(
    'N-10 callback-http-with-encoded-path-as-host',
    callbackTo('http://%2Frun%2Fdocker.sock/'),
    '422 callbacks.0.url value_error',
  ),
  unrepresentable(
    'N-10 callback-nginx-style',
    callbackTo('http://unix:/run/docker.sock:/'),
    '422 callbacks.0.url value_error',
  ),
  unrepresentable(
    'N-10 callback-socket-path-key',
    {
      callbacks: [
        { match_hosts: ['c.test'], url: 'http://c.test/', ttl_seconds: 60, socketPath: '/run/docker.sock' },
      ],
    },
    '422 callbacks.0.socketPath extra_forbidden',
  ),
  unrepresentable(
    'N-10 no-proxy-path',
    { no_proxy: ['unix:/run/docker.sock'] },
    '422 no_proxy.0 value_error',
  ),
  addressRow(
    'N-10 connect-to-a-path',
    {
      by: 'tunnel',
      to: ['unix:/run/docker.sock:1', '/run/docker.sock:1', '%2Frun%2Fdocker.sock:80', '@docker:80'],
    },
    {
      everything: [
        'authority_invalid: trailing_junk',
        'authority_invalid: trailing_junk',
        'authority_invalid: character_invalid',
        'authority_invalid: userinfo',
      ],
    },
  ),
];

export const ownRows: readonly AddressRow[] = [
  ...loopbackRows,
  ...ownRowsByLiteral,
  ...ownRowsByName,
  ...selfRows,
  ...socketRows,
];
