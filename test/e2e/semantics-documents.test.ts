// Invalid and ambiguous documents: each is rejected as a whole, with the location of the error.
import { describe, expect, it } from 'vitest';
import { createTestSidecar } from '../support/test-sidecar.ts';
import { callback, rule } from './semantics-scene.ts';

const first = rule('first', ['api.test']);

describe('rejected documents', () => {
  const hosts = (...patterns: string[]): object => ({ rules: [rule('r', patterns)] });
  const HOST = ['rules', 0, 'match_hosts', 0];
  const rows: readonly (readonly [what: string, document: object, loc: readonly (string | number)[]])[] = [
    ['every host', hosts('*'), HOST],
    ['a wildcard over a public suffix', hosts('*.com'), HOST],
    ['a wildcard over a suffix of two labels', hosts('*.co.uk'), HOST],
    ['a wildcard over a private suffix', hosts('*.github.io'), HOST],
    ['a wildcard inside', hosts('api.*.test'), HOST],
    ['a wildcard inside a label', hosts('*api.test'), HOST],
    ['two stars', hosts('**.api.test'), HOST],
    ['braces', hosts('{a,b}.test'), HOST],
    ['negation', hosts('!api.test'), HOST],
    ['a scheme', hosts('https://api.test'), HOST],
    ['a path', hosts('api.test/v1'), HOST],
    ['a user name', hosts('me@api.test'), HOST],
    ['an address in another spelling', hosts('127.1'), HOST],
    ['no host', { rules: [rule('r', [])] }, ['rules', 0, 'match_hosts']],
    ['a port of zero', hosts('api.test:0'), HOST],
    [
      'a relative path',
      { rules: [rule('r', ['api.test'], { match_paths: ['v1'] })] },
      ['rules', 0, 'match_paths', 0],
    ],
    [
      'a path with a query',
      { rules: [rule('r', ['api.test'], { match_paths: ['/v1?x'] })] },
      ['rules', 0, 'match_paths', 0],
    ],
    [
      'a path that is always rejected',
      { rules: [rule('r', ['api.test'], { match_paths: ['/a/../b'] })] },
      ['rules', 0, 'match_paths', 0],
    ],
    ['a rule host that is denied', { rules: [first], access_control: { deny_list: ['api.test'] } }, HOST],
    [
      'a rule host that is not allowed',
      { rules: [first], access_control: { allow_list: ['other.test'] } },
      HOST,
    ],
    [
      'a callback host that is denied',
      {
        callbacks: [callback(['api.test'], { url: 'https://c.test/' })],
        access_control: { deny_list: ['*.test'] },
      },
      ['callbacks', 0, 'match_hosts', 0],
    ],
    ['both lists', { access_control: { allow_list: [], deny_list: [] } }, ['access_control']],
    ['neither list', { access_control: {} }, ['access_control']],
    ['a rule with a type', { rules: [{ ...first, type: 'aws' }] }, ['rules', 0, 'type']],
    [
      'a callback with full_request',
      { callbacks: [callback(['api.test'], { url: 'https://c.test/', full_request: true })] },
      ['callbacks', 0, 'full_request'],
    ],
    ['an unknown key', { rules: [{ ...first, colour: 'red' }] }, ['rules', 0, 'colour']],
    [
      'a short ttl',
      { callbacks: [callback(['api.test'], { url: 'https://c.test/', ttl_seconds: 59 })] },
      ['callbacks', 0, 'ttl_seconds'],
    ],
    [
      'a long ttl',
      { callbacks: [callback(['api.test'], { url: 'https://c.test/', ttl_seconds: 3601 })] },
      ['callbacks', 0, 'ttl_seconds'],
    ],
    [
      'a callback URL that is not http or https',
      { callbacks: [callback(['api.test'], { url: 'ftp://c.test/' })] },
      ['callbacks', 0, 'url'],
    ],
    [
      'a workspace_secret to a callback',
      {
        callbacks: [
          callback(['api.test'], {
            url: 'https://c.test/',
            request_headers: [{ name: 'X', type: 'workspace_secret', value: '{A}' }],
          }),
        ],
      },
      ['callbacks', 0, 'request_headers', 0, 'type'],
    ],
  ];
  it.each(rows)('%s: the error has a location, and nothing is activated', async (_, document, loc) => {
    await using proxy = await createTestSidecar();
    const applied = proxy.apply(document);
    expect(applied.ok ? [] : applied.issues.map((issue) => issue.loc)).toContainEqual(loc);
    expect(proxy.sidecar.revision).toBe(0);
  });

  it('a wildcard that the operator allows is accepted', async () => {
    await using proxy = await createTestSidecar({ config: { allow_wildcards: ['*.github.io'] } });
    expect(proxy.apply(hosts('*.github.io'))).toMatchObject({ ok: true });
  });

  it('an overlap of no_proxy and a rule is a warning', async () => {
    await using proxy = await createTestSidecar();
    expect(proxy.apply({ rules: [first], no_proxy: ['api.test'] })).toMatchObject({
      ok: true,
      warnings: [{ loc: ['no_proxy', 0], type: 'no_proxy_overlap' }],
    });
  });
});
