import { expect, it } from 'vitest';
import { RateLimit } from '../../src/base/rate-limit.ts';

it('a rate limit allows a number of events in any window, and returns how long to wait for the next', () => {
  let now = 0;
  const limit = new RateLimit(2, 100, () => now);
  const waits: number[] = [];
  for (const time of [0, 60, 70, 99, 100, 101, 160]) {
    now = time;
    waits.push(limit.take());
  }
  expect(waits).toEqual([0, 0, 30, 1, 0, 59, 0]);
});
