// Which addresses and ports may be dialled, as tables. Nothing here opens a socket: an error in the code must not
// become a packet.
import { describe, expect, it } from 'vitest';
import { parseCidr } from '../../../src/base/address.ts';
import { isLocalhostName } from '../../../src/base/address-guard.ts';
import {
  type EgressRules,
  isPortOpen,
  mayInjectCleartext,
  parseCleartextDestination,
  refuseAddress,
} from '../../../src/proxy/upstream/address-guard.ts';
import { authorityOf } from '../request-head.ts';
import { closedEgress as closed } from '../../support/closed-egress.ts';

const cidrs = (...texts: string[]) => texts.flatMap((text) => parseCidr(text) ?? []);
const onLoopback: EgressRules = { ...closed, allowLoopback: true };
const allPrivate: EgressRules = { ...closed, allowLoopback: true, allowAllPrivate: true };

function verdict(address: string, egress: EgressRules, isProvenRuleHost = false): string {
  const purpose = { authority: authorityOf('x.test:443'), isProvenRuleHost, denies: () => false };
  return refuseAddress(address, purpose, egress)?.refused ?? 'dialled';
}

const never: readonly (readonly [string, string])[] = [
  ['169.254.169.254', 'AWS, GCP, Azure, OpenStack metadata'],
  ['fd00:ec2::254', 'AWS metadata over IPv6'],
  ['fd20:ce::254', 'GCP metadata over IPv6'],
  ['168.63.129.16', 'Azure WireServer'],
  ['100.100.100.200', 'Alibaba metadata'],
  ['169.254.170.2', 'ECS task credentials, link-local'],
  ['169.254.0.1', 'link-local'],
  ['169.254.255.255', 'link-local, last'],
  ['fe80::1', 'link-local'],
  ['febf::1', 'link-local, last block'],
  ['0.0.0.0', 'this host'],
  ['0.1.2.3', 'this network'],
  ['::', 'unspecified'],
  ['224.0.0.1', 'multicast'],
  ['239.255.255.250', 'multicast, SSDP'],
  ['ff02::1', 'multicast'],
  ['255.255.255.255', 'broadcast'],
  ['240.0.0.1', 'reserved'],
  ['::ffff:169.254.169.254', 'metadata, v4-mapped'],
  ['::ffff:a9fe:a9fe', 'metadata, v4-mapped in hexadecimal'],
  ['::ffff:0:169.254.169.254', 'metadata, SIIT'],
  ['64:ff9b::a9fe:a9fe', 'metadata, NAT64'],
  ['64:ff9b:1::a9fe:a9fe', 'metadata, local NAT64'],
  ['2002:a9fe:a9fe::', 'metadata, 6to4'],
  ['::169.254.169.254', 'metadata, v4-compatible'],
  ['2001:0:0:0:0:0:5601:5601', 'metadata, Teredo, inverted'],
  ['::ffff:0.0.0.0', 'unspecified, v4-mapped'],
  ['64:ff9b::e000:1', 'multicast, NAT64'],
];

const needsPrivate: readonly (readonly [string, string])[] = [
  ['10.0.0.1', '10.0.0.0/8'],
  ['10.255.255.255', '10.0.0.0/8'],
  ['172.16.0.1', '172.16.0.0/12'],
  ['172.31.255.255', '172.16.0.0/12'],
  ['192.168.0.1', '192.168.0.0/16'],
  ['100.64.0.1', '100.64.0.0/10'],
  ['100.127.255.254', '100.64.0.0/10'],
  ['fc00::1', 'fc00::/7'],
  ['fdff:ffff::1', 'fc00::/7'],
  ['fec0::1', 'fec0::/10'],
];

const embedded: readonly (readonly [string, string])[] = [
  ['::ffff:127.0.0.1', '::ffff:127.0.0.1'],
  ['::ffff:7f00:1', '::ffff:127.0.0.1'],
  ['::ffff:10.0.0.1', '::ffff:0:0/96'],
  ['::ffff:8.8.8.8', '::ffff:0:0/96'],
  ['64:ff9b::7f00:1', '64:ff9b::/96'],
  ['64:ff9b::808:808', '64:ff9b::/96'],
  ['2002:7f00:1::', '2002::/16'],
  ['2002:808:808::1', '2002::/16'],
  ['::127.0.0.1', '::127.0.0.1'],
];

