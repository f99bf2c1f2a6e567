import { expect, it } from 'vitest';
import { createPace } from '../../../../src/platform/sandboxes/reconciliation/pace.ts';

/** When passes begin that take `ms` each and are asked for without a pause. */
function beginnings(ms: number, count: number): readonly number[] {
  let now = 0;
  const pace = createPace(() => now);
  return Array.from({ length: count }, () => {
    now += pace.pauseMs();
    const begun = now;
    now += ms;
    pace.spend(ms);
    return begun;
  });
}

it('a few passes follow each other at once, and after those a pause does', () => {
  expect(beginnings(0, 9)).toEqual([0, 0, 0, 0, 0, 0, 0, 50, 100]);
});

it('passes that cost more are rarer, but not much rarer than one in a second', () => {
  expect(beginnings(100, 5)).toEqual([0, 200, 600, 1_000, 1_400]);
  expect(beginnings(10_000, 4)).toEqual([0, 10_700, 21_400, 32_100]);
});

it('a pass after a while is not held up', () => {
  let now = 0;
  const pace = createPace(() => now);
  for (let count = 0; count < 10; count += 1) pace.spend(100);
  expect(pace.pauseMs()).toBeGreaterThan(0);
  now += 10_000;
  expect(pace.pauseMs()).toBe(0);
});
