// When an agent server is started again, by the times at which it began and ended.
import { expect, it } from 'vitest';
import { createRestartPolicy } from '../../../../src/platform/runner/instances/restart-policy.ts';

it('waits longer after each failure, up to a minute', () => {
  const policy = createRestartPolicy();
  const pauses = Array.from({ length: 9 }, () => policy.ended(0) / 1000);
  expect(pauses).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60]);
});

it('begins anew with one that served for a minute, and not with one that ended at once', () => {
  const policy = createRestartPolicy();
  policy.ended(0);
  policy.began(1_000);
  expect(policy.ended(2_000)).toBe(2_000);
  policy.began(10_000);
  expect(policy.ended(70_000)).toBe(1_000);
});

it('three checks in a row without a response end it', () => {
  const policy = createRestartPolicy();
  policy.began(0);
  expect([false, false, true, false, false, false].map((one) => policy.checked(one))).toEqual([
    ...[false, false, false, false, false],
    true,
  ]);
  policy.began(0);
  expect(policy.checked(false)).toBe(false);
});
