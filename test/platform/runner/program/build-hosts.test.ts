import { expect, it } from 'vitest';
import { requireBuildHosts } from '../../../../src/platform/runner/program/build-hosts.ts';

it.each([[[]], [['registry.example.com', 'git.example.com:8443', '*.example.org', '10.1.0.0/16']]])(
  'accepts %s',
  (hosts) => {
    expect(() => requireBuildHosts(hosts)).not.toThrow();
  },
);

it.each([
  '*',
  'https://registry.example.com',
  'registry.example.com/path',
  'a b',
  '',
  'host:99999',
  '10.0.0.0/99',
])('refuses %j, and says which entry it is', (host) => {
  expect(() => requireBuildHosts(['good.example.com', host])).toThrow(/^runner\.builds\.allow_hosts\[1\]: /);
});
