// What distinguishes pooled connections: policies, schemes and authorities never share one.
import { expect, it } from 'vitest';
import { compileProxyConfig } from '../../../src/policy/compile.ts';
import { parseProxyConfig } from '../../../src/policy/document/proxy-config.ts';
import type { Policy } from '../../../src/policy/policy.ts';
import { dialTarget, poolKey, poolPrefix } from '../../../src/proxy/gate/connection-source.ts';
import { authorityOf } from '../request-head.ts';

function policyOf(revision: number): Policy {
  const parsed = parseProxyConfig({
    rules: [
      {
        name: 'ours',
        match_hosts: ['api.test', '*.wild.test'],
        headers: [{ name: 'X-A', type: 'plaintext', value: 'a' }],
      },
    ],
    access_control: { allow_list: ['api.test', '*.wild.test', 'open.test:8443'] },
  });
  const compiled = parsed.ok ? compileProxyConfig(parsed.value, () => undefined, revision) : parsed;
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.issues));
  return compiled.value;
}

it('the key of a pool differs by revision, scheme, host and port', () => {
  const keys = [1, 2].flatMap((revision) =>
    (['http', 'https'] as const).flatMap((scheme) =>
      ['api.test:443', 'api.test:80', 'b.test:443'].map((text) =>
        poolKey(policyOf(revision), { scheme, authority: authorityOf(text) }),
      ),
    ),
  );
  expect(new Set(keys).size).toBe(12);
  expect(keys.filter((key) => key.startsWith(poolPrefix(1)))).toHaveLength(6);
});

it.each([
  ['api.test:443', 'exact', false],
  ['a.wild.test:443', 'wildcard', false],
  ['open.test:8443', 'no', true],
])('%s is dialled as named: %s, with a listed port: %s', (text, named, isPortListed) => {
  const target = dialTarget(policyOf(1), { scheme: 'https', authority: authorityOf(text), alpn: ['h2'] });
  expect(target).toMatchObject({ named, isPortListed, alpn: ['h2'], scheme: 'https' });
});
