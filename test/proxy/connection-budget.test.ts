// Who gives way when places are short: of those that have not said who they are, the one that has waited longest.
import { describe, expect, it } from 'vitest';
import { type Waiting, createConnectionBudget } from '../../src/proxy/connection-budget.ts';

function clients(count: number): { all: Waiting[]; gaveWay: number[] } {
  const gaveWay: number[] = [];
  return { gaveWay, all: Array.from({ length: count }, (_, i) => ({ yield: () => gaveWay.push(i) })) };
}

describe('connections that have named no sandbox', () => {
  it('give way to a newcomer past their number, the oldest first', () => {
    const budget = createConnectionBudget({ maxOpen: 100, maxWaiting: 2 });
    const { all, gaveWay } = clients(4);
    for (const one of all.slice(0, 3)) budget.add(one);
    expect(gaveWay).toEqual([0]);
    const [first, second, , fourth] = all;
    if (!first || !second || !fourth) throw new Error('four were made');
    budget.gone(first);
    budget.known(second);
    budget.add(fourth);
    expect(gaveWay).toEqual([0]);
    expect(budget.open).toBe(3);
  });

  it('give way where the process is full; where everybody is known, the newcomer does', () => {
    const budget = createConnectionBudget({ maxOpen: 2, maxWaiting: 100 });
    const { all, gaveWay } = clients(3);
    const [first, second, third] = all;
    if (!first || !second || !third) throw new Error('three were made');
    for (const one of [first, second]) {
      budget.add(one);
      budget.known(one);
    }
    budget.add(third);
    expect(gaveWay).toEqual([2]);
  });
});