const open: readonly string[] = [
  '8.8.8.8',
  '1.1.1.1',
  '172.15.255.255',
  '172.32.0.1',
  '100.63.255.255',
  '100.128.0.1',
  '192.167.255.255',
  '192.169.0.1',
  '169.253.255.255',
  '223.255.255.255',
  '2606:4700::1111',
  '2001:4860:4860::8888',
];

describe('an address that nothing allows', () => {
  const settings: readonly (readonly [string, EgressRules])[] = [
    ['by default', closed],
    ['with loopback', onLoopback],
    ['with all private addresses', allPrivate],
    ['with the whole internet listed', { ...allPrivate, allowCidrs: cidrs('0.0.0.0/0', '::/0') }],
  ];
  for (const [when, egress] of settings) {
    it.each(never)(`%s (%s) is denied ${when}`, (address) => {
      expect(verdict(address, egress, true)).toBe('address_denied');
    });
  }

  it('is one that is no canonical address at all', () => {
    for (const text of ['127.1', '0x7f.1', '2130706433', '017700000001', '127.0.0.1%lo', 'x.test', '']) {
      expect(verdict(text, allPrivate)).toBe('address_denied');
    }
  });

  it('is a listener of our own, whatever its class and whatever is allowed', () => {
    const seen: string[] = [];
    const egress: EgressRules = {
      ...allPrivate,
      isOwnListener: (address, port) => {
        seen.push(`${address.text} ${port}`);
        return true;
      },
    };
    for (const address of ['127.0.0.1', '8.8.8.8', '10.0.0.1', '::1'])
      expect(verdict(address, egress, true)).toBe('address_denied');
    expect(seen).toEqual(['127.0.0.1 443', '8.8.8.8 443', '10.0.0.1 443', '::1 443']);
  });
});

describe('a private address', () => {
  it.each(needsPrivate)('%s is refused by default, and the refusal names the setting', (address) => {
    const purpose = { authority: authorityOf('x.test:443'), isProvenRuleHost: false, denies: () => false };
    const refusal = refuseAddress(address, purpose, onLoopback);
    expect(refusal?.refused).toBe('address_private');
    expect(refusal?.hint).toContain('egress.allow_private');
  });

  it.each(needsPrivate)('%s is dialled where %s is listed', (address, range) => {
    expect(verdict(address, { ...closed, allowCidrs: cidrs(range) })).toBe('dialled');
  });

  it.each(needsPrivate)('%s is dialled with allow_private: all', (address) => {
    expect(verdict(address, allPrivate)).toBe('dialled');
  });

  it.each(needsPrivate)('%s is dialled for an exact rule host that proves its name by TLS', (address) => {
    expect(verdict(address, closed, true)).toBe('dialled');
    expect(verdict(address, { ...closed, privateByRule: 'never' }, true)).toBe('address_private');
  });

  it('is not opened by a range beside it', () => {
    expect(verdict('10.2.0.1', { ...closed, allowCidrs: cidrs('10.1.0.0/16') })).toBe('address_private');
  });
});

