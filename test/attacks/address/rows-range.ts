// N-01, N-05: the edges of every special range, as a literal and as the result of a lookup, under each setting. Modelled
// on smokescreen's TestClassifyAddr (github.com/stripe/smokescreen, MIT) and the IANA special-purpose registries; the
// addresses are our own choice.
import type { Expectation } from './address-script.ts';
import { type AddressRow, addressRow } from './address-script.ts';

type Seen = Expectation['seen'];

const never = (cause: string): Seen => {
  const seen = [`address_denied: ${cause}`];
  return { default: seen, exposed: seen, loopback: seen, listed: seen, everything: seen };
};

/** Metadata services and their link-local addresses, as literals. */
const METADATA: readonly (readonly [name: string, authority: string, cause: string])[] = [
  ['ec2-imds', '169.254.169.254:80', 'metadata'],
  ['ec2-imds-over-tls', '169.254.169.254:443', 'metadata'],
  ['ec2-imds-v6', '[fd00:ec2::254]:80', 'metadata'],
  ['ec2-dns-v6', '[fd00:ec2::253]:443', 'metadata'],
  ['ec2-time-v6', '[fd00:ec2::123]:443', 'metadata'],
  ['ec2-v6-range-end', '[fd00:ec2:ffff:ffff:ffff:ffff:ffff:ffff]:443', 'metadata'],
  ['gce-v6', '[fd20:ce::254]:80', 'metadata'],
  ['azure-wireserver', '168.63.129.16:80', 'metadata'],
  ['alibaba', '100.100.100.200:80', 'metadata'],
  ['ecs-task-credentials', '169.254.170.2:80', 'link_local'],
  ['eks-pod-identity', '169.254.170.23:80', 'link_local'],
  ['oracle-v1-neighbour', '169.254.169.253:443', 'link_local'],
  ['link-local-first', '169.254.0.0:443', 'link_local'],
  ['link-local-last', '169.254.255.255:443', 'link_local'],
  ['fe80-first', '[fe80::]:443', 'link_local'],
  ['fe80-last', '[febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:443', 'link_local'],
];

const metadataRows: readonly AddressRow[] = METADATA.flatMap(([name, authority, cause]) => [
  addressRow(`N-01 ${name}`, { by: 'tunnel', to: [authority] }, never(cause)),
]);

const ruleFor = (host: string): unknown => ({
  rules: [{ match_hosts: [host], headers: [{ name: 'X-Key', type: 'plaintext', value: 'one' }] }],
});

/** Everything that a tenant can write to allow a metadata service. */
const favouredRows: readonly AddressRow[] = [
  addressRow(
    'N-01 by-an-exact-rule',
    { by: 'https', to: ['169.254.169.254:443'], document: ruleFor('169.254.169.254') },
    never('metadata'),
  ),
  addressRow(
    'N-01 by-an-exact-rule-v6',
    { by: 'https', to: ['[fd00:ec2::254]:443'], document: ruleFor('[fd00:ec2::254]') },
    never('metadata'),
  ),
  addressRow(
    'N-01 by-no-proxy',
    { by: 'tunnel', to: ['169.254.169.254:80'], document: { no_proxy: ['169.254.0.0/16'] } },
    never('metadata'),
  ),
  addressRow(
    'N-01 by-allow-list',
    {
      by: 'tunnel',
      to: ['100.100.100.200:8080'],
      document: { access_control: { allow_list: ['100.100.100.200:8080', '100.64.0.0/10'] } },
    },
    never('metadata'),
  ),
  addressRow(
    'N-01 by-inject-cleartext',
    {
      by: 'http',
      to: ['169.254.169.254'],
      document: ruleFor('169.254.169.254'),
      config: { inject_cleartext: ['169.254.169.254:80'] },
    },
    never('metadata'),
  ),
  addressRow(
    'N-01 by-name-of-google',
    {
      by: 'http',
      to: ['metadata.google.internal'],
      responses: { 'metadata.google.internal': [['169.254.169.254']] },
    },
    {
      exposed: ['lookup metadata.google.internal', 'address_denied: metadata'],
      everything: ['lookup metadata.google.internal', 'address_denied: metadata'],
    },
  ),
  addressRow(
    'N-01 by-a-name-of-a-rule',
    {
      by: 'https',
      to: ['vault.test:443'],
      document: ruleFor('vault.test'),
      responses: { 'vault.test': [['fd20:ce::254']] },
    },
    {
      exposed: ['lookup vault.test', 'address_denied: metadata'],
      everything: ['lookup vault.test', 'address_denied: metadata'],
    },
  ),
];

const callback = (url: string): unknown => ({
  callbacks: [{ match_hosts: ['c.test'], url, ttl_seconds: 60 }],
});
const refusedCall = (cause: string): Seen => {
  const seen = [`callback_failed: refused: ${cause}`];
  return { default: seen, everything: seen, 'strict-callbacks': seen };
};
const callbackRows: readonly AddressRow[] = (
  [
    ['callback-to-imds', 'http://169.254.169.254/latest/meta-data/', 'metadata'],
    ['callback-to-imds-v6', 'http://[fd00:ec2::254]/', 'metadata'],
    ['callback-to-wireserver', 'https://168.63.129.16/machine', 'metadata'],
    ['callback-to-mapped-imds', 'http://[::ffff:169.254.169.254]/', 'metadata'],
    ['callback-to-link-local', 'http://[fe80::1]/', 'link_local'],
  ] as const
).map(([name, url, cause]) =>
  addressRow(
    `N-01 ${name}`,
    { by: 'https', to: ['c.test:443'], document: callback(url) },
    refusedCall(cause),
  ),
);

