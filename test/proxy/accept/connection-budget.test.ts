// Who gives way when places are short: of those that have not said who they are, the one that has waited longest.
import { describe, expect, it } from 'vitest';
import {
  type ConnectionBudget,
  type Waiting,
  createConnectionBudget,
} from '../../../src/proxy/accept/connection-budget.ts';

type Crowd = {
  readonly budget: ConnectionBudget;
  /** Who was turned away and who was cut, in order. */
  readonly refresh: string[];
  one(index: number): Waiting;
};

function crowd(limits: { readonly maxOpen: number; readonly maxWaiting: number }): Crowd {
  const refresh: string[] = [];
  const all = new Map<number, Waiting>();
  const one = (index: number): Waiting => {
    const made = all.get(index) ?? {
      turnAway: () => refresh.push(`${index} is turned away`),
      cut: () => refresh.push(`${index} is cut`),
    };
    all.set(index, made);
    return made;
  };
  return { budget: createConnectionBudget(limits), refresh, one };
}

describe('connections that have named no sandbox', () => {
  it('give way to a newcomer past their number, the oldest first', () => {
    const { budget, refresh, one } = crowd({ maxOpen: 100, maxWaiting: 2 });
    for (const i of [0, 1, 2]) budget.add(one(i));
    expect(refresh).toEqual(['0 is turned away']);
    budget.gone(one(0));
    budget.known(one(1));
    budget.add(one(3));
    expect(refresh).toEqual(['0 is turned away']);
    expect(budget.open).toBe(3);
  });

  it('give way where the process is full; where everybody is known, the newcomer does', () => {
    const { budget, refresh, one } = crowd({ maxOpen: 2, maxWaiting: 100 });
    for (const i of [0, 1]) {
      budget.add(one(i));
      budget.known(one(i));
    }
    budget.add(one(2));
    expect(refresh).toEqual(['2 is turned away']);
  });

  it.each([
    ['waiting', { maxOpen: 1_000, maxWaiting: 10 }],
    ['open', { maxOpen: 10, maxWaiting: 1_000 }],
  ])('keep to the limit of those %s however fast they come, though they linger', (_, limits) => {
    const { budget, refresh, one } = crowd(limits);
    for (let i = 0; i < 100; i += 1) {
      budget.add(one(i));
      expect(budget.open).toBeLessThanOrEqual(11);
    }
    // Who is cut was told first.
    expect(refresh.slice(-2)).toEqual(['88 is cut', '89 is turned away']);
  });

  it('do not become more than the process holds by naming one', () => {
    const { budget, refresh, one } = crowd({ maxOpen: 10, maxWaiting: 1_000 });
    for (let i = 0; i < 100; i += 1) {
      budget.add(one(i));
      if (!refresh.includes(`${i} is turned away`)) budget.known(one(i));
    }
    expect(budget.open).toBe(11);
  });

  it('are cut first where they were turned away for another reason', () => {
    const { budget, refresh, one } = crowd({ maxOpen: 100, maxWaiting: 2 });
    budget.addLeaving(one(0));
    for (const i of [1, 2]) budget.add(one(i));
    expect(refresh).toEqual(['0 is cut']);
    for (let i = 3; i < 10; i += 1) budget.addLeaving(one(i));
    expect(budget.open).toBeLessThanOrEqual(3);
  });
});
