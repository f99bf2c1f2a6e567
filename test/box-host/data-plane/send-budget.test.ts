// What waits for slow clients: who is asked to connect again, and that nothing stays counted.
import { describe, expect, it } from 'vitest';
import { type Follower, SendBudget } from '../../../src/box-host/data-plane/send-budget.ts';

function createFollower(box: string, name: string, left: string[]): Follower {
  return { box, leave: () => void left.push(name) };
}

describe('the budget for what is sent', () => {
  it('asks the slowest client of a box to connect again', () => {
    const budget = new SendBudget({ boxBytes: 100, totalBytes: 1000 });
    const left: string[] = [];
    const [slow, quick] = [createFollower('a', 'slow', left), createFollower('a', 'quick', left)];
    budget.set(slow, 70);
    budget.set(quick, 30);
    expect(left).toEqual([]);
    budget.set(quick, 40);
    expect(left).toEqual(['slow']);
    expect(budget.totalBytes).toBe(40);
    // Its connection closes later.
    budget.remove(slow);
    budget.set(quick, 0);
    budget.remove(quick);
    expect([budget.totalBytes, left]).toEqual([0, ['slow']]);
  });

  it('takes from the box for which most waits when all boxes together have too much', () => {
    const budget = new SendBudget({ boxBytes: 100, totalBytes: 150 });
    const left: string[] = [];
    const [a, b, c] = ['a', 'b', 'c'].map((name) => createFollower(name, name, left)) as [
      Follower,
      Follower,
      Follower,
    ];
    budget.set(a, 60);
    budget.set(b, 70);
    budget.set(c, 30);
    expect(left).toEqual(['b']);
    expect(budget.totalBytes).toBe(90);
  });

  it('asks a client that alone is too slow', () => {
    const budget = new SendBudget({ boxBytes: 10, totalBytes: 10 });
    const left: string[] = [];
    budget.set(createFollower('a', 'only', left), 11);
    expect([left, budget.totalBytes]).toEqual([['only'], 0]);
  });
});