describe('a reserved address that real networks use', () => {
  const usable: readonly (readonly [address: string, range: string])[] = [
    ['198.18.0.1', '198.18.0.0/15'],
    ['198.19.255.255', '198.18.0.0/15'],
    ['192.0.2.1', '192.0.2.0/24'],
    ['198.51.100.1', '198.51.100.0/24'],
    ['203.0.113.7', '203.0.113.7'],
    ['240.0.0.1', '240.0.0.0/4'],
    ['255.255.255.254', '255.0.0.0/8'],
    ['2001:db8::1', '2001:db8::/32'],
    ['3fff::1', '3fff::/20'],
  ];
  it.each(usable)('%s is dialled where %s is listed', (address, range) => {
    expect(verdict(address, { ...closed, allowCidrs: cidrs(range) })).toBe('dialled');
  });

  it.each(usable)('%s is denied unless its range is named', (address) => {
    expect(verdict(address, allPrivate, true)).toBe('address_denied');
    const wide = { ...allPrivate, allowCidrs: cidrs('0.0.0.0/0', '::/0', '192.0.0.0/8', '2000::/3') };
    expect(verdict(address, wide, true)).toBe('address_denied');
  });

  it.each([
    '::ffff:198.18.0.1',
    '::ffff:255.255.255.255',
    '64:ff9b::f000:1',
    '64:ff9b:1::c612:1',
    '2002:c633:6401::1',
  ])('%s, which leads to one, is denied whatever is allowed', (address) => {
    const wide = {
      ...allPrivate,
      allowCidrs: cidrs('::/0', '198.18.0.0/15', '240.0.0.0/4', '198.51.100.0/24'),
    };
    expect(verdict(address, wide, true)).toBe('address_denied');
  });

  it('is not broadcast, nor one of a range that nobody uses', () => {
    const listed = {
      ...allPrivate,
      allowCidrs: cidrs('240.0.0.0/4', '192.0.0.0/24', '192.88.99.0/24', '2001::/23'),
    };
    for (const address of ['255.255.255.255', '192.0.0.1', '192.88.99.1', '2001:2::1'])
      expect(verdict(address, listed, true)).toBe('address_denied');
  });
});

describe('an IPv4 address inside an IPv6 address', () => {
  it.each(embedded)(
    '%s is refused by default, even where loopback is allowed and for rule hosts',
    (address) => {
      expect(verdict(address, onLoopback, true)).toBe('address_private');
    },
  );

  it.each(embedded)('%s is dialled where %s is listed', (address, range) => {
    expect(verdict(address, { ...closed, allowCidrs: cidrs(range) })).toBe('dialled');
  });

  it('is not opened by the range of the address inside', () => {
    expect(verdict('::ffff:10.0.0.1', { ...closed, allowCidrs: cidrs('10.0.0.0/8') })).toBe(
      'address_private',
    );
  });
});

describe('loopback', () => {
  const rows = ['127.0.0.1', '127.0.0.2', '127.255.255.254', '::1'];
  it.each(rows)('%s is refused where the proxy is reachable from elsewhere', (address) => {
    expect(verdict(address, closed, true)).toBe('address_private');
  });
  it.each(rows)('%s is dialled where loopback is allowed', (address) => {
    expect(verdict(address, onLoopback)).toBe('dialled');
  });
});

describe('a public address', () => {
  it.each(open)('%s is dialled', (address) => expect(verdict(address, closed)).toBe('dialled'));

  it('is refused by the deny_list, with another code than that of the address guard', () => {
    const purpose = {
      authority: authorityOf('x.test:443'),
      isProvenRuleHost: true,
      denies: ({ text }: { text: string }) => text === '8.8.8.8',
    };
    expect(refuseAddress('8.8.8.8', purpose, allPrivate)?.refused).toBe('access_denied');
    expect(refuseAddress('8.8.4.4', purpose, allPrivate)).toBeUndefined();
  });
});

describe('a port of a host that no rule names', () => {
  it.each([
    [80, false, true],
    [443, false, true],
    [22, false, false],
    [8443, false, false],
    [8443, true, true],
  ])('%i, in the allow_list: %s, is open: %s', (port, isListed, isOpen) => {
    expect(isPortOpen(port, isListed, closed)).toBe(isOpen);
  });
});

