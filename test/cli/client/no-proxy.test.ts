import { describe, expect, it } from 'vitest';
import { toNoProxy } from '../../../src/cli/client/no-proxy.ts';
import { parseProxyConfig } from '../../../src/policy/document/proxy-config.ts';
import type { ProxyConfig } from '../../../src/policy/document/proxy-config-schema.ts';

const headers = [{ name: 'X-Key', type: 'plaintext', value: 'k' }];

function config(document: unknown): ProxyConfig {
  const parsed = parseProxyConfig(document, { allowWildcards: ['*.localhost'] });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
  return parsed.value;
}

function ruleFor(...hosts: readonly string[]): { rules: readonly unknown[] } {
  return { rules: [{ match_hosts: hosts, headers }] };
}

type Row = readonly [what: string, document: unknown, inherited: string, entries: string];

describe('the entries', () => {
  const rows: readonly Row[] = [
    ['loopback, when nothing is configured', {}, '', 'localhost,127.0.0.1,::1'],
    [
      'after those of the caller, each once',
      {},
      'a.test, b.test ::1',
      'a.test,b.test,::1,localhost,127.0.0.1',
    ],
    ['without localhost where a rule names it', ruleFor('localhost'), '', '127.0.0.1,::1'],
    ['without localhost where a rule names a host below', ruleFor('api.localhost'), '', '127.0.0.1,::1'],
    ['without localhost where a wildcard does', ruleFor('*.a.localhost'), '', '127.0.0.1,::1'],
    ['without an address that a rule names', ruleFor('127.0.0.1:8080', '[::1]'), '', 'localhost'],
    [
      'with localhost beside a rule for a like-named host',
      ruleFor('notlocalhost.test'),
      '',
      'localhost,127.0.0.1,::1',
    ],
    [
      'without localhost where a callback names it',
      { callbacks: [{ match_hosts: ['x.localhost'], url: 'http://127.0.0.1:1/', ttl_seconds: 60 }] },
      '',
      '127.0.0.1,::1',
    ],
    [
      'with localhost where the rule is disabled',
      { rules: [{ match_hosts: ['api.localhost'], headers, enabled: false }] },
      '',
      'localhost,127.0.0.1,::1',
    ],
    [
      'with those of the policy, spelled as clients read them',
      { no_proxy: ['a.test', '*.b.test', '.c.test', '10.0.0.0/8', '[2001:db8::7]', '192.0.2.1'] },
      '',
      'localhost,127.0.0.1,::1,a.test,.b.test,.c.test,10.0.0.0/8,2001:db8::7,192.0.2.1',
    ],
    [
      'without an entry with a port: the proxy tells ports apart, many clients do not',
      { no_proxy: ['a.test:8443', '10.0.0.0/8:22'] },
      '',
      'localhost,127.0.0.1,::1',
    ],
    [
      'without an entry that clients would stretch over a host of a rule',
      { ...ruleFor('api.a.test'), no_proxy: ['a.test', 'b.test'] },
      '',
      'localhost,127.0.0.1,::1,b.test',
    ],
    [
      'without an exception from a wildcard: clients would widen it',
      { ...ruleFor('*.a.test'), no_proxy: ['x.a.test'] },
      '',
      'localhost,127.0.0.1,::1',
    ],
    [
      'without those of the policy under access_control, which a client would escape',
      { no_proxy: ['a.test'], access_control: { deny_list: ['x.a.test'] } },
      '',
      'localhost,127.0.0.1,::1',
    ],
  ];
  it.each(rows)('%s', (_, document, inherited, entries) => {
    expect(toNoProxy(config(document), [inherited]).entries.join()).toBe(entries);
  });

  it('of a proxy without rules are loopback and those of both spellings of the caller', () => {
    expect(toNoProxy(undefined, ['a.test', undefined, 'b.test,a.test'])).toEqual({
      entries: ['a.test', 'b.test', 'localhost', '127.0.0.1', '::1'],
      conflicts: [],
    });
  });
});

describe('an entry of the caller that bypasses a rule’s host stays and is reported', () => {
  const rows: readonly (readonly [entry: string, host: string, isReported: boolean])[] = [
    ['*', 'api.test', true],
    ['api.test', 'api.test', true],
    ['.test', 'api.test', true],
    ['*.a.test', 'x.a.test', true],
    ['x.a.test', '*.a.test', true],
    ['localhost', 'api.localhost', true],
    ['127.0.0.0/8', '127.0.0.1', true],
    ['api.test:443', 'api.test', true],
    ['api.test:443', 'api.test:8443', false],
    ['pi.test', 'api.test', false],
    ['*api.test', 'x.api.test', true],
    ['*PI.test', 'api.test', true],
    ['*pi.test', 'api.tests', false],
    ['*x.a.test:443', '*.a.test', true],
    ['*x.a.tests', '*.a.test', false],
    ['x.api.test', 'api.test', false],
    ['<local>', 'api.test', false],
    ['10.0.0.0/8', '127.0.0.1', false],
    ['10.0.0.0/8', 'api.test', false],
    // Clients accept more spellings of addresses than the proxy.
    ['10.1.2.3/8', '10.9.9.9', true],
    ['10.1.2.3/8', '11.9.9.9', false],
    ['10.0.0.0/255.0.0.0', '10.9.9.9', true],
    ['10.0.0.0/255.255.0.0', '10.9.9.9', false],
    ['10.0.0.0/8:443', '10.9.9.9', true],
    ['10.0.0.0/8:443', '10.9.9.9:8443', false],
    ['0.0.0.0/0', '10.9.9.9', true],
    ['10.', '10.9.9.9', true],
    ['10', '10.9.9.9', true],
    ['10.9', '10.9.9.9', true],
    ['10.9.', '10.99.9.9', false],
    ['.9.9', '10.1.9.9', true],
    ['9.9', '10.1.9.9', true],
    ['9.9', '10.1.19.9', false],
    ['10.*', '10.9.9.9', true],
    ['10.*.9', '10.9.9.9', true],
    ['10.*.8', '10.9.9.9', false],
    ['192.168.*:8443', '192.168.1.1:8443', true],
    ['192.168.*:8443', '192.168.1.1:443', false],
    ['fd00::1/8', '[fd12::7]', true],
    ['[fd00::]/8', '[fd12::7]', true],
    ['fd12:*', '[fd12::7]', true],
    ['fd13:*', '[fd12::7]', false],
    ['10', 'api.test', false],
    ['10.*', '*.test', false],
    ['.', '10.9.9.9', false],
  ];
  it.each(rows)('%s over a rule for %s: %s', (entry, host, isReported) => {
    const { entries, conflicts } = toNoProxy(config(ruleFor(host)), [entry]);
    expect(entries).toContain(entry);
    expect(conflicts).toEqual(isReported ? [{ entry, pattern: host }] : []);
  });
});
