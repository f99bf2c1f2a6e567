// The addresses of this machine, including those of interfaces without a carrier.
import { describe, expect, it } from 'vitest';
import { type Cidr, cidrContains, parseAddress } from '../../src/base/address.ts';
import { isLocalAddress, parseFibTrie, parseInet6 } from '../../src/sidecar/local-addresses.ts';

const trie = `Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     |-- 172.17.0.0
        /16 link UNICAST
Local:
  +-- 0.0.0.0/0 3 0 5
     +-- 127.0.0.0/8 2 0 2
        +-- 127.0.0.0/31 1 0 0
           |-- 127.0.0.0
              /8 host LOCAL
           |-- 127.0.0.1
              /32 host LOCAL
        |-- 127.255.255.255
           /32 link BROADCAST
     |-- 172.17.0.1
        /32 host LOCAL
`;
const inet6 = `fe8000000000000000fc00fffe000001 04 40 20 80     eth0
00000000000000000000000000000001 01 80 10 80       lo
fd000000000000000000000000000002 05 40 00 82  docker0
`;

function holds(ranges: readonly Cidr[], text: string): boolean {
  const address = parseAddress(text);
  if (!address) throw new Error(`${text} is no address`);
  return ranges.some((range) => cidrContains(range, address));
}

describe('the tables of the kernel', () => {
  it.each([
    ['172.17.0.1', true],
    ['127.200.0.9', true],
    ['172.17.0.2', false],
    ['172.17.0.0', false],
    ['0.0.0.0', false],
    ['8.8.8.8', false],
  ])('say of %s that it is ours: %s', (text, isOurs) => {
    expect(holds(parseFibTrie(trie), text)).toBe(isOurs);
  });

  it.each([
    ['fd00::2', true],
    ['::1', true],
    ['fe80::fc:ff:fe00:1', true],
    ['fd00::3', false],
  ])('say of %s that it is ours: %s', (text, isOurs) => {
    expect(holds(parseInet6(inet6), text)).toBe(isOurs);
  });

  it.each(['', 'no table at all\n', '|-- x\n /99 host LOCAL\n'])(
    'that cannot be read hold nothing: %j',
    (text) => {
      expect([parseFibTrie(text), parseInet6(text)]).toEqual([[], []]);
    },
  );
});

it('loopback is ours, and an address for documentation is not', () => {
  const ours = ['127.0.0.1', '203.0.113.77'].map((text) => {
    const address = parseAddress(text);
    return address !== undefined && isLocalAddress(address);
  });
  expect(ours).toEqual([true, false]);
});