describe('a credential over http://', () => {
  const listed: EgressRules = {
    ...onLoopback,
    injectCleartext: [
      { to: 'mock.internal', port: 8080 },
      ...cidrs('10.1.0.0/16').map((to) => ({ to, port: 80 })),
    ],
  };
  const rows: readonly (readonly [string, string, EgressRules, boolean])[] = [
    ['a name', 'api.test:80', listed, false],
    ['localhost where loopback is allowed', 'localhost:8080', onLoopback, true],
    ['a name under localhost', 'a.b.localhost:1', onLoopback, true],
    ['localhost where loopback is not allowed', 'localhost:8080', closed, false],
    ['a loopback address', '127.0.0.9:80', onLoopback, true],
    ['IPv6 loopback', '[::1]:80', onLoopback, true],
    ['a mapped loopback address', '[::ffff:127.0.0.1]:80', onLoopback, false],
    ['a name that looks like localhost', 'localhost.example:80', onLoopback, false],
    ['a name that ends like localhost', 'notlocalhost:80', onLoopback, false],
    ['a listed name and port', 'mock.internal:8080', listed, true],
    ['a listed name on another port', 'mock.internal:80', listed, false],
    ['a name below a listed one', 'a.mock.internal:8080', listed, false],
    ['an address in a listed range', '10.1.2.3:80', listed, true],
    ['an address in a listed range on another port', '10.1.2.3:81', listed, false],
    ['an address beside a listed range', '10.2.2.3:80', listed, false],
    ['a private address that nobody listed', '10.9.9.9:80', allPrivate, false],
  ];
  it.each(rows)('to %s: %s', (_, authority, egress, isAllowed) => {
    expect(mayInjectCleartext(authorityOf(authority), egress)).toBe(isAllowed);
  });
});

describe('localhost by its spelling', () => {
  it.each([
    ['localhost', true],
    ['a.localhost', true],
    ['localhost.test', false],
    ['xlocalhost', false],
    ['local', false],
  ])('%s: %s', (host, isLocal) => expect(isLocalhostName(host)).toBe(isLocal));
});

describe('a destination of credentials in clear', () => {
  it.each([
    ['mock.internal:80', 'mock.internal', 80],
    ['Mock.Internal.:8080', 'mock.internal', 8080],
    ['10.0.0.0/8:80', parseCidr('10.0.0.0/8'), 80],
    ['10.1.2.3:1', parseCidr('10.1.2.3/32'), 1],
    ['[fd00::/8]:65535', parseCidr('fd00::/8'), 65_535],
    ['[::1]:80', parseCidr('::1/128'), 80],
  ])('%s is read', (text, to, port) => {
    expect(parseCleartextDestination(text)).toEqual({ to, port });
  });

  it.each([
    ['', 'nothing'],
    ['mock.internal', 'no port'],
    ['10.0.0.0/8', 'a range without a port'],
    ['10.0.0.0/8:', 'an empty port'],
    ['10.0.0.0/8:0', 'any port'],
    ['10.0.0.0/8:65536', 'a port that is none'],
    ['10.0.0.0/8:080', 'a port with a leading zero'],
    ['10.0.0.0/8:0x50', 'a port in hexadecimal'],
    ['10.0.0.0/8: 80', 'a port behind a space'],
    ['10.0.0.0/8:8e1', 'a port with an exponent'],
    ['10.0.0.0/8:80:80', 'two ports'],
    ['10.1.0.0/8:80', 'bits behind the prefix'],
    ['fd00::/8:80', 'a range of IPv6 without brackets'],
    ['2001:db8::7:443', 'an address that is one with its port or without'],
    ['[::1:80', 'a bracket that is never closed'],
    ['::1]:80', 'a bracket that is never opened'],
    ['[[::1]]:80', 'brackets in brackets'],
    ['[10.0.0.0/8]:80', 'a range of IPv4 in brackets'],
    ['*.internal:80', 'a wildcard'],
  ])('%s is not: %s', (text) => {
    expect(parseCleartextDestination(text)).toBeUndefined();
  });
});

describe('a refusal says why', () => {
  const isOwnListener = (): boolean => true;
  it.each([
    ['x', closed, 'unreadable address'],
    ['8.8.8.8', { ...closed, isOwnListener }, 'own listener'],
    ['10.0.0.1', closed, 'private'],
    ['169.254.169.254', closed, 'metadata'],
  ])('%s', (address, egress, cause) => {
    const purpose = { authority: authorityOf('x.test:443'), isProvenRuleHost: false, denies: () => false };
    expect(refuseAddress(address, purpose, egress)?.cause).toBe(cause);
  });

  it('also of the deny_list', () => {
    const purpose = { authority: authorityOf('x.test:443'), isProvenRuleHost: false, denies: () => true };
    expect(refuseAddress('8.8.8.8', purpose, closed)?.cause).toBe('deny_list address');
  });
});
