// The account of bytes: what it accepts, what overdraws it, when it accepts again, and who goes first then.
import { describe, expect, it } from 'vitest';
import { ByteBudget } from '../../src/admin/byte-budget.ts';

function create(): { readonly budget: ByteBudget; pass(ms: number): void } {
  let now = 5_000;
  const budget = new ByteBudget({ max: 1_000, perSecond: 250, now: () => now });
  return {
    budget,
    pass(ms) {
      now += ms;
    },
  };
}

describe('a budget of bytes', () => {
  it('accepts two documents of the largest size in a row, then one every four seconds', () => {
    const { budget, pass } = create();
    expect([budget.take(1_000), budget.take(1_000), budget.take(1_000)]).toEqual([0, 0, 4_000]);
    pass(3_999);
    expect(budget.take(1_000)).toBeCloseTo(1);
    pass(1);
    expect([budget.take(1_000), budget.take(1)]).toEqual([0, 4_000]);
  });

  it('is not used up by what it rejects', () => {
    const { budget, pass } = create();
    budget.take(2_000);
    for (let i = 0; i < 100; i += 1) expect(budget.take(1_000)).toBe(4_000);
    pass(4_000);
    expect(budget.take(1_000)).toBe(0);
  });

  it('accepts a large document although small ones keep the account low', () => {
    const { budget, pass } = create();
    // As much as comes in, so that the account is never full.
    for (let i = 0; i < 40; i += 1) {
      expect(budget.take(25)).toBe(0);
      pass(100);
    }
    expect(budget.take(1_000)).toBe(0);
  });

  it('never holds more than its limit', () => {
    const { budget, pass } = create();
    pass(1_000_000);
    expect([budget.take(1_000), budget.take(1_000), budget.take(1)]).toEqual([0, 0, 4_000]);
  });

  it('accepts the largest document that had to wait before smaller ones, which then wait two seconds at most', () => {
    const { budget, pass } = create();
    budget.take(2_000);
    expect([budget.take(300), budget.take(900), budget.take(10)]).toEqual([4_000, 4_000, 4_000]);
    pass(4_500);
    expect([budget.take(300), budget.take(899)]).toEqual([1_500, 1_500]);
    expect(budget.take(900)).toBe(0);
    // Nothing waits any more.
    pass(3_600);
    expect(budget.take(10)).toBe(0);
  });

  it('does not wait for a document that does not come back', () => {
    const { budget, pass } = create();
    budget.take(2_000);
    expect(budget.take(900)).toBe(4_000);
    pass(5_999);
    expect(budget.take(10)).toBe(1);
    pass(1);
    expect([budget.take(10), budget.take(10)]).toEqual([0, 0]);
  });

  it('accepts the largest of several sizes as often as if it came alone, in any order', () => {
    for (const sizes of [
      [10, 250, 1_000],
      [1_000, 250, 10],
      [250, 500, 10, 990, 1_000, 20],
    ]) {
      const { budget, pass } = create();
      let largestAt = 0;
      for (let at = 0; at < 60_000; at += 100) {
        const size = sizes[(at / 100) % sizes.length] ?? 0;
        if (budget.take(size) === 0 && size === 1_000) {
          expect(at - largestAt).toBeLessThanOrEqual(5_000);
          largestAt = at;
        }
        pass(100);
      }
      expect(largestAt).toBeGreaterThan(50_000);
    }
  });
});
