// N-05, N-08, N-09: names whose addresses change, DNS responses as an attack, and lookups for exfiltration. A lookup is
// cached for 30 seconds; the clock advances only where a row sets it.
import { type AddressRow, addressRow } from './address-script.ts';

const PUBLIC = '8.8.8.8';
/** The driver accepts connections to this one; all others are refused. */
const OPEN = '8.8.4.4';
const headers = [{ name: 'X-Key', type: 'plaintext', value: 'one' }];
const rule = (host: string): unknown => ({ rules: [{ match_hosts: [host], headers }] });
const twice = (authority: string): readonly string[] => [authority, authority];

const rebindingRows: readonly AddressRow[] = [
  addressRow(
    'N-05 public-then-loopback',
    {
      by: 'tunnel',
      to: twice('r.test:443'),
      pauseMs: 31_000,
      responses: { 'r.test': [[PUBLIC], ['127.0.0.1']] },
    },
    { exposed: ['lookup r.test', 'dial 8.8.8.8:443', 'lookup r.test', 'address_private: loopback'] },
  ),
  addressRow(
    'N-05 public-then-metadata',
    {
      by: 'tunnel',
      to: twice('r.test:443'),
      pauseMs: 31_000,
      responses: { 'r.test': [[PUBLIC], ['169.254.169.254']] },
    },
    { everything: ['lookup r.test', 'dial 8.8.8.8:443', 'lookup r.test', 'address_denied: metadata'] },
  ),
  addressRow(
    'N-05 public-then-admin',
    {
      by: 'tunnel',
      to: twice('r.test:3129'),
      pauseMs: 31_000,
      responses: { 'r.test': [[PUBLIC], ['127.0.0.1']] },
    },
    { everything: ['lookup r.test', 'dial 8.8.8.8:3129', 'lookup r.test', 'address_denied: own listener'] },
  ),
  addressRow(
    'N-05 ttl-zero-is-kept-for-half-a-minute',
    {
      by: 'tunnel',
      to: twice('r.test:443'),
      pauseMs: 29_000,
      responses: { 'r.test': [[OPEN], ['127.0.0.1']] },
    },
    { exposed: ['lookup r.test', 'dial 8.8.4.4:443', 'dial 8.8.4.4:443'] },
  ),
  addressRow(
    'N-05 an-address-that-failed-is-looked-up-and-judged-again',
    {
      by: 'tunnel',
      to: twice('r.test:443'),
      responses: { 'r.test': [[PUBLIC], ['127.0.0.1']] },
    },
    { exposed: ['lookup r.test', 'dial 8.8.8.8:443', 'lookup r.test', 'address_private: loopback'] },
  ),
  addressRow(
    'N-05 a-refused-lookup-stays-refused-until-it-expires',
    {
      by: 'tunnel',
      to: ['r.test:443', 'r.test:443', 'r.test:443'],
      pauseMs: 16_000,
      responses: { 'r.test': [['10.0.0.1'], [PUBLIC]] },
    },
    {
      exposed: [
        'lookup r.test',
        'address_private: private',
        'address_private: private',
        'lookup r.test',
        'dial 8.8.8.8:443',
      ],
    },
  ),
  addressRow(
    'N-05 public-a-and-loopback-aaaa',
    { by: 'tunnel', to: ['r.test:443'], responses: { 'r.test': [[PUBLIC, '::1']] } },
    {
      exposed: ['lookup r.test', 'address_private: loopback'],
      listed: ['lookup r.test', 'address_private: loopback'],
    },
  ),
  addressRow(
    'N-05 public-a-and-unique-local-aaaa',
    { by: 'tunnel', to: ['r.test:443'], responses: { 'r.test': [[PUBLIC, 'fdab::1']] } },
    {
      exposed: ['lookup r.test', 'address_private: private'],
      listed: ['lookup r.test', 'dial 8.8.8.8:443', 'dial fdab::1:443'],
    },
  ),
  addressRow(
    'N-05 loopback-after-public',
    { by: 'tunnel', to: ['r.test:443'], responses: { 'r.test': [[PUBLIC, '127.0.0.1']] } },
    { exposed: ['lookup r.test', 'address_private: loopback'] },
  ),
  addressRow(
    'N-05 metadata-before-public',
    { by: 'tunnel', to: ['r.test:443'], responses: { 'r.test': [['169.254.169.254', PUBLIC]] } },
    { everything: ['lookup r.test', 'address_denied: metadata'] },
  ),
  addressRow(
    'N-05 an-exact-rule-may-be-private-over-tls-alone',
    { by: 'https', to: ['in.test:443'], document: rule('in.test'), responses: { 'in.test': [['10.0.0.9']] } },
    {
      exposed: ['lookup in.test', 'dial 10.0.0.9:443'],
      never: ['lookup in.test', 'address_private: private'],
    },
  ),
  addressRow(
    'N-05 an-exact-rule-in-clear-is-not-private',
    {
      by: 'http',
      to: ['in.test'],
      document: rule('in.test'),
      config: { inject_cleartext: ['in.test:80'] },
      responses: { 'in.test': [['10.0.0.9']] },
    },
    {
      exposed: ['lookup in.test', 'address_private: private'],
      listed: ['lookup in.test', 'dial 10.0.0.9:80'],
    },
  ),
  addressRow(
    'N-05 a-wildcard-rule-is-not-private',
    {
      by: 'https',
      to: ['a.in.test:443'],
      document: rule('*.in.test'),
      responses: { 'a.in.test': [['10.0.0.9']] },
    },
    { exposed: ['lookup a.in.test', 'address_private: private'] },
  ),
  addressRow(
    'N-05 an-exact-rule-is-not-loopback',
    {
      by: 'https',
      to: ['in.test:443'],
      document: rule('in.test'),
      responses: { 'in.test': [['127.0.0.1']] },
    },
    { exposed: ['lookup in.test', 'address_private: loopback'] },
  ),
  addressRow(
    'N-05 an-exact-rule-rebound-into-embedded',
    {
      by: 'https',
      to: ['in.test:443'],
      document: rule('in.test'),
      responses: { 'in.test': [['::ffff:10.0.0.9']] },
    },
    { exposed: ['lookup in.test', 'address_private: embedded_v4'] },
  ),
  addressRow(
    'N-05 a-callback-is-looked-up-for-each-call',
    {
      by: 'https',
      to: twice('c.test:443'),
      pauseMs: 31_000,
      document: { callbacks: [{ match_hosts: ['c.test'], url: 'https://cb.test/', ttl_seconds: 60 }] },
      responses: { 'cb.test': [['203.0.113.1'], ['169.254.169.254']] },
    },
    {
      everything: [
        'lookup cb.test',
        'callback_failed: refused: reserved',
        'lookup cb.test',
        'callback_failed: refused: metadata',
      ],
    },
  ),
  addressRow(
    'N-05 a-callback-may-be-private-unless-the-operator-says-no',
    {
      by: 'https',
      to: ['c.test:443'],
      document: { callbacks: [{ match_hosts: ['c.test'], url: 'https://cb.test/', ttl_seconds: 60 }] },
      responses: { 'cb.test': [['10.0.0.2']] },
    },
    {
      exposed: ['lookup cb.test', 'dial 10.0.0.2:443'],
      'strict-callbacks': ['lookup cb.test', 'callback_failed: refused: private'],
    },
  ),
  addressRow(
    'N-05 one-private-address-refuses-a-strict-callback',
    {
      by: 'https',
      to: ['c.test:443'],
      document: { callbacks: [{ match_hosts: ['c.test'], url: 'https://cb.test/', ttl_seconds: 60 }] },
      responses: { 'cb.test': [[PUBLIC, '192.168.1.1']] },
    },
    { 'strict-callbacks': ['lookup cb.test', 'callback_failed: refused: private'] },
  ),
];

