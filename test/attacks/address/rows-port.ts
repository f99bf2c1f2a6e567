// N-06, N-11: which ports are open for which clients, and refusals that disclose nothing about the destination.
import { type AddressRow, addressRow } from './address-script.ts';

const headers = [{ name: 'X-Key', type: 'plaintext', value: 'one' }];
const rule = (host: string): unknown => ({ rules: [{ match_hosts: [host], headers }] });
const opened = (address: string): readonly string[] => ['lookup p.test', `dial ${address}`];

const portPolicyRows: readonly AddressRow[] = [
  addressRow(
    'N-06 well-known-services',
    {
      by: 'tunnel',
      to: ['p.test:22', 'p.test:25', 'p.test:53', 'p.test:110', 'p.test:3306', 'p.test:6379', 'p.test:11211'],
    },
    {
      exposed: Array.from({ length: 7 }, () => 'port_denied'),
      listed: Array.from({ length: 7 }, () => 'port_denied'),
    },
  ),
  addressRow(
    'N-06 neighbown-of-the-open-ones',
    { by: 'tunnel', to: ['p.test:79', 'p.test:81', 'p.test:442', 'p.test:444', 'p.test:1', 'p.test:65535'] },
    { exposed: Array.from({ length: 6 }, () => 'port_denied') },
  ),
  addressRow(
    'N-06 the-open-ones',
    // An address that accepts connections: one that refuses is looked up again.
    { by: 'tunnel', to: ['p.test:80', 'p.test:443'], responses: { 'p.test': [['8.8.4.4']] } },
    { exposed: ['lookup p.test', 'dial 8.8.4.4:80', 'dial 8.8.4.4:443'] },
  ),
  addressRow(
    'N-06 the-operators-list',
    { by: 'tunnel', to: ['p.test:8443', 'p.test:443'], config: { egress: { ports: [8443] } } },
    { exposed: [...opened('192.0.43.7:8443'), 'port_denied'] },
  ),
  addressRow(
    'N-06 a-port-of-the-allow-list',
    {
      by: 'tunnel',
      to: ['p.test:22', 'p.test:23'],
      document: { access_control: { allow_list: ['p.test:22', 'p.test'] } },
    },
    { exposed: [...opened('192.0.43.7:22'), 'port_denied'] },
  ),
  addressRow(
    'N-06 a-wildcard-port-of-the-allow-list',
    { by: 'tunnel', to: ['p.test:25'], document: { access_control: { allow_list: ['*.test:25'] } } },
    { exposed: opened('192.0.43.7:25') },
  ),
  addressRow(
    'N-06 a-host-of-the-allow-list-opens-no-port',
    { by: 'tunnel', to: ['p.test:25'], document: { access_control: { allow_list: ['p.test'] } } },
    { exposed: ['port_denied'] },
  ),
  addressRow(
    'N-06 no-proxy-opens-no-port',
    { by: 'tunnel', to: ['p.test:25'], document: { no_proxy: ['p.test:25', '*.test'] } },
    { exposed: ['port_denied'] },
  ),
  addressRow(
    'N-06 a-rule-host-has-any-port',
    { by: 'https', to: ['p.test:8443'], document: rule('p.test') },
    { exposed: opened('192.0.43.7:8443') },
  ),
  addressRow(
    'N-06 a-rule-of-one-port-opens-no-other',
    { by: 'tunnel', to: ['p.test:8444'], document: rule('p.test:8443') },
    { exposed: ['port_denied'] },
  ),
  addressRow(
    'N-06 a-disabled-rule-opens-nothing',
    {
      by: 'tunnel',
      to: ['p.test:8443'],
      document: { rules: [{ enabled: false, match_hosts: ['p.test'], headers }] },
    },
    { exposed: ['port_denied'] },
  ),
  addressRow(
    'N-06 loopback-has-any-port-where-allowed',
    { by: 'tunnel', to: ['127.0.0.1:9'] },
    { default: ['dial 127.0.0.1:9'], loopback: ['dial 127.0.0.1:9'] },
  ),
  addressRow(
    'N-06 a-name-with-one-response-outside-loopback',
    { by: 'tunnel', to: ['p.test:25'], responses: { 'p.test': [['127.0.0.1', '8.8.8.8']] } },
    { default: ['lookup p.test', 'port_denied'] },
  ),
  addressRow(
    'N-06 ports-that-are-none',
    {
      by: 'tunnel',
      to: ['p.test:0', 'p.test:65536', 'p.test:+443', 'p.test:0443', 'p.test:443 ', 'p.test:', 'p.test:4e2'],
    },
    {
      exposed: [
        'authority_invalid: port_invalid',
        'authority_invalid: port_invalid',
        'authority_invalid: character_invalid',
        'authority_invalid: port_invalid',
        'authority_invalid: character_invalid',
        'authority_invalid: port_invalid',
        'authority_invalid: port_invalid',
      ],
    },
  ),
];

