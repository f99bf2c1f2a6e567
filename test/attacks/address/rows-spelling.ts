// N-03, N-04: one address in spellings that some readers interpret differently from the check.
import type { Expectation } from './address-script.ts';
import { type AddressRow, addressRow } from './address-script.ts';

type Seen = Expectation['seen'];
const always = (event: string): Seen => ({ default: [event], loopback: [event], everything: [event] });
const invalid = (error: string): Seen => always(`authority_invalid: ${error}`);

/** Spellings that inet_aton and getaddrinfo accept and an authority does not (WHATWG URL: an address or an error). */
const NUMERIC: readonly (readonly [name: string, authority: string, error: string])[] = [
  ['two-parts-of-metadata', '169.16689662:80', 'ipv4_invalid'],
  ['three-parts-of-metadata', '169.254.43518:80', 'ipv4_invalid'],
  ['decimal-metadata', '2852039166:80', 'ipv4_invalid'],
  ['hex-metadata', '0xa9fea9fe:80', 'ipv4_invalid'],
  ['hex-metadata-capitals', '0XA9FEA9FE:80', 'ipv4_invalid'],
  ['hex-parts-of-metadata', '0xa9.0xfe.0xa9.0xfe:80', 'ipv4_invalid'],
  ['octal-metadata', '025177524776:80', 'ipv4_invalid'],
  ['octal-parts-of-metadata', '0251.0376.0251.0376:80', 'ipv4_invalid'],
  ['octal-with-zeros', '00000251.0000376.000251.0376:80', 'ipv4_invalid'],
  ['mixed-bases', '0xa9.254.0251.254:80', 'ipv4_invalid'],
  ['one-zero-in-front', '169.254.169.0254:80', 'ipv4_invalid'],
  ['overflowing-octet', '425.510.425.510:80', 'ipv4_invalid'],
  ['overflowing-word', '7147006462:80', 'ipv4_invalid'],
  ['zero', '0:443', 'ipv4_invalid'],
  ['hex-zero', '0x0:443', 'ipv4_invalid'],
  ['empty-hex', '0x:443', 'ipv4_invalid'],
  ['root-dot', '169.254.169.254.:80', 'ipv4_invalid'],
  ['five-parts', '0.169.254.169.254:80', 'ipv4_invalid'],
  ['name-in-front', 'x.127.0.0.1:443', 'ipv4_invalid'],
  ['hex-last-label', 'x.0x7f:443', 'ipv4_invalid'],
  ['negative', '-1:443', 'label_invalid'],
  ['enclosed-digits', '\u2460\u2461\u2466.\u24ea.\u24ea.\u2460:443', 'character_invalid'],
  ['fullwidth-digits', '\uff11\uff12\uff17.0.0.1:443', 'character_invalid'],
  ['ideographic-dots', '127\u30020\u30020\u30021:443', 'character_invalid'],
  ['percent-encoded', '%31%32%37.0.0.1:443', 'character_invalid'],
  ['empty-label', '127..1:443', 'ipv4_invalid'],
  ['bracketed-quad', '[169.254.169.254]:80', 'ipv6_invalid'],
  ['bracketed-decimal', '[2852039166]:80', 'ipv6_invalid'],
  ['zone', '[fe80::1%25eth0]:443', 'character_invalid'],
  ['ipvfuture', '[v1.fe80::1]:443', 'ipv6_invalid'],
  ['octal-in-mapped', '[::ffff:0177.0.0.1]:443', 'ipv6_invalid'],
  ['five-hex-digits', '[::0ffff:7f00:1]:443', 'ipv6_invalid'],
  ['two-gaps', '[::ffff::7f00:1]:443', 'ipv6_invalid'],
];

/** A lookup may also return them: an address in any other than the canonical spelling is never dialled. */
const RESPONDED: readonly string[] = [
  '127.1',
  '0x7f000001',
  '2130706433',
  '0177.0.0.1',
  '127.0.0.1%lo',
  'fe80::1%1',
];

const numericRows: readonly AddressRow[] = [
  ...NUMERIC.map(([name, authority, error]) =>
    addressRow(`N-03 ${name}`, { by: 'tunnel', to: [authority] }, invalid(error)),
  ),
  ...RESPONDED.map((address) => {
    const seen = ['lookup odd.test', 'address_denied: unreadable address'];
    return addressRow(
      `N-03 from-a-lookup-${address}`,
      { by: 'tunnel', to: ['odd.test:443'], responses: { 'odd.test': [[address]] } },
      { default: seen, everything: seen },
    );
  }),
];

