import { expect, it } from 'vitest';
import { createRateLimit } from '../../../../src/platform/api/shares/rate-limit.ts';

it('a bucket lets a burst through, then its rate, and says truly when there is a token', () => {
  let nowMs = 0;
  const limit = createRateLimit({ perSecond: 10, burst: 20, maxNames: 100, now: () => nowMs });
  const burst = Array.from({ length: 30 }, () => limit.take('a'));
  expect(burst.filter((waitMs) => waitMs === 0)).toHaveLength(20);
  expect(burst.at(-1)).toBe(100);
  expect(limit.take('b')).toBe(0);
  nowMs = 50;
  expect(limit.take('a')).toBe(50);
  nowMs = 100;
  expect([limit.take('a'), limit.take('a')]).toEqual([0, 100]);
  nowMs = 60_000;
  const later = Array.from({ length: 30 }, () => limit.take('a'));
  expect(later.filter((waitMs) => waitMs === 0)).toHaveLength(20);
});

it('who is rejected uses no tokens: the rate is the same under a flood', () => {
  let nowMs = 0;
  const limit = createRateLimit({ perSecond: 10, burst: 20, maxNames: 100, now: () => nowMs });
  let served = 0;
  for (; nowMs < 10_000; nowMs += 1) served += limit.take('a') === 0 ? 1 : 0;
  expect(served).toBeGreaterThanOrEqual(119);
  expect(served).toBeLessThanOrEqual(120);
});