type Verdicts = readonly [exposed: string, listed: string, everything: string];
const open: Verdicts = ['dial', 'dial', 'dial'];
const denied = (cause: string): Verdicts => {
  const one = `address_denied: ${cause}`;
  return [one, one, one];
};
const shut = (cause: string, listed = `address_private: ${cause}`): Verdicts => [
  `address_private: ${cause}`,
  listed,
  'dial',
];

/** The edges of each range and their neighbours outside: exposed, with 10/8, fd00::/8 and 100.64/10 listed, and with all. */
const EDGES: readonly (readonly [address: string, verdicts: Verdicts])[] = [
  ['0.0.0.0', denied('unspecified')],
  ['0.255.255.255', denied('unspecified')],
  ['1.0.0.0', open],
  ['9.255.255.255', open],
  ['10.0.0.0', shut('private', 'dial')],
  ['10.255.255.255', shut('private', 'dial')],
  ['11.0.0.0', open],
  ['100.63.255.255', open],
  ['100.64.0.0', shut('cgnat', 'dial')],
  ['100.100.100.199', shut('cgnat', 'dial')],
  ['100.100.100.201', shut('cgnat', 'dial')],
  ['100.127.255.255', shut('cgnat', 'dial')],
  ['100.128.0.0', open],
  ['126.255.255.255', open],
  ['128.0.0.0', open],
  ['168.63.129.15', open],
  ['168.63.129.17', open],
  ['169.253.255.255', open],
  ['169.255.0.0', open],
  ['172.15.255.255', open],
  ['172.16.0.0', shut('private')],
  ['172.31.255.255', shut('private')],
  ['172.32.0.0', open],
  ['191.255.255.255', open],
  ['192.0.0.0', denied('reserved')],
  ['192.0.0.192', denied('reserved')],
  ['192.0.1.0', open],
  ['192.0.2.255', denied('reserved')],
  ['192.88.99.1', denied('reserved')],
  ['192.167.255.255', open],
  ['192.168.0.0', shut('private')],
  ['192.168.255.255', shut('private')],
  ['192.169.0.0', open],
  ['198.17.255.255', open],
  ['198.18.0.0', denied('reserved')],
  ['198.19.255.255', denied('reserved')],
  ['198.20.0.0', open],
  ['198.51.100.1', denied('reserved')],
  ['203.0.113.1', denied('reserved')],
  ['223.255.255.255', open],
  ['224.0.0.0', denied('multicast')],
  ['239.255.255.255', denied('multicast')],
  ['240.0.0.0', denied('reserved')],
  ['255.255.255.254', denied('reserved')],
  ['255.255.255.255', denied('reserved')],
  ['::', denied('unspecified')],
  ['100::1', denied('reserved')],
  ['200::1', denied('reserved')],
  ['1fff:ffff::1', denied('reserved')],
  ['2000::1', open],
  ['2001:2::1', denied('reserved')],
  ['2001:20::1', denied('reserved')],
  ['2001:1ff:ffff::1', denied('reserved')],
  ['2001:200::1', open],
  ['2001:db8::1', denied('reserved')],
  ['2003::1', open],
  ['3fff:fff::1', denied('reserved')],
  ['3fff:1000::1', open],
  ['4000::1', denied('reserved')],
  ['5f00::1', denied('reserved')],
  ['fbff:ffff::1', denied('reserved')],
  ['fc00::', shut('private')],
  ['fd00::1', shut('private', 'dial')],
  ['fd00:ec1:ffff::1', shut('private', 'dial')],
  ['fd00:ec3::1', shut('private', 'dial')],
  ['fdff:ffff::1', shut('private', 'dial')],
  ['fe00::1', denied('reserved')],
  ['fec0::1', shut('private')],
  ['feff:ffff::1', shut('private')],
  ['ff00::', denied('multicast')],
  ['ff02::1', denied('multicast')],
  ['ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', denied('multicast')],
];

const edgeRows: readonly AddressRow[] = EDGES.map(([address, verdicts]) => {
  const [exposed, listed, everything] = verdicts.map((verdict) => [
    'lookup edge.test',
    verdict === 'dial' ? `dial ${address}:443` : verdict,
  ]);
  return addressRow(
    `N-05 response-${address}`,
    { by: 'tunnel', to: ['edge.test:443'], responses: { 'edge.test': [[address]] } },
    { exposed: exposed ?? [], listed: listed ?? [], everything: everything ?? [] },
  );
});

export const rangeRows: readonly AddressRow[] = [
  ...metadataRows,
  ...favouredRows,
  ...callbackRows,
  ...edgeRows,
];