const loopbackV6 = 'address_private: embedded_v4';
/** By the embedded IPv4 address: the destination of an IPv6 form after a translator or the kernel unwraps it. */
const EMBEDDED: readonly (readonly [name: string, address: string, exposed: string, everything: string])[] = [
  ['mapped-loopback', '::ffff:7f00:1', loopbackV6, 'dial ::ffff:127.0.0.1:443'],
  ['mapped-private', '::ffff:a00:1', loopbackV6, 'dial ::ffff:10.0.0.1:443'],
  ['mapped-public', '::ffff:808:808', loopbackV6, 'dial ::ffff:8.8.8.8:443'],
  ['mapped-metadata', '::ffff:a9fe:a9fe', 'address_denied: metadata', 'address_denied: metadata'],
  ['mapped-wireserver', '::ffff:a83f:8110', 'address_denied: metadata', 'address_denied: metadata'],
  ['mapped-alibaba', '::ffff:6464:64c8', 'address_denied: metadata', 'address_denied: metadata'],
  ['mapped-link-local', '::ffff:a9fe:1', 'address_denied: link_local', 'address_denied: link_local'],
  ['mapped-multicast', '::ffff:e000:fb', 'address_denied: multicast', 'address_denied: multicast'],
  ['mapped-zero', '::ffff:0:0', 'address_denied: unspecified', 'address_denied: unspecified'],
  ['compatible-loopback', '::7f00:1', loopbackV6, 'dial ::7f00:1:443'],
  ['compatible-metadata', '::a9fe:a9fe', 'address_denied: metadata', 'address_denied: metadata'],
  ['translated-metadata', '::ffff:0:a9fe:a9fe', 'address_denied: metadata', 'address_denied: metadata'],
  ['nat64-loopback', '64:ff9b::7f00:1', loopbackV6, 'dial 64:ff9b::7f00:1:443'],
  ['nat64-metadata', '64:ff9b::a9fe:a9fe', 'address_denied: metadata', 'address_denied: metadata'],
  ['nat64-link-local', '64:ff9b::a9fe:aa02', 'address_denied: link_local', 'address_denied: link_local'],
  ['local-nat64-at-96', '64:ff9b:1::a9fe:a9fe', 'address_denied: metadata', 'address_denied: metadata'],
  ['local-nat64-at-48', '64:ff9b:1:a9fe:a9:fe00::', 'address_denied: metadata', 'address_denied: metadata'],
  ['local-nat64-at-56', '64:ff9b:1:a9:fe:a9fe::', 'address_denied: metadata', 'address_denied: metadata'],
  ['local-nat64-at-64', '64:ff9b:1:0:a9:fea9:fe00:0', 'address_denied: metadata', 'address_denied: metadata'],
  ['6to4-loopback', '2002:7f00:1::1', loopbackV6, 'dial 2002:7f00:1::1:443'],
  ['6to4-metadata', '2002:a9fe:a9fe:1::', 'address_denied: metadata', 'address_denied: metadata'],
  ['6to4-private', '2002:c0a8:101::c0a8:101', loopbackV6, 'dial 2002:c0a8:101::c0a8:101:443'],
  [
    'teredo-client-metadata',
    '2001:0:808:808:0:0:5601:5601',
    'address_denied: metadata',
    'address_denied: metadata',
  ],
  ['teredo-server-metadata', '2001:0:a9fe:a9fe::1', 'address_denied: metadata', 'address_denied: metadata'],
  ['teredo-client-loopback', '2001:0:808:808::80ff:fffe', loopbackV6, 'dial 2001:0:808:808::80ff:fffe:443'],
];

const embeddedRows: readonly AddressRow[] = EMBEDDED.flatMap(([name, address, exposed, everything]) => [
  addressRow(
    `N-04 ${name}`,
    { by: 'tunnel', to: [`[${address}]:443`] },
    { exposed: [exposed], loopback: [exposed], everything: [everything] },
  ),
]);

/** The tenant's own list also applies to IPv4-mapped addresses. */
const listRows: readonly AddressRow[] = [
  addressRow(
    'N-04 deny-list-of-the-inner-address',
    {
      by: 'tunnel',
      to: ['[::ffff:8.8.8.8]:443', '[64:ff9b::808:808]:443', '[2002:808:808::]:443'],
      document: { access_control: { deny_list: ['8.8.0.0/16'] } },
    },
    { everything: ['access_denied', 'access_denied', 'access_denied'] },
  ),
  addressRow(
    'N-04 deny-list-of-an-embedded-address-from-a-lookup',
    {
      by: 'tunnel',
      to: ['mapped.test:443'],
      responses: { 'mapped.test': [['::ffff:9.9.9.9']] },
      document: { access_control: { deny_list: ['9.9.9.9'] } },
    },
    { everything: ['lookup mapped.test', 'access_denied: deny_list address'] },
  ),
  addressRow(
    'N-04 mapped-range-listed-by-the-operator',
    { by: 'tunnel', to: ['[::ffff:10.9.9.9]:443', '[::ffff:169.254.169.254]:443'] },
    { listed: ['dial ::ffff:10.9.9.9:443', 'address_denied: metadata'] },
  ),
];

export const spellingRows: readonly AddressRow[] = [...numericRows, ...embeddedRows, ...listRows];
