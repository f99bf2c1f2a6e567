import { describe, expect, it } from 'vitest';
import { explain, parseAskedUrl } from '../../src/sidecar/explanation.ts';
import { Secret } from '../../src/base/secret.ts';
import { compileProxyConfig } from '../../src/policy/compile.ts';
import { parseProxyConfig } from '../../src/policy/document/proxy-config.ts';
import { closedEgress } from '../support/closed-egress.ts';

const headers = [{ name: 'Authorization', type: 'workspace_secret', value: 'Bearer {KEY}' }];
const document = {
  rules: [
    { name: 'models', match_hosts: ['api.test'], match_paths: ['/v1/*'], headers },
    { name: 'inside', match_hosts: ['10.1.2.3', '*.wild.test'], headers, scrub: 'body' },
  ],
  callbacks: [{ name: 'minter', match_hosts: ['minted.test'], url: 'https://c.test/', ttl_seconds: 60 }],
  no_proxy: ['direct.test'],
  access_control: { deny_list: ['denied.test'] },
};

function explained(url: string, method = 'GET') {
  const parsed = parseProxyConfig(document);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
  const compiled = compileProxyConfig(parsed.value, () => new Secret('hush-hush-hush'), 1);
  const request = parseAskedUrl(url, method);
  if (!compiled.ok || typeof request === 'string') throw new Error(JSON.stringify([compiled, request]));
  return explain(request, compiled.value, {
    egress: closedEgress,
    reservedHost: 'sallyport.internal',
    masksBodies: false,
  });
}

describe('an explanation', () => {
  it('names the rule and its headers, and no value', () => {
    const explanation = explained('https://api.test/v1/models?key=query');
    expect(explanation).toMatchObject({
      outcome: 'injected',
      entry: { list: 'rules', index: 0, name: 'models' },
      headers: ['Authorization'],
      masked: 'head',
    });
    expect(explanation.conditions.join()).toContain('may resolve to a private address');
    expect(JSON.stringify(explanation)).not.toMatch(/hush|query/);
  });

  it.each([
    [
      'https://api.test/v2',
      'GET',
      { outcome: 'intercepted', reason: expect.stringContaining('none of them the path') },
    ],
    ['https://a.wild.test', 'GET', { outcome: 'injected', masked: 'body', entry: { name: 'inside' } }],
    ['https://10.1.2.3/', 'GET', { outcome: 'injected', conditions: [] }],
    ['https://minted.test/', 'POST', { outcome: 'callback', entry: { list: 'callbacks', name: 'minter' } }],
    ['https://direct.test/', 'GET', { outcome: 'tunnelled', reason: expect.stringContaining('no_proxy') }],
    ['https://other.test/', 'TRACE', { outcome: 'tunnelled' }],
    ['http://other.test/', 'GET', { outcome: 'tunnelled' }],
    ['http://sallyport.internal/status', 'GET', { outcome: 'local', conditions: [] }],
  ])('of %s %s', (url, method, expected) => {
    expect(explained(url, method)).toMatchObject(expected);
  });

  it.each([
    ['https://denied.test/', 'GET', 'access_denied'],
    ['https://sallyport.internal/', 'GET', 'reserved_host'],
    ['https://other.test:8443/', 'GET', 'port_denied'],
    ['https://10.9.9.9/', 'GET', 'address_private'],
    ['http://10.1.2.3/', 'GET', 'address_private'],
    ['https://169.254.169.254/', 'GET', 'address_denied'],
    ['http://a.wild.test/', 'GET', 'cleartext_refused'],
    ['http://other.test/', 'trace', 'method_refused'],
    ['https://api.test/v1/..%2f..', 'GET', 'ambiguous_path'],
  ])('of %s %s is a refusal with %s', (url, method, code) => {
    const { outcome, refusal } = explained(url, method);
    expect([outcome, refusal?.code]).toEqual(['refused', code]);
  });
});

it.each([
  ['api.test', /absolute URL/],
  ['ftp://api.test/', /absolute URL/],
  ['https://me:pass@api.test/', /userinfo/],
  ['https://api.test/\u00e4', /percent-encoded/],
])('%s is no URL to explain', (url, message) => {
  expect(parseAskedUrl(url, 'GET')).toMatch(message);
});

it.each([
  ['https://api.test', '/'],
  ['https://api.test?a=1#b', '/?a=1'],
  ['wss://api.test/a/../b', '/a/../b'],
])('the path of %s is as a client sends it', (url, target) => {
  expect(parseAskedUrl(url, 'GET')).toMatchObject({ scheme: 'https', target });
});
