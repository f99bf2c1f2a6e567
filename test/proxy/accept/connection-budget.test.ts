// Which connection is closed at the limit: of the unauthenticated ones, the one that was accepted first.
import { describe, expect, it } from 'vitest';
import {
  type ConnectionBudget,
  type CountedConnection,
  createConnectionBudget,
} from '../../../src/proxy/accept/connection-budget.ts';

type Connections = {
  readonly budget: ConnectionBudget;
  /** Which connections were rejected and cut, in order. */
  readonly events: string[];
  one(index: number): CountedConnection;
};

function connections(limits: { readonly maxOpen: number; readonly maxWaiting: number }): Connections {
  const events: string[] = [];
  const all = new Map<number, CountedConnection>();
  const one = (index: number): CountedConnection => {
    const made = all.get(index) ?? {
      reject: () => events.push(`${index} is rejected`),
      cut: () => events.push(`${index} is cut`),
    };
    all.set(index, made);
    return made;
  };
  return { budget: createConnectionBudget(limits), events, one };
}

describe('unauthenticated connections', () => {
  it('are rejected past their limit, the oldest first', () => {
    const { budget, events, one } = connections({ maxOpen: 100, maxWaiting: 2 });
    for (const i of [0, 1, 2]) budget.add(one(i));
    expect(events).toEqual(['0 is rejected']);
    budget.remove(one(0));
    budget.markAuthenticated(one(1));
    budget.add(one(3));
    expect(events).toEqual(['0 is rejected']);
    expect(budget.open).toBe(3);
  });

  it('are rejected at the limit of the process, the new one if all others are authenticated', () => {
    const { budget, events, one } = connections({ maxOpen: 2, maxWaiting: 100 });
    for (const i of [0, 1]) {
      budget.add(one(i));
      budget.markAuthenticated(one(i));
    }
    budget.add(one(2));
    expect(events).toEqual(['2 is rejected']);
  });

  it.each([
    ['unauthenticated', { maxOpen: 1_000, maxWaiting: 10 }],
    ['open', { maxOpen: 10, maxWaiting: 1_000 }],
  ])(
    'stay within the limit of %s connections however fast they arrive, though rejected ones stay open for a moment',
    (_, limits) => {
      const { budget, events, one } = connections(limits);
      for (let i = 0; i < 100; i += 1) {
        budget.add(one(i));
        expect(budget.open).toBeLessThanOrEqual(11);
      }
      // A connection that is cut was rejected first.
      expect(events.slice(-2)).toEqual(['88 is cut', '89 is rejected']);
    },
  );

  it('count towards the limit of the process once they are authenticated', () => {
    const { budget, events, one } = connections({ maxOpen: 10, maxWaiting: 1_000 });
    for (let i = 0; i < 100; i += 1) {
      budget.add(one(i));
      if (!events.includes(`${i} is rejected`)) budget.markAuthenticated(one(i));
    }
    expect(budget.open).toBe(11);
  });

  it('are cut first if they were rejected for another reason', () => {
    const { budget, events, one } = connections({ maxOpen: 100, maxWaiting: 2 });
    budget.addRejected(one(0));
    for (const i of [1, 2]) budget.add(one(i));
    expect(events).toEqual(['0 is cut']);
    for (let i = 3; i < 10; i += 1) budget.addRejected(one(i));
    expect(budget.open).toBeLessThanOrEqual(3);
  });
});
