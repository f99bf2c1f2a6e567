// Who gets one more connection to the database server.
import { expect, it } from 'vitest';
import { createConnectionBudget } from '../../../../src/platform/runner/database-bridge/connection-budget.ts';

it('each deployment has a largest number', () => {
  const budget = createConnectionBudget(100, 2);
  expect([0, 1, 2].map((own) => budget.take(own) !== undefined)).toEqual([true, true, false]);
});

it('the last ones are for those that have few', () => {
  const budget = createConnectionBudget(8, 20);
  const greedy = Array.from({ length: 8 }, (_, own) => budget.take(own)).filter((one) => one !== undefined);
  expect(greedy).toHaveLength(6);
  const few = [0, 1, 2].map((own) => budget.take(own));
  expect(few.map((one) => one !== undefined)).toEqual([true, true, false]);
  for (let times = 0; times < 2; times += 1) greedy[0]?.release();
  expect(budget.used).toBe(7);
  expect(budget.take(0)).toBeDefined();
});
