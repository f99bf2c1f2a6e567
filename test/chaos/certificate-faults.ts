// A host whose certificate changes while the proxy runs: to an expired one, to another valid one, to one for another name,
// to one of an untrusted CA.
import { createTestAuthority } from '../support/test-authority.ts';
import { fetchCodesTogether } from './proxy-request.ts';
import type { ChaosScene } from './chaos-scene.ts';
import type { Fault } from './fault.ts';
import type { Identity } from './failing-host.ts';

const foreignCa = createTestAuthority('Foreign CA');

export const certificateFaults: readonly Fault[] = [
  showing(
    'upstream: TLS expired mid-run',
    '502 upstream_untrusted',
    ({ authority }) => authority.expiredContextFor,
  ),
  showing('upstream: certificate rotated', '200', ({ authority }) => authority.successor.contextFor),
  showing(
    'upstream: wrong host',
    '502 upstream_untrusted',
    ({ authority }) =>
      () =>
        authority.contextFor('other.test'),
  ),
  {
    ...showing('upstream: certificate of a foreign CA', '502 upstream_untrusted', () => foreignCa.contextFor),
    isAdded: true,
  },
];

function showing(name: string, expects: string, identityIn: (scene: ChaosScene) => Identity): Fault {
  return {
    name,
    expects,
    async arrange(scene) {
      await scene.start();
      return {
        authority: scene.at(),
        inject() {
          scene.host.show(identityIn(scene));
          return fetchCodesTogether(scene.sidecar, scene.at());
        },
        remove: () => scene.host.recover(),
      };
    },
  };
}
