// Addresses: strict reading, RFC 5952 writing, ranges, and the class of every special place on the map.
import { isIP } from 'node:net';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Address,
  cidrContains,
  classifyAddress,
  embeddedV4,
  parseAddress,
  parseCidr,
} from '../../src/base/address.ts';
import { runs } from '../support/run-size.ts';

function addressOf(text: string): Address {
  const address = parseAddress(text);
  if (address === undefined) throw new Error(`not an address: ${text}`);
  return address;
}

describe('an address is written as', () => {
  const rows: readonly [text: string, written: string][] = [
    ['192.0.2.7', '192.0.2.7'],
    ['0.0.0.0', '0.0.0.0'],
    ['2001:0DB8:0000:0000:0000:0000:0000:0007', '2001:db8::7'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1'],
    ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['::', '::'],
    ['::1', '::1'],
    ['1::', '1::'],
    ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0'],
    ['::ffff:192.0.2.7', '::ffff:192.0.2.7'],
    ['::ffff:c000:207', '::ffff:192.0.2.7'],
    ['64:ff9b::192.0.2.7', '64:ff9b::c000:207'],
  ];
  it.each(rows)('%s -> %s', (text, written) => {
    expect(addressOf(text).text).toBe(written);
    expect(addressOf(written)).toEqual(addressOf(text));
  });
});

describe('no address:', () => {
  const rows = [
    ...[
      '',
      ' ',
      '1.2.3',
      '1.2.3.4.5',
      '01.2.3.4',
      '1.2.3.256',
      '1.2.3.-4',
      '0x1.2.3.4',
      '1.2.3.4 ',
      '1.2.3.4.',
    ],
    ...[
      '127.1',
      '2130706433',
      '1..2.3',
      ':',
      ':::',
      '1::2::3',
      '1:2:3:4:5:6:7',
      '1:2:3:4:5:6:7:8:9',
      '12345::',
    ],
    ...[
      '::1%lo',
      '[::1]',
      '::g',
      '1:2:3:4:5:6:7:8::',
      '::1.2.3',
      '::1.2.3.4:5',
      '1.2.3.4::',
      '::01.2.3.4',
      ':1',
      '1:',
    ],
  ];
  it.each(rows)('"%s"', (text) => {
    expect(parseAddress(text)).toBeUndefined();
  });
});

describe('a range', () => {
  const rows: readonly [cidr: string, address: string, inside: boolean][] = [
    ['10.0.0.0/8', '10.255.0.1', true],
    ['10.0.0.0/8', '11.0.0.0', false],
    ['172.16.0.0/12', '172.31.255.255', true],
    ['172.16.0.0/12', '172.32.0.0', false],
    ['192.0.2.7', '192.0.2.7', true],
    ['192.0.2.7', '192.0.2.6', false],
    ['0.0.0.0/0', '203.0.113.9', true],
    ['0.0.0.0/0', '::1', false],
    ['192.0.2.6/31', '192.0.2.7', true],
    ['fc00::/7', 'fdff::1', true],
    ['fc00::/7', 'fe00::1', false],
    ['::/0', 'ffff::', true],
    ['10.0.0.0/8', '::ffff:10.0.0.1', false],
    ['::ffff:10.0.0.0/104', '::ffff:10.9.9.9', true],
  ];
  it.each(rows)('%s and %s: %s', (cidr, address, inside) => {
    const range = parseCidr(cidr);
    expect(range !== undefined && cidrContains(range, addressOf(address))).toBe(inside);
  });

  const refused = [
    '10.0.0.1/8',
    '10.0.0.0/33',
    '10.0.0.0/08',
    '10.0.0.0/',
    '10.0.0.0/-1',
    '10.0.0.0/8/8',
    '/8',
    'x/8',
  ];
  it.each([...refused, 'fd00::1/8', '::/129', '10.0.0.0/255.0.0.0', ''])('"%s" is invalid', (text) => {
    expect(parseCidr(text)).toBeUndefined();
  });
});

describe('the class of', () => {
  const rows: Readonly<Record<string, readonly string[]>> = {
    metadata: [
      ...['fd00:ec2::', 'fd00:ec2::253', 'fd00:ec2:ffff::1'],
      ...['169.254.169.254', 'fd00:ec2::254', 'fd20:ce::254', '168.63.129.16', '100.100.100.200'],
      ...['::ffff:169.254.169.254', '::169.254.169.254', '64:ff9b::169.254.169.254', '2002:a9fe:a9fe::1'],
      ...[
        '64:ff9b:1:a9fe:a9:fe00::',
        '64:ff9b:1:1:1:1:a9fe:a9fe',
        '64:ff9b:1:7:a9:fea9:fe00:0',
        '::ffff:0:a9fe:a9fe',
      ],
      ...['2001:0:a9fe:a9fe::1', '2001::5601:5601', '::ffff:100.100.100.200', '::ffff:a83f:8110'],
    ],
    loopback: ['127.0.0.1', '127.255.255.255', '::1'],
    private: [
      '10.0.0.1',
      '172.16.0.1',
      '172.31.255.255',
      '192.168.1.1',
      'fc00::1',
      'fdff::1',
      'fec0::1',
      'feff::1',
    ],
    cgnat: ['100.64.0.1', '100.127.255.255'],
    link_local: [
      '169.254.0.1',
      '169.254.169.253',
      'fe80::1',
      'febf::1',
      '::ffff:169.254.1.1',
      '2002:a9fe:1::',
    ],
    unspecified: ['0.0.0.0', '0.1.2.3', '::', '::ffff:0.0.0.0', '64:ff9b::', '::2', '64:ff9b:1::'],
    multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1', '::ffff:224.0.0.1'],
    reserved: [
      ...[
        '192.0.0.8',
        '192.0.2.1',
        '192.88.99.1',
        '198.18.0.1',
        '198.19.255.255',
        '198.51.100.1',
        '203.0.113.1',
      ],
      ...['240.0.0.1', '255.255.255.255', '2001:db8::1', '2001:2::1', '2001:10::1', '2001:20::1', '3fff::1'],
      ...['2001:1::1', '2001:3::1', '2001:4:112::1', '2001:30::1', '2001:1ff:ffff::1'],
      ...['100::1', '4000::1', '1::1', '5f00::1', 'fe00::1', '64:ff9a::1'],
    ],
    embedded_v4: [
      ...[
        '::ffff:127.0.0.1',
        '::ffff:7f00:1',
        '::127.0.0.1',
        '64:ff9b::7f00:1',
        '2002:7f00:1::',
        '::ffff:8.8.8.8',
      ],
      ...[
        '2001:0:4136:e378:8000:63bf:3fff:fdd2',
        '64:ff9b:1:1:1:1:a00:1',
        '64:ff9b:1::10.0.0.1',
        '2002:808:808::1',
        '::ffff:0:808:808',
      ],
    ],
    public: [
      '1.1.1.1',
      '8.8.8.8',
      '11.0.0.1',
      '100.63.255.255',
      '100.128.0.1',
      '126.1.1.1',
      '172.32.0.1',
      '192.167.1.1',
    ],
  };
  const flat = Object.entries(rows).flatMap(([name, texts]) => texts.map((text) => [text, name] as const));
  it.each([
    ...flat,
    ['2606:4700::1111', 'public'],
    ['2001:200::1', 'public'],
    ['2a00:1450:4001::1', 'public'],
  ] as const)('%s is %s', (text, name) => {
    expect(classifyAddress(addressOf(text))).toBe(name);
  });

  it('an inner address is never milder than the address itself', () => {
    const never = new Set(['metadata', 'link_local', 'unspecified', 'multicast']);
    fc.assert(
      fc.property(fc.ipV4(), (v4) => {
        const inner = classifyAddress(addressOf(v4));
        const outer = classifyAddress(addressOf(`::ffff:${v4}`));
        expect(outer).toBe(never.has(inner) ? inner : 'embedded_v4');
      }),
    );
  });
});

describe('an IPv4 address inside an IPv6 one', () => {
  it('is found in each place where a translator may look for it', () => {
    expect(embeddedV4(addressOf('64:ff9b:1:a00:1:0:c000:207')).map(({ text }) => text)).toContain(
      '192.0.2.7',
    );
    expect(embeddedV4(addressOf('2001:db8::1'))).toEqual([]);
    expect(embeddedV4(addressOf('192.0.2.7'))).toEqual([]);
  });
});

describe('whatever the text,', () => {
  const texts = fc.oneof(
    fc.ipV4(),
    fc.ipV4Extended(),
    fc.ipV6(),
    fc.string({ unit: fc.constantFrom(...'01f:.') }),
  );
  it('it is an address here exactly if node:net takes it for one', () => {
    fc.assert(
      fc.property(texts, (text) => {
        expect(parseAddress(text)?.family ?? 0).toBe(isIP(text));
      }),
      { numRuns: runs(5000) },
    );
  });
  it('the URL parser writes IPv6 as we do, but for mapped addresses', () => {
    fc.assert(
      fc.property(fc.ipV6(), (text) => {
        const ours = addressOf(text).text;
        if (!ours.startsWith('::ffff:')) expect(new URL(`http://[${text}]`).hostname).toBe(`[${ours}]`);
      }),
      { numRuns: runs(2000) },
    );
  });
});
