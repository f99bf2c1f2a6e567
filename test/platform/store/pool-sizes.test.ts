import { describe, expect, it } from 'vitest';
import { divideConnections } from '../../../src/platform/store/pool-sizes.ts';

describe('the connections of a process', () => {
  it('are divided so that the pools, and the connection for notifications, have them all', () => {
    for (let total = 5; total <= 1000; total += 1) {
      const sizes = divideConnections(total);
      expect(Object.values(sizes).reduce((sum, size) => sum + size, 1)).toBe(total);
      const { long, ...others } = sizes;
      expect(Math.min(...Object.values(others))).toBeGreaterThan(0);
      expect(long > 0).toBe(total > 5);
    }
  });

  it.each([
    [5, { authentication: 1, reads: 1, writes: 1, long: 0, jobs: 1 }],
    [20, { authentication: 2, reads: 8, writes: 5, long: 2, jobs: 2 }],
    [100, { authentication: 2, reads: 51, writes: 34, long: 8, jobs: 4 }],
  ])('%i of them are divided by purpose', (total, sizes) => {
    expect(divideConnections(total)).toEqual(sizes);
  });
});
