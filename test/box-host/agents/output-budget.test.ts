// The memory for output of all boxes: who gets it, and who gives it back.
import { describe, expect, it } from 'vitest';
import { OutputBudget, type OutputShare } from '../../../src/box-host/agents/output-budget.ts';

/** A box that gives back as long as it has something. */
function createBox(budget: OutputBudget, name: string, log: string[]): OutputShare {
  const share: OutputShare = budget.createShare((asking) => {
    if (share.bytes === 0 || asking === name) return false;
    log.push(name);
    share.give(10);
    return true;
  });
  return share;
}

describe('the budget for output', () => {
  it('takes from the box that holds most', () => {
    const budget = new OutputBudget({ boxBytes: 1000, totalBytes: 100 });
    const log: string[] = [];
    const [a, b, c] = ['a', 'b', 'c'].map((name) => createBox(budget, name, log)) as [
      OutputShare,
      OutputShare,
      OutputShare,
    ];
    expect(a.take(30, 'a', false)).toBe(true);
    expect(b.take(60, 'b', false)).toBe(true);
    expect(c.take(20, 'c', false)).toBe(true);
    expect(log).toEqual(['b']);
    expect([a.bytes, b.bytes, c.bytes, budget.totalBytes]).toEqual([30, 50, 20, 100]);
    // What holds most does not take from those with less.
    expect(b.take(10, 'b', false)).toBe(false);
    expect(b.take(10, 'b', true)).toBe(true);
    expect(budget.totalBytes).toBe(110);
  });

  it('bounds each box, also where there is space in all', () => {
    const budget = new OutputBudget({ boxBytes: 50, totalBytes: 1000 });
    const log: string[] = [];
    const a = createBox(budget, 'a', log);
    expect(a.take(50, 'x', false)).toBe(true);
    expect(a.take(10, 'x', false)).toBe(true);
    expect([log, a.bytes]).toEqual([['a'], 50]);
    expect(a.take(60, 'x', false)).toBe(false);
  });

  it('has all of it back when a box is gone, also from one that gives back later', () => {
    const budget = new OutputBudget({ boxBytes: 50, totalBytes: 50 });
    const a = createBox(budget, 'a', []);
    a.take(40, 'a', false);
    a.close();
    a.give(40);
    expect(a.take(10, 'a', true)).toBe(true);
    expect(budget.totalBytes).toBe(0);
  });
});