const many = (count: number, last = 'none'): readonly string[] => [
  ...Array.from({ length: count }, (_, i) => `8.9.${i >> 8}.${i & 255}`),
  ...(last === 'none' ? [] : [last]),
];
const dials = (count: number): readonly string[] => many(count).map((address) => `dial ${address}:443`);
const longName = `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(56)}.test`;

const responseRows: readonly AddressRow[] = [
  addressRow(
    'N-08 three-hundred-addresses',
    { by: 'tunnel', to: ['m.test:443'], responses: { 'm.test': [many(300)] } },
    { exposed: ['lookup m.test', ...dials(16)] },
  ),
  addressRow(
    'N-08 the-sixteenth-is-judged',
    { by: 'tunnel', to: ['m.test:443'], responses: { 'm.test': [many(15, '169.254.169.254')] } },
    { everything: ['lookup m.test', 'address_denied: metadata'] },
  ),
  addressRow(
    'N-08 the-seventeenth-is-not-dialled',
    { by: 'tunnel', to: ['m.test:443'], responses: { 'm.test': [many(16, '169.254.169.254')] } },
    { everything: ['lookup m.test', ...dials(16)] },
  ),
  addressRow(
    'N-08 success-without-an-address',
    { by: 'tunnel', to: ['m.test:443'], responses: { 'm.test': [[]] } },
    { exposed: ['lookup m.test', 'dns_failed: dns'] },
  ),
  addressRow(
    'N-08 servfail',
    { by: 'tunnel', to: ['m.test:443'], responses: { 'm.test': ['SERVFAIL'] } },
    { exposed: ['lookup m.test', 'dns_failed: dns'] },
  ),
  addressRow(
    'N-08 a-failure-is-not-kept',
    { by: 'tunnel', to: twice('m.test:443'), responses: { 'm.test': ['SERVFAIL', [PUBLIC]] } },
    { exposed: ['lookup m.test', 'dns_failed: dns', 'lookup m.test', 'dial 8.8.8.8:443'] },
  ),
  addressRow(
    'N-08 silence',
    { by: 'tunnel', to: ['m.test:443'], responses: { 'm.test': ['silence'] } },
    { exposed: ['lookup m.test', 'upstream_timeout: dns'] },
  ),
  addressRow(
    'N-08 silence-is-joined-not-asked-again',
    { by: 'tunnel', to: twice('m.test:443'), responses: { 'm.test': ['silence'] } },
    { exposed: ['lookup m.test', 'upstream_timeout: dns', 'upstream_timeout: dns'] },
  ),
  addressRow(
    'N-08 silence-of-some-names-leaves-others',
    {
      by: 'tunnel',
      to: ['s1.test:443', 's2.test:443', 's3.test:443', 'm.test:443'],
      responses: { 's1.test': ['silence'], 's2.test': ['silence'], 's3.test': ['silence'] },
    },
    {
      exposed: [
        'lookup s1.test',
        'upstream_timeout: dns',
        'lookup s2.test',
        'upstream_timeout: dns',
        'lookup s3.test',
        'upstream_timeout: dns',
        'lookup m.test',
        'dial 192.0.43.7:443',
      ],
    },
  ),
  addressRow(
    'N-08 the-same-address-three-hundred-times',
    {
      by: 'tunnel',
      to: ['m.test:443'],
      responses: { 'm.test': [Array.from({ length: 300 }, () => '10.1.1.1')] },
    },
    { exposed: ['lookup m.test', 'address_private: private'] },
  ),
  addressRow(
    'N-08 an-alias-is-reported-as-its-address',
    { by: 'tunnel', to: ['alias.test:443'], responses: { 'alias.test': [['metadata.google.internal']] } },
    { everything: ['lookup alias.test', 'address_denied: unreadable address'] },
  ),
  addressRow(
    'N-08 a-name-of-253',
    { by: 'tunnel', to: [`${longName}:443`] },
    { exposed: [`lookup ${longName}`, 'dial 192.0.43.7:443'] },
  ),
  addressRow(
    'N-08 a-name-of-4096',
    { by: 'tunnel', to: [`${'a.'.repeat(2_046)}test:443`] },
    { exposed: ['authority_invalid: too_long'] },
  ),
  addressRow(
    'N-08 a-label-of-64',
    { by: 'tunnel', to: [`${'a'.repeat(64)}.test:443`] },
    { exposed: ['authority_invalid: label_invalid'] },
  ),
];

