// The rules for addresses by themselves. test/proxy/upstream/address-guard.test.ts has the tables of addresses.
import { describe, expect, it } from 'vitest';
import { type AddressRules, type AddressUse, denyAddress } from '../../src/base/address-guard.ts';
import { parseCidr } from '../../src/base/address.ts';

const closed: AddressRules = {
  allowAllPrivate: false,
  allowLoopback: false,
  allowCidrs: [],
  isOwnListener: () => false,
};
const use: AddressUse = { port: 443, mayBePrivate: false, denies: () => false };
const allowing = (...texts: readonly string[]): AddressRules => ({
  ...closed,
  allowCidrs: texts.flatMap((text) => parseCidr(text) ?? []),
});

describe('an address', () => {
  it.each([
    ['192.0.32.8', closed, undefined],
    ['not an address', closed, 'address_denied: unreadable address'],
    ['127.0.0.1', closed, 'address_private: loopback'],
    ['127.0.0.1', { ...closed, allowLoopback: true }, undefined],
    ['10.0.0.1', closed, 'address_private: private'],
    ['10.0.0.1', allowing('10.0.0.0/8'), undefined],
    ['10.0.0.1', { ...closed, allowAllPrivate: true }, undefined],
    ['169.254.169.254', { ...allowing('0.0.0.0/0'), allowAllPrivate: true }, 'address_denied: metadata'],
    ['198.18.0.1', allowing('0.0.0.0/0'), 'address_denied: reserved'],
    ['198.18.0.1', allowing('198.18.0.0/15'), undefined],
    ['255.255.255.255', allowing('240.0.0.0/4'), 'address_denied: reserved'],
    ['64:ff9b::a00:1', closed, 'address_private: embedded_v4'],
  ])('%s', (text, rules, wanted) => {
    const denial = denyAddress(text, use, rules);
    expect(denial && `${denial.code}: ${denial.cause}`).toBe(wanted);
  });
});

it('a private address needs no entry where its peer proves a name, a metadata service does', () => {
  const proven = { ...use, mayBePrivate: true };
  expect(denyAddress('10.0.0.1', proven, closed)).toBeUndefined();
  expect(denyAddress('169.254.169.254', proven, closed)?.code).toBe('address_denied');
});

it('our own listeners come first, then the list of the tenant', () => {
  const own = { ...closed, isOwnListener: () => true };
  const denying = { ...use, denies: () => true };
  expect(denyAddress('192.0.32.8', denying, own)).toEqual({ code: 'address_denied', cause: 'own listener' });
  expect(denyAddress('192.0.32.8', denying, closed)).toEqual({
    code: 'access_denied',
    cause: 'deny_list address',
  });
});
