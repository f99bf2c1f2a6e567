// A host whose certificate changes while the proxy runs: to one that has expired, to another good one, to one for another
// name, to one of an authority that nobody trusts.
import { createTestAuthority } from '../support/test-authority.ts';
import { askTogether } from './asking.ts';
import type { ChaosScene } from './chaos-scene.ts';
import type { Fault } from './fault.ts';
import type { Identity } from './struck-host.ts';

const outsider = createTestAuthority('Stranger');

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
    ...showing(
      'upstream: certificate swapped for a stranger',
      '502 upstream_untrusted',
      () => outsider.contextFor,
    ),
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
        strike() {
          scene.host.show(identityIn(scene));
          return askTogether(scene.sidecar, scene.at());
        },
        heal: () => scene.host.recover(),
      };
    },
  };
}