const SECRET = 'c2stbGl2ZS1jYW5hcnktMTIzNDU2.exfil.test';
const denyAll = { access_control: { allow_list: ['api.test'] } };
const silentRows: readonly AddressRow[] = [
  addressRow(
    'N-09 not-in-the-allow-list',
    { by: 'tunnel', to: [`${SECRET}:443`], document: denyAll },
    { default: ['access_denied'], everything: ['access_denied'] },
  ),
  addressRow(
    'N-09 not-in-the-allow-list-in-clear',
    { by: 'http', to: [SECRET], document: denyAll },
    { default: ['access_denied'] },
  ),
  addressRow(
    'N-09 in-the-deny-list-by-wildcard',
    { by: 'tunnel', to: [`${SECRET}:443`], document: { access_control: { deny_list: ['*.exfil.test'] } } },
    { default: ['access_denied'] },
  ),
  addressRow(
    'N-09 a-port-that-is-shut',
    { by: 'tunnel', to: [`${SECRET}:53`] },
    { exposed: ['port_denied'] },
  ),
  addressRow(
    'N-09 a-port-that-is-shut-in-clear',
    { by: 'http', to: [`${SECRET}:8080`] },
    { exposed: ['port_denied'], listed: ['port_denied'] },
  ),
  addressRow(
    'N-09 a-rule-host-in-clear',
    { by: 'http', to: [SECRET], document: rule('*.exfil.test') },
    { exposed: ['cleartext_refused'], default: ['cleartext_refused'] },
  ),
  addressRow(
    'N-09 a-label-that-is-none',
    {
      by: 'tunnel',
      to: ['-canary-.exfil.test:443', 'can ary.exfil.test:443', 'can\u0000ary.exfil.test:443'],
    },
    {
      default: [
        'authority_invalid: label_invalid',
        'authority_invalid: character_invalid',
        'authority_invalid: character_invalid',
      ],
    },
  ),
  addressRow(
    'N-09 a-callback-host-is-not-looked-up-itself',
    {
      by: 'https',
      to: ['canary.c.test:443'],
      document: {
        callbacks: [{ match_hosts: ['*.c.test'], url: 'http://169.254.169.254/', ttl_seconds: 60 }],
      },
    },
    { default: ['callback_failed: refused: metadata'] },
  ),
];

export const lookupRows: readonly AddressRow[] = [...rebindingRows, ...responseRows, ...silentRows];
