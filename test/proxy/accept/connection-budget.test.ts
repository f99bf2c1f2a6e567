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
  /** `of`: its listener; by default one for all. */
  one(index: number, of?: object): CountedConnection;
};

function connections(limits: {
  readonly maxOpen: number;
  readonly maxWaiting: number;
  readonly isShared?: boolean;
}): Connections {
  const events: string[] = [];
  const all = new Map<number, CountedConnection>();
  const listener = {};
  const one = (index: number, of: object = listener): CountedConnection => {
    const made = all.get(index) ?? {
      listener: of,
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

describe('two listeners', () => {
  const [flooded, other] = [{}, {}];

  it.each([
    ['of a flooded one lose their own', other, ['1 is rejected', '1 is cut', '2 is rejected']],
    // One listener in place of both: the oldest is evicted.
    ['of which one is the other lose the oldest', flooded, ['0 is rejected', '0 is cut', '1 is rejected']],
  ])('%s', (_, listener, expected) => {
    const { budget, events, one } = connections({ maxOpen: 100, maxWaiting: 3 });
    budget.add(one(0, listener));
    for (let i = 1; i < 5; i += 1) budget.add(one(i, flooded));
    expect(events).toEqual(expected);
  });

  it('share what is open: some is left whatever the others take', () => {
    const { budget, one } = connections({ maxOpen: 64, maxWaiting: 64, isShared: true });
    const taken: number[] = [];
    let index = 0;
    for (let sandbox = 0; sandbox < 4; sandbox += 1) {
      let count = 0;
      for (;;) {
        const next = one((index += 1));
        budget.add(next);
        budget.markAuthenticated(next);
        count += 1;
        if (count <= budget.share) continue;
        budget.remove(next);
        break;
      }
      taken.push(count - 1);
    }
    expect(taken).toEqual([32, 16, 8, 4]);
  });

  it('are not limited where one sandbox has the process', () => {
    const { budget } = connections({ maxOpen: 64, maxWaiting: 64 });
    expect(budget.share).toBe(Number.POSITIVE_INFINITY);
  });
});
