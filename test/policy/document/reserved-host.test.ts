import { describe, expect, it } from 'vitest';
import { parseProxyConfig } from '../../../src/policy/document/proxy-config.ts';

const headers = [{ name: 'X-Key', type: 'plaintext', value: 'v' }];
const rule = { match_hosts: ['api.test'], headers };
const callback = { match_hosts: ['cb.test'], url: 'https://cb.example.com/x', ttl_seconds: 60 };

function locsOf(document: unknown, reservedHost?: string): readonly string[] {
  const parsed = parseProxyConfig(document, { reservedHost });
  if (parsed.ok) return [];
  return parsed.issues.map(
    ({ loc, msg }) => `${loc.join('.')}: ${msg.includes('is reserved for the proxy')}`,
  );
}

describe('a document that names the reserved host is refused:', () => {
  const rows: readonly (readonly [string, unknown, string])[] = [
    [
      'a rule',
      { rules: [{ ...rule, match_hosts: ['a.test', 'sallyport.internal'] }] },
      'rules.0.match_hosts.1',
    ],
    ['in capitals', { rules: [{ ...rule, match_hosts: ['SALLYPORT.internal'] }] }, 'rules.0.match_hosts.0'],
    [
      'with a port',
      { rules: [{ ...rule, match_hosts: ['sallyport.internal:8443'] }] },
      'rules.0.match_hosts.0',
    ],
    [
      'a disabled rule',
      { rules: [{ ...rule, enabled: false, match_hosts: ['sallyport.internal'] }] },
      'rules.0.match_hosts.0',
    ],
    ['no_proxy of a rule', { rules: [{ ...rule, no_proxy: ['sallyport.internal'] }] }, 'rules.0.no_proxy.0'],
    [
      'a callback',
      { callbacks: [{ ...callback, match_hosts: ['sallyport.internal'] }] },
      'callbacks.0.match_hosts.0',
    ],
    [
      'the endpoint of a callback',
      { callbacks: [{ ...callback, url: 'https://sallyport.internal/x' }] },
      'callbacks.0.url',
    ],
    ['no_proxy', { no_proxy: ['a.test', 'sallyport.internal:80'] }, 'no_proxy.1'],
    [
      'the allow_list',
      { access_control: { allow_list: ['sallyport.internal'] } },
      'access_control.allow_list.0',
    ],
    [
      'the deny_list',
      { access_control: { deny_list: ['sallyport.internal'] } },
      'access_control.deny_list.0',
    ],
  ];
  it.each(rows)('%s', (_, document, loc) => {
    expect(locsOf(document)).toEqual([`${loc}: true`]);
  });
});

it.each([
  ['a wildcard that covers the name', { no_proxy: ['*.internal'] }],
  ['a name below it', { no_proxy: ['a.sallyport.internal'] }],
  ['a wildcard below it', { no_proxy: ['*.sallyport.internal'] }],
  ['another name', { no_proxy: ['sallyport.test'] }],
])('%s is accepted', (_, document) => expect(locsOf(document)).toEqual([]));

it('the operator chooses the name', () => {
  expect(locsOf({ no_proxy: ['sallyport.internal'] }, 'proxy.test')).toEqual([]);
  expect(locsOf({ no_proxy: ['proxy.test'] }, 'proxy.test')).toEqual(['no_proxy.0: true']);
});
