import { expect, it } from 'vitest';
import {
  describeRefusal,
  networkOfBuilds,
  RefusalLines,
} from '../../../../src/platform/builder/environment/build-network.ts';
import { parseProxyConfig } from '../../../../src/policy/document/proxy-config.ts';

it('a build reaches what is listed, and its rules are valid ones', () => {
  const hosts = ['registry.npmjs.org:443', '10.1.2.3:4873', '[fd00::1]:80', '*.example.com', '10.0.0.0/8'];
  const network = networkOfBuilds('w1', hosts);
  if (network === 'none') throw new Error('no network');
  expect(parseProxyConfig(network.policy.document)).toMatchObject({ ok: true });
  expect(network).toMatchObject({
    group: 'build-w1',
    policy: { document: { access_control: { allow_list: hosts } } },
  });
});

it.each([
  [
    { authority: 'evil.example.com:443', method: 'CONNECT', reason: 'access_denied', status: 403 },
    'refused by the network of builds: CONNECT evil.example.com:443: access_denied: builds reach the registries and the hosts of runner.builds.allow_hosts alone',
  ],
  [
    { authority: '169.254.169.254:80', method: 'GET', reason: 'address_denied', cause: 'link_local' },
    'refused by the network of builds: GET 169.254.169.254:80: address_denied (link_local)',
  ],
  [
    { authority: 'registry.example.com:443', method: 'CONNECT', reason: 'address_denied', cause: 'private' },
    'refused by the network of builds: CONNECT registry.example.com:443: address_denied (private): the name has an address that is not public: list it in egress.allow_private of the file that runner.sidecar_config names',
  ],
  [{ reason: 'malformed_request' }, 'refused by the network of builds: a request: malformed_request'],
])('%j is a line of the log', (refusal, line) => expect(describeRefusal(refusal)).toBe(line));

it('a refusal that is repeated is one line, and at most a hundred different ones are shown', () => {
  const lines: string[] = [];
  const refusals = new RefusalLines((line) => void lines.push(line));
  for (let i = 0; i < 300; i++)
    refusals.note({ authority: 'a.example.com:443', method: 'CONNECT', reason: 'dns_failed' });
  expect(lines).toEqual(['refused by the network of builds: CONNECT a.example.com:443: dns_failed']);
  for (let i = 0; i < 300; i++)
    refusals.note({ authority: `${i}.example.com:443`, method: 'CONNECT', reason: 'dns_failed' });
  expect(lines).toHaveLength(101);
  expect(lines.at(-1)).toBe('the network of builds refused more than 100 things: the rest is not shown');
});
