// Every mutation, and where the tests of each invariant are. scripts/mutants.ts runs them; a test
// checks that each text still occurs in its file.
import { gateway } from './mutations/gateway.ts';
import { h2Responses } from './mutations/h2-responses.ts';
import { h2Requests } from './mutations/h2-requests.ts';
import { destination } from './mutations/i1-destination.ts';
import { atomic } from './mutations/i10-atomic.ts';
import { accountable } from './mutations/i11-accountable.ts';
import { rightResponse } from './mutations/i12-right-response.ts';
import { oneToOne } from './mutations/i2-one-to-one.ts';
import { judgedIsSent } from './mutations/i3-judged-is-sent.ts';
import { exactlyOnce } from './mutations/i4-exactly-once.ts';
import { noLeak } from './mutations/i5-no-leak.ts';
import { failClosed } from './mutations/i6-fail-closed.ts';
import { alive } from './mutations/i7-alive.ts';
import { reach } from './mutations/i8-reach.ts';
import { bounded } from './mutations/i9-bounded.ts';
import { services } from './mutations/services.ts';
import type { Invariant, Mutation, Version } from './mutations/mutation.ts';

/** The tests of the gateway are not sorted by invariants. */
const GATEWAY_TESTS: readonly string[] = [
  'test/gateway/client-connection.test.ts',
  'test/gateway/dialing-agent.test.ts',
  'test/gateway/gateway.test.ts',
  'test/gateway/request-plan.test.ts',
  'test/gateway/target.test.ts',
  'test/gateway/upgraded-relay.test.ts',
  'test/attacks/gateway/gateway.test.ts',
];

const SERVICE_TESTS: readonly string[] = ['cookies', 'request', 'response', 'place'].map(
  (name) => `test/platform/sandboxes/services/service-${name}.test.ts`,
);

/** Where the tests of each invariant are, those of each version of HTTP. */
export const invariantTests: Readonly<Record<Invariant, Readonly<Record<Version, readonly string[]>>>> = {
  I1: testsOf('i1-destination', { h1: ['i1-client-sessions'] }),
  I2: testsOf('i2-one-to-one', { h2: ['i2-repeated-h2'] }),
  I3: testsOf('i3-judged-is-sent'),
  I4: testsOf('i4-exactly-once'),
  I5: testsOf('i5-no-leak'),
  I6: testsOf('i6-fail-closed'),
  I7: testsOf('i7-alive'),
  I8: testsOf('i8-reach', { h1: ['i8-namespaces'] }),
  I9: testsOf('i9-bounded'),
  I10: testsOf('i10-atomic'),
  I11: testsOf('i11-accountable'),
  I12: testsOf('i12-right-response', { h1: ['i12-two-sandboxes'] }),
};

/** The file of the invariant for each version, and `more` files for one version. */
function testsOf(
  name: string,
  more: Partial<Record<'h1' | 'h2', readonly string[]>> = {},
): Readonly<Record<Version, readonly string[]>> {
  const { h1 = [], h2 = [] } = more;
  const file = (stem: string): string => `test/invariants/${stem}.test.ts`;
  const ofVersions = { h1: [name, ...h1].map(file), h2: [`${name}-h2`, ...h2].map(file) };
  return { ...ofVersions, gateway: GATEWAY_TESTS, services: SERVICE_TESTS };
}

export const mutations: readonly Mutation[] = [
  ...destination,
  ...oneToOne,
  ...judgedIsSent,
  ...exactlyOnce,
  ...noLeak,
  ...failClosed,
  ...alive,
  ...reach,
  ...bounded,
  ...atomic,
  ...accountable,
  ...rightResponse,
  ...h2Requests,
  ...h2Responses,
  ...gateway,
  ...services,
];
