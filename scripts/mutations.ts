// Every mutation, and where the tests of each invariant are. scripts/mutants.ts runs them; a test holds that each text
// still stands where it stood.
import { destination } from './mutations/i1-destination.ts';
import { atomic } from './mutations/i10-atomic.ts';
import { accountable } from './mutations/i11-accountable.ts';
import { rightAnswer } from './mutations/i12-right-answer.ts';
import { oneToOne } from './mutations/i2-one-to-one.ts';
import { judgedIsSent } from './mutations/i3-judged-is-sent.ts';
import { exactlyOnce } from './mutations/i4-exactly-once.ts';
import { noLeak } from './mutations/i5-no-leak.ts';
import { failClosed } from './mutations/i6-fail-closed.ts';
import { reach } from './mutations/i8-reach.ts';
import type { Invariant, Mutation } from './mutations/mutation.ts';

/** Where the tests of each invariant are. */
export const invariantTests: Readonly<Partial<Record<Invariant, string>>> = {
  I1: 'test/invariants/i1-destination.test.ts',
  I2: 'test/invariants/i2-one-to-one.test.ts',
  I3: 'test/invariants/i3-judged-is-sent.test.ts',
  I4: 'test/invariants/i4-exactly-once.test.ts',
  I5: 'test/invariants/i5-no-leak.test.ts',
  I6: 'test/invariants/i6-fail-closed.test.ts',
  I8: 'test/invariants/i8-reach.test.ts',
  I10: 'test/invariants/i10-atomic.test.ts',
  I11: 'test/invariants/i11-accountable.test.ts',
  I12: 'test/invariants/i12-right-answer.test.ts',
};

export const mutations: readonly Mutation[] = [
  ...destination,
  ...oneToOne,
  ...judgedIsSent,
  ...exactlyOnce,
  ...noLeak,
  ...failClosed,
  ...reach,
  ...atomic,
  ...accountable,
  ...rightAnswer,
];
