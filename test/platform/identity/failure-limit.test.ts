import { describe, expect, it } from 'vitest';
import {
  createFailureLimit,
  type FailureLimit,
  groupOf,
} from '../../../src/platform/identity/failure-limit.ts';

let nowMs = 0;

function limitOf(given: { perPeer?: number; total?: number; maxPeers?: number } = {}): FailureLimit {
  nowMs = 1000;
  const bounds = { perPeer: 3, total: 100, maxPeers: 1000, ...given };
  return createFailureLimit({ now: () => nowMs, windowMs: 60_000, ...bounds });
}

function countTimes(limit: FailureLimit, peer: string, times: number): readonly number[] {
  return Array.from({ length: times }, () => limit.count(peer));
}

describe('failures', () => {
  it('of one address are limited in a window, and above the limit the remaining time is returned', () => {
    const limit = limitOf();
    expect(countTimes(limit, '192.0.2.1', 3)).toEqual([0, 0, 0]);
    nowMs += 20_000;
    expect(limit.count('192.0.2.1')).toBe(40_000);
    nowMs += 40_000;
    expect(limit.count('192.0.2.1')).toBe(0);
  });

  it('above the limit of their address are known until the window ends, whatever the total', () => {
    const limit = limitOf({ total: 2 });
    const isExceeded = () => ['192.0.2.1', '::ffff:192.0.2.1', '192.0.2.2'].map(limit.isExceeded);
    countTimes(limit, '192.0.2.1', 3);
    countTimes(limit, '192.0.2.2', 3);
    expect(isExceeded()).toEqual([false, false, false]);
    limit.count('192.0.2.1');
    expect(isExceeded()).toEqual([true, true, false]);
    nowMs += 60_000;
    expect(isExceeded()).toEqual([false, false, false]);
  });

  it('of one address do not count for another', () => {
    const limit = limitOf();
    countTimes(limit, '192.0.2.1', 10);
    expect(limit.count('192.0.2.2')).toBe(0);
  });

  it('of one IPv6 network are counted together, whatever the address', () => {
    const limit = limitOf();
    const waits = Array.from({ length: 4 }, (_, at) => limit.count(`2001:db8:1:2::${at}`));
    expect(waits).toEqual([0, 0, 0, 60_000]);
    expect(limit.count('2001:db8:1:3::1')).toBe(0);
  });

  it('of all addresses together are limited too', () => {
    const limit = limitOf({ total: 5 });
    const waits = Array.from({ length: 6 }, (_, at) => limit.count(`192.0.2.${at}`));
    expect(waits).toEqual([0, 0, 0, 0, 0, 60_000]);
    nowMs += 60_000;
    expect(limit.count('192.0.2.9')).toBe(0);
  });

  it('are counted in a table of bounded size, and the total limit still applies', () => {
    const limit = limitOf({ maxPeers: 2, total: 50 });
    const waits = Array.from({ length: 60 }, (_, at) => limit.count(`192.0.2.${at % 6}`));
    expect(waits.slice(0, 50).every((wait) => wait === 0)).toBe(true);
    expect(waits.slice(50).every((wait) => wait > 0)).toBe(true);
  });
});

describe('the group of an address', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:192.0.2.1', '192.0.2.1'],
    ['0:0:0:0:0:ffff:192.0.2.1', '192.0.2.1'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['2001:0DB8:0:0:1:2:3:4', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['::', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['', ''],
  ])('%s is in %s', (address, group) => expect(groupOf(address)).toBe(group));
});
