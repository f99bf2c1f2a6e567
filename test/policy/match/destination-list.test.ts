// The entries of no_proxy and access_control: their grammar, and what a list matches.
import { describe, expect, it } from 'vitest';
import { type Address, parseAddress } from '../../../src/base/address.ts';
import { type Authority, parseAuthority } from '../../../src/policy/authority/authority.ts';
import {
  compileDestinations,
  type DestinationList,
  parseDestination,
} from '../../../src/policy/match/destination-list.ts';

function listOf(...texts: readonly string[]): DestinationList {
  return compileDestinations(
    texts.map((text) => {
      const destination = parseDestination(text);
      if (typeof destination === 'string') throw new Error(destination);
      return destination;
    }),
  );
}

function authorityOf(text: string): Authority {
  const authority = parseAuthority(text, 443);
  if (typeof authority === 'string') throw new Error(authority);
  return authority;
}

function addressOf(text: string): Address {
  const address = parseAddress(text);
  if (address === undefined) throw new Error(text);
  return address;
}

describe('an entry', () => {
  const rows: readonly [entry: string, authority: string, matches: boolean][] = [
    ['good.test', 'good.test', true],
    ['good.test', 'GOOD.test.:8443', true],
    ['good.test', 'a.good.test', false],
    ['test', 'good.test', false],
    ['*.good.test', 'a.b.good.test', true],
    ['*.good.test', 'good.test', false],
    ['.good.test', 'a.good.test', true],
    ['.good.test', 'good.test', false],
    ['.good.test:8443', 'a.good.test:8443', true],
    ['.good.test:8443', 'a.good.test', false],
    ['good.test:8443', 'good.test:8443', true],
    ['good.test:8443', 'good.test', false],
    ['127.0.0.1', '127.0.0.1:9443', true],
    ['127.0.0.1:9443', '127.0.0.1', false],
    ['127.0.0.1', '[::ffff:127.0.0.1]', true],
    ['::1', '[::1]:9443', true],
    ['[::1]', '[0:0::1]', true],
    ['[::1]:9443', '[::1]:9443', true],
    ['[::1]:9443', '[::1]', false],
    ['10.0.0.0/8', '10.1.2.3', true],
    ['10.0.0.0/8', '11.1.2.3', false],
    ['10.0.0.0/8', '[::ffff:10.1.2.3]', true],
    ['10.0.0.0/8', '[64:ff9b::a01:203]', true],
    ['10.0.0.0/8', 'ten.test', false],
    ['10.0.0.0/8:8443', '10.1.2.3:8443', true],
    ['10.0.0.0/8:8443', '10.1.2.3', false],
    ['fd00::/8', '[fd12::1]', true],
    ['fd00::/8:8443', '[fd12::1]:8443', true],
    ['fd00::/8', '[fe80::1]', false],
    ['*.com', 'a.com', true],
  ];
  it.each(rows)('%s and %s: %s', (entry, authority, matches) => {
    const found = listOf('other.test', entry).matches(authorityOf(authority));
    expect(found.map(({ text }) => text)).toEqual(matches ? [entry] : []);
  });

  const refused = [
    ...[
      '',
      '*',
      '.',
      '..',
      '*.',
      'a b',
      'http://a.test',
      'http://10.0.0.0/8',
      'a.test/x',
      'u@a.test',
      '!a.test',
    ],
    ...[
      '10.0.0.1/8',
      '10.0.0.0/33',
      '10.0.0.0/8:0',
      '10.0.0.0/8:x',
      '10.0.0.0/8:',
      '10.0.0.0/8/8',
      'a.test/8',
    ],
    ...['127.1', '1.2.3.4:0443', '[fe80::1%25lo]', '::1%lo', '[10.0.0.0/8]', '*.10.0.0.1', 'bücher.test'],
  ];
  it.each(refused)('"%s" is rejected', (text) => expect(parseDestination(text)).toMatch(/\w/));
});

describe('a list', () => {
  it('names every entry that matches', () => {
    const list = listOf('*.good.test', 'a.good.test:443', 'a.good.test:8443');
    expect(list.matches(authorityOf('a.good.test')).map(({ text }) => text)).toEqual([
      '*.good.test',
      'a.good.test:443',
    ]);
  });
  it('knows the addresses in its ranges, whatever form they come in', () => {
    const list = listOf('10.0.0.0/8', '192.0.2.7', '198.51.100.0/24:22', 'name.test');
    expect(list.hasAddress(addressOf('10.9.9.9'), 443)).toBe(true);
    expect(list.hasAddress(addressOf('::ffff:10.9.9.9'), 443)).toBe(true);
    expect(list.hasAddress(addressOf('192.0.2.7'), 443)).toBe(true);
    expect(list.hasAddress(addressOf('192.0.2.8'), 443)).toBe(false);
    expect(list.hasAddress(addressOf('198.51.100.1'), 22)).toBe(true);
    expect(list.hasAddress(addressOf('198.51.100.1'), 443)).toBe(false);
  });
});
