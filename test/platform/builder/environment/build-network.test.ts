import { expect, it } from 'vitest';
import {
  describeRefusal,
  networkOfBuilds,
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
  [{ reason: 'malformed_request' }, 'refused by the network of builds: a request: malformed_request'],
])('%j is a line of the log', (refusal, line) => expect(describeRefusal(refusal)).toBe(line));
