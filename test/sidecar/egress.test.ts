// What the open listeners mean for what may be dialled: ours never, and loopback only while all of them are on it.
import { networkInterfaces } from 'node:os';
import { describe, expect, it } from 'vitest';
import { parseAddress } from '../../src/base/address.ts';
import type { EgressRules } from '../../src/proxy/upstream/address-guard.ts';
import { parseConfig } from '../../src/sidecar/config.ts';
import { OwnListeners, callbackGuard, egressRules } from '../../src/sidecar/egress.ts';

function rulesFor(document: unknown, own: OwnListeners): EgressRules {
  const parsed = parseConfig(document, {});
  if (!parsed.ok) throw new Error(parsed.issues.map(({ msg }) => msg).join());
  return egressRules(parsed.value, own);
}

function listeners(...addresses: readonly string[]): OwnListeners {
  const own = new OwnListeners();
  for (const [at, address] of addresses.entries()) own.add({ address, port: 4000 + at });
  return own;
}

function isOwn(rules: EgressRules, text: string, port: number): boolean {
  const address = parseAddress(text);
  if (!address) throw new Error(`${text} is no address`);
  return rules.isOwnListener(address, port);
}

describe('loopback may be dialled', () => {
  it.each([
    ['while every listener is on loopback', {}, ['127.0.0.1', '::1', '127.0.0.2'], true],
    ['not while one sandbox’s is reached by others', {}, ['127.0.0.1', '10.0.0.1'], false],
    ['not while one is on every interface', {}, ['127.0.0.1', '::'], false],
    ['not where the main listener is to be reached by others', { listen: ':0', auth: 'none' }, [], false],
    [
      'wherever the operator says so',
      { listen: ':0', auth: 'none', egress: { allow_private: ['loopback'] } },
      ['0.0.0.0'],
      true,
    ],
  ])('%s', (_, document, addresses, isAllowed) => {
    expect(rulesFor(document, listeners(...addresses)).allowLoopback).toBe(isAllowed);
  });

  it('again once the listener that others reach is gone', () => {
    const own = listeners('127.0.0.1');
    const rules = rulesFor({}, own);
    const exposed = { address: '0.0.0.0', port: 5000 };
    own.add(exposed);
    expect(rules.allowLoopback).toBe(false);
    own.delete(exposed);
    expect(rules.allowLoopback).toBe(true);
  });
});

describe('a listener of ours', () => {
  const interfaces = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
  const elsewhere = interfaces.find(({ internal, family }) => !internal && family === 'IPv4')?.address;

  it.each([
    ['the same address and port', '127.0.0.1', '127.0.0.1', 4000, true],
    ['another port', '127.0.0.1', '127.0.0.1', 4001, false],
    ['another address', '127.0.0.1', '127.0.0.2', 4000, false],
    ['the same address inside IPv6', '127.0.0.1', '::ffff:127.0.0.1', 4000, true],
    ['the same address behind NAT64', '127.0.0.1', '64:ff9b::7f00:1', 4000, true],
    ['any loopback address of a wildcard', '0.0.0.0', '127.9.9.9', 4000, true],
    ['the loopback of IPv6 for its wildcard', '::', '::1', 4000, true],
    ['an address of nobody here for a wildcard', '0.0.0.0', '192.0.2.1', 4000, false],
  ])('%s: bound to %s, dialled %s:%i: %s', (_, bound, dialled, port, expected) => {
    expect(isOwn(rulesFor({}, listeners(bound)), dialled, port)).toBe(expected);
  });

  it.runIf(elsewhere !== undefined)('on a wildcard is at each address of this machine', () => {
    expect(isOwn(rulesFor({}, listeners('0.0.0.0')), String(elsewhere), 4000)).toBe(true);
  });

  it('is known from the moment it opens until it is gone, the admin API’s too', () => {
    const own = listeners();
    const rules = rulesFor({}, own);
    expect(isOwn(rules, '127.0.0.1', 3129)).toBe(false);
    own.admin = { address: '127.0.0.1', port: 3129 };
    expect(isOwn(rules, '127.0.0.1', 3129)).toBe(true);
    const proxy = { address: '127.0.0.1', port: 5000 };
    own.add(proxy);
    expect(isOwn(rules, '127.0.0.1', 5000)).toBe(true);
    own.delete(proxy);
    expect(isOwn(rules, '127.0.0.1', 5000)).toBe(false);
  });
});

describe('a callback', () => {
  const responses: Readonly<Record<string, string>> = { 'own.test': '127.0.0.1', 'far.test': '10.1.1.1' };
  async function vet(document: unknown, host: string, port: number): Promise<string> {
    const parsed = parseConfig(document, {});
    if (!parsed.ok) throw new Error(parsed.issues.map(({ msg }) => msg).join());
    const own = listeners('127.0.0.1');
    const resolver = {
      resolve: async (name: string) => {
        const address = responses[name];
        return address === undefined ? ('dns_failed' as const) : [{ address, family: 4 as const }];
      },
      forget: () => {},
    };
    const vetted = await callbackGuard(parsed.value, resolver, egressRules(parsed.value, own))(host, port);
    return 'refused' in vetted ? `refused: ${vetted.refused}` : (vetted.addresses[0]?.address ?? '');
  }

  it.each([
    ['a service beside us', {}, 'own.test', 80, '127.0.0.1'],
    ['a private service', {}, 'far.test', 80, '10.1.1.1'],
    ['our own proxy port', {}, 'own.test', 4000, 'refused: own listener'],
    ['our own proxy port as an address', {}, '127.0.0.1', 4000, 'refused: own listener'],
    ['a name that is not found', {}, 'none.test', 80, 'refused: dns_failed'],
  ])('may ask %s or not', async (_, document, host, port, expected) => {
    expect(await vet(document, host, port)).toBe(expected);
  });

  it.each([
    ['own.test', 80],
    ['far.test', 80],
    ['own.test', 4000],
    ['169.254.169.254', 80],
  ])('that must stay outside does not ask %s:%i', async (host, port) => {
    expect(await vet({ callback: { allow_private: false } }, host, port)).toMatch(/^refused: /);
  });

  it.each(['169.254.169.254', 'fe80::1', '0.0.0.0', '::', '224.0.0.1', '168.63.129.16'])(
    'never asks %s',
    async (host) => {
      expect(await vet({ egress: { allow_private: ['all'] } }, host, 80)).toMatch(/^refused: /);
    },
  );
});
