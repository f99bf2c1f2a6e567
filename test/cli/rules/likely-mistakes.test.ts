import { describe, expect, it } from 'vitest';
import { findLikelyMistakes } from '../../../src/cli/rules/likely-mistakes.ts';
import { parseProxyConfig } from '../../../src/policy/document/proxy-config.ts';

function mistakesOf(document: unknown): readonly string[] {
  const parsed = parseProxyConfig(document);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
  return findLikelyMistakes(parsed.value).map(({ loc, msg }) => `${loc.join('.')}: ${msg}`);
}

const rule = (hosts: readonly string[], type = 'plaintext', value = 'x') => ({
  rules: [{ match_hosts: hosts, headers: [{ name: 'X-Key', type, value }] }],
});

describe('a likely mistake', () => {
  it.each([
    [
      'a dollar sign before the name of a secret',
      rule(['api.test'], 'workspace_secret', 'Bearer ${API_KEY}'),
      'rules.0.headers.0.value: A dollar sign is sent before the secret: write {API_KEY}, not ${API_KEY}',
    ],
    [
      'braces in plaintext',
      rule(['api.test'], 'plaintext', 'Bearer {API_KEY}'),
      'rules.0.headers.0.value: plaintext is sent as it is written, braces included: use type workspace_secret if {API_KEY} names a secret',
    ],
    [
      'a shell variable in plaintext',
      rule(['api.test'], 'plaintext', 'Bearer ${API_KEY}'),
      'rules.0.headers.0.value: plaintext is sent as it is written, braces included: use type workspace_secret if ${API_KEY} names a secret',
    ],
    [
      'the address of a metadata service',
      rule(['169.254.169.254']),
      'rules.0.match_hosts.0: The proxy never connects to 169.254.169.254 (metadata), whatever is set: remove it',
    ],
    [
      'a metadata service as the endpoint of a callback',
      { callbacks: [{ match_hosts: ['api.test'], url: 'http://[fd00:ec2::254]:80/x', ttl_seconds: 60 }] },
      'callbacks.0.url: The proxy never connects to fd00:ec2::254 (metadata), whatever is set: every callback fails',
    ],
    [
      'a multicast address',
      rule(['api.test', '224.0.0.1']),
      'rules.0.match_hosts.1: The proxy never connects to 224.0.0.1 (multicast), whatever is set: remove it',
    ],
    [
      'an address of a reserved range that no setting opens',
      rule(['198.18.0.1', '192.0.0.1']),
      'rules.0.match_hosts.1: The proxy never connects to 192.0.0.1 (reserved), whatever is set: remove it',
    ],
    [
      'the address of a metadata service inside an IPv6 address',
      rule(['[64:ff9b::a9fe:a9fe]:8443']),
      'rules.0.match_hosts.0: The proxy never connects to 64:ff9b::a9fe:a9fe (metadata), whatever is set: remove it',
    ],
    [
      'a wildcard without its apex',
      rule(['*.example.test']),
      'rules.0.match_hosts.0: *.example.test does not match example.test itself: add example.test if it is meant too',
    ],
    [
      'a host that is twice in a list',
      rule(['api.test', 'API.test']),
      'rules.0.match_hosts.1: api.test is in this list already: remove one of the two',
    ],
  ])('is %s', (_, document, expected) => {
    expect(mistakesOf(document)).toEqual([expected]);
  });

  it('is braces in a header of a callback, which takes no workspace secret', () => {
    const callback = {
      match_hosts: ['api.test'],
      url: 'https://callback.test/',
      ttl_seconds: 60,
      request_headers: [{ name: 'X-Key', type: 'plaintext', value: '{API_KEY}' }],
    };
    expect(mistakesOf({ callbacks: [callback] })).toEqual([
      'callbacks.0.request_headers.0.value: plaintext is sent as it is written, braces included: {API_KEY} is not replaced. Use type opaque for a secret',
    ]);
  });
});

describe('no mistake', () => {
  it.each([
    ['is a template as it should be', rule(['api.test'], 'workspace_secret', 'Bearer {API_KEY}')],
    ['is the value of an opaque header', rule(['api.test'], 'opaque', 'Bearer ${API_KEY}')],
    ['is a wildcard with its apex', rule(['*.example.test', 'example.test'])],
    [
      'is a wildcard whose apex another one matches',
      rule(['*.a.example.test', '*.example.test', 'example.test']),
    ],
    ['is a private address', rule(['10.1.2.3'])],
    ['is braces around something else', rule(['api.test'], 'plaintext', '{"a": 1}')],
    ['is in a disabled rule', { rules: [{ ...rule(['*.example.test']).rules[0], enabled: false }] }],
  ])('%s', (_, document) => {
    expect(mistakesOf(document)).toEqual([]);
  });
});