const alike = { isAlike: true } as const;
const repeated = (event: string, count: number): readonly string[] =>
  Array.from({ length: count }, () => event);

/** Some of these ports would respond, some would refuse, some would drop packets: none is dialled. */
const scanRows: readonly AddressRow[] = [
  addressRow(
    'N-11 ports-of-one-private-host',
    { by: 'tunnel', to: ['10.0.0.5:80', '10.0.0.5:443'] },
    { exposed: repeated('address_private: private', 2) },
    alike,
  ),
  addressRow(
    'N-11 hosts-of-one-private-net',
    {
      by: 'tunnel',
      to: [
        '10.0.0.1:443',
        '10.0.0.2:443',
        '10.0.0.3:443',
        '192.168.0.1:443',
        '172.16.0.1:443',
        '100.64.0.1:443',
      ],
    },
    { exposed: [...repeated('address_private: private', 5), 'address_private: cgnat'] },
    alike,
  ),
  addressRow(
    'N-11 loopback-services-by-rule',
    { by: 'https', to: ['127.0.0.1:22', '127.0.0.1:631', '127.0.0.1:5432'], document: rule('127.0.0.1') },
    { exposed: repeated('address_private: loopback', 3) },
    alike,
  ),
  addressRow(
    'N-11 closed-ports-of-other-hosts',
    {
      by: 'tunnel',
      to: ['a.test:22', 'b.test:22', '8.8.8.8:22', '10.0.0.1:22', '169.254.169.254:22', '127.0.0.1:22'],
    },
    { exposed: repeated('port_denied', 6) },
    alike,
  ),
  addressRow(
    'N-11 names-that-exist-inside',
    {
      by: 'tunnel',
      to: ['db.corp.test:443', 'git.corp.test:443'],
      responses: { 'db.corp.test': [['10.0.0.7']], 'git.corp.test': [['fd00::7']] },
    },
    {
      exposed: [
        'lookup db.corp.test',
        'address_private: private',
        'lookup git.corp.test',
        'address_private: private',
      ],
    },
    alike,
  ),
  addressRow(
    'N-11 names-after-the-tenants-list',
    {
      by: 'tunnel',
      to: ['db.corp.test:443', 'no.corp.test:443', '10.0.0.7:443'],
      document: { access_control: { allow_list: ['api.test'] } },
    },
    { exposed: repeated('access_denied', 3) },
    alike,
  ),
  addressRow(
    'N-11 metadata-and-its-neighbours',
    {
      by: 'tunnel',
      to: ['169.254.169.254:80', '169.254.169.253:80', '224.0.0.1:80', '240.0.0.1:80', '0.0.0.0:80'],
    },
    {
      everything: [
        'address_denied: metadata',
        'address_denied: link_local',
        'address_denied: multicast',
        'address_denied: reserved',
        'address_denied: unspecified',
      ],
    },
    alike,
  ),
  addressRow(
    'N-11 own-and-other-hosts-of-the-same-class',
    { by: 'tunnel', to: ['127.0.0.1:3128', '127.0.0.1:3129', '169.254.0.9:443'] },
    {
      everything: [
        'address_denied: own listener',
        'address_denied: own listener',
        'address_denied: link_local',
      ],
    },
    alike,
  ),
  addressRow(
    'N-11 callbacks-to-many-places',
    {
      by: 'https',
      to: ['a.c.test:443', 'b.d.test:443', 'c.e.test:443'],
      document: {
        callbacks: [
          ['*.c.test', 'http://169.254.169.254/'],
          ['*.d.test', 'http://127.0.0.1:3129/'],
          ['*.e.test', 'http://224.0.0.1/'],
        ].map(([host, url]) => ({ match_hosts: [host], url, ttl_seconds: 60 })),
      },
    },
    {
      default: [
        'callback_failed: refused: metadata',
        'callback_failed: refused: own listener',
        'callback_failed: refused: multicast',
      ],
    },
    alike,
  ),
];

export const portRows: readonly AddressRow[] = [...portPolicyRows, ...scanRows];
